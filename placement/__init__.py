"""Placement Studio: place a neural network's operators on devices, predict and measure.

`import placement as pl; pl.load(...), pl.place(...), pl.run(...)`: the verbs of `placement.api`,
resolved on first use so that importing this package loads nothing.
"""

import importlib
from typing import Any

_VERBS = {
    "compare": "compare",
    "export": "pipeline",
    "from_torch": "pipeline",
    "hints": "place",
    "inspect": "pipeline",
    "list_exporters": "pipeline",
    "list_placers": "pipeline",
    "load": "pipeline",
    "machine": "pipeline",
    "machine_for": "pipeline",
    "make_problem": "pipeline",
    "place": "place",
    "profile": "pipeline",
    "run": "run",
    "samples": "pipeline",
    "simulate": "pipeline",
    "stored_profile": "pipeline",
    "stream": "run",
    "train": "train",
}


def __getattr__(name: str) -> Any:
    if name not in _VERBS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.api.{_VERBS[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *_VERBS]
