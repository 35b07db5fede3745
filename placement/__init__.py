"""Placement Studio: place a neural network's operators on devices, predict and measure.

`import placement as pl; pl.load(...), pl.place(...), pl.run(...)`: the verbs, each imported from
its module on first use, so that importing this package loads nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from placement.advice.best_moves import hints as hints
    from placement.api.compare import compare as compare
    from placement.api.export import export as export
    from placement.api.export import export_notes as export_notes
    from placement.api.export import list_exporters as list_exporters
    from placement.api.generate import generate as generate
    from placement.api.lessons import grade as grade
    from placement.api.lessons import lesson as lesson
    from placement.api.lessons import lessons as lessons
    from placement.api.machines import can_measure as can_measure
    from placement.api.machines import hosts as hosts
    from placement.api.machines import machine as machine
    from placement.api.machines import machine_for as machine_for
    from placement.api.models import inspect as inspect
    from placement.api.models import load as load
    from placement.api.models import samples as samples
    from placement.api.place import list_placers as list_placers
    from placement.api.place import place as place
    from placement.api.problems import make_problem as make_problem
    from placement.api.problems import profile as profile
    from placement.api.problems import stored_profile as stored_profile
    from placement.api.refine import refine as refine
    from placement.api.refine import refining_run as refining_run
    from placement.api.resume import run_to_the_end as run_to_the_end
    from placement.api.resume import stream_to_the_end as stream_to_the_end
    from placement.api.run import run as run
    from placement.api.run import stream as stream
    from placement.api.steps import steps as steps
    from placement.api.train import train as train
    from placement.costs.what_if import what_if as what_if
    from placement.formats.huggingface.module import from_transformers as from_transformers
    from placement.formats.torch.module import from_torch as from_torch
    from placement.schedule.simulated import simulate as simulate

__version__ = "0.1.0"

_MODULES = {
    "can_measure": "api.machines",
    "compare": "api.compare",
    "export": "api.export",
    "export_notes": "api.export",
    "from_torch": "formats.torch.module",
    "from_transformers": "formats.huggingface.module",
    "generate": "api.generate",
    "grade": "api.lessons",
    "hints": "advice.best_moves",
    "hosts": "api.machines",
    "inspect": "api.models",
    "lesson": "api.lessons",
    "lessons": "api.lessons",
    "list_exporters": "api.export",
    "list_placers": "api.place",
    "load": "api.models",
    "machine": "api.machines",
    "machine_for": "api.machines",
    "make_problem": "api.problems",
    "place": "api.place",
    "profile": "api.problems",
    "refine": "api.refine",
    "refining_run": "api.refine",
    "run": "api.run",
    "run_to_the_end": "api.resume",
    "samples": "api.models",
    "simulate": "schedule.simulated",
    "steps": "api.steps",
    "stored_profile": "api.problems",
    "stream": "api.run",
    "stream_to_the_end": "api.resume",
    "train": "api.train",
    "what_if": "costs.what_if",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *_MODULES]
