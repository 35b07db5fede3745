"""Exporters, one file per format; the folder listing is the registry.

A file of this folder whose name does not begin with an underscore defines `EXPORTER` (see
`Exporter`). Heavy libraries are imported inside functions.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from placement.core.registry import Registry
from placement.exporters.base import Export
from placement.files.output import plain_refusals

__all__ = ["Export", "Exporter", "exporter", "exporters", "note", "write"]


class Exporter(Protocol):
    """Writes what an `Export` holds to `path`; ValueError where it cannot.

    `missing` says in one sentence what this export lacks for the format, empty if nothing. A format
    of several files has the suffix ".zip": it writes an archive where the path ends so, else a
    folder.
    """

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def suffix(self) -> str: ...
    def missing(self, export: Export) -> str: ...
    def export(self, export: Export, path: Path) -> None: ...


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


def note(found: Exporter, export: Export) -> str:
    """What a file of a format would leave out of this export, in a sentence; mostly nothing.

    Formats that leave something out have a method of this name.
    """
    said: Callable[[Export], str] = getattr(found, "note", lambda export: "")
    return said(export)


def write(found: Exporter, export: Export, path: Path) -> None:
    """Write one format; a ValueError says in a sentence what is lacking or why it cannot be."""
    reason = found.missing(export)
    if reason:
        raise ValueError(reason)
    with plain_refusals(path):
        found.export(export, path)
