"""The placement itself as JSON: which device every op runs on, as `--placement` reads it."""

from dataclasses import dataclass
from pathlib import Path

from placement.core.placement import placement_to_text
from placement.exporters.base import Export
from placement.files.output import write_text


@dataclass(frozen=True)
class PlacementJson:
    """Writes the file that every verb of the command line takes as `--placement`."""

    name: str = "json"
    title: str = "Placement"
    summary: str = "a device for every op, to be read back here"
    suffix: str = ".json"

    def missing(self, export: Export) -> str:
        return ""

    def export(self, export: Export, path: Path) -> None:
        write_text(path, placement_to_text(export.placement))


EXPORTER = PlacementJson()
