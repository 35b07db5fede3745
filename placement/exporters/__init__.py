"""Exporters, one file per format; the folder listing is the registry.

A file of this folder whose name does not begin with an underscore defines `EXPORTER` (see
`Exporter`). Heavy libraries are imported inside functions.
"""

from pathlib import Path

from placement.core.registry import Registry
from placement.exporters.base import Export, Exporter
from placement.files.output import plain_refusals

__all__ = ["Export", "Exporter", "exporter", "exporters", "write"]


_REGISTRY = Registry(__name__, __path__, "EXPORTER", "export format")


def exporters() -> tuple[Exporter, ...]:
    """Every exporter of this folder, in the order of file names."""
    return tuple(_REGISTRY.all())


def exporter(name: str) -> Exporter:
    """The exporter of that name; ValueError lists those there are."""
    for found in exporters():
        if found.name == name:
            return found
    known = ", ".join(found.name for found in exporters())
    raise ValueError(f"There is no export format {name!r}; use one of {known}.")


def write(found: Exporter, export: Export, path: Path) -> None:
    """Write one format; a ValueError says in a sentence what is lacking or why it cannot be."""
    reason = found.missing(export)
    if reason:
        raise ValueError(reason)
    with plain_refusals(path):
        found.export(export, path)
