"""Placement Studio: place a neural network's operators on devices, predict and measure.

`import placement as pl; pl.load(...), pl.place(...), pl.run(...)`: the verbs of
`placement.pipeline`, resolved on first use so that importing this package loads nothing.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

VERBS = (
    "compare",
    "export",
    "exporters",
    "from_torch",
    "hints",
    "inspect",
    "load",
    "machine",
    "machine_for",
    "make_problem",
    "place",
    "placers",
    "profile",
    "run",
    "samples",
    "simulate",
    "stored_profile",
    "stream",
    "train",
)


class _Verb:
    """A verb as an attribute of the package.

    A data descriptor wins over the submodule of the same name (`placement.simulate`), which the
    import system would otherwise put in the verb's place.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, package: ModuleType, owner: type) -> Any:
        return getattr(importlib.import_module("placement.pipeline"), self.name)

    def __set__(self, package: ModuleType, module: ModuleType) -> None:
        """Ignore the import system: the submodule stays reachable through `sys.modules`."""


_Package = type("_Package", (ModuleType,), {name: _Verb(name) for name in VERBS})
sys.modules[__name__].__class__ = _Package
