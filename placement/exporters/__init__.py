"""Exporters, one file per format; the folder listing is the registry.

A file of this folder whose name does not begin with an underscore defines `EXPORTER` (see
`Exporter`). Heavy libraries are imported inside functions.
"""

import importlib
import pkgutil
from pathlib import Path
from typing import Protocol

from placement.core.graph import Graph
from placement.core.placement import Placement


class Exporter(Protocol):
    """Writes a graph, with or without a placement, to `path`; ValueError where it cannot."""

    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def suffix(self) -> str: ...
    def export(self, graph: Graph, placement: Placement | None, path: Path) -> None: ...


def exporters() -> tuple[Exporter, ...]:
    """Every exporter of this folder, in the order of file names."""
    names = sorted(i.name for i in pkgutil.iter_modules(__path__) if not i.name.startswith("_"))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return tuple(module.EXPORTER for module in modules if hasattr(module, "EXPORTER"))


def exporter(name: str) -> Exporter:
    """The exporter of that name; ValueError lists those there are."""
    for found in exporters():
        if found.name == name:
            return found
    known = ", ".join(found.name for found in exporters())
    raise ValueError(f"There is no export format {name!r}; use one of {known}.")
