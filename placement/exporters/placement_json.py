"""The placement itself as JSON: which device every op runs on, as `--placement` reads it."""

from pathlib import Path

from placement.core.placement import placement_to_text
from placement.exporters.base import Export, Exporter
from placement.files.output import write_text


class PlacementJson(Exporter):
    """Writes the file that every verb of the command line takes as `--placement`."""

    name = "json"
    title = "Placement"
    summary = "a device for every op, to be read back here"
    suffix = ".json"

    def export(self, export: Export, path: Path) -> None:
        write_text(path, placement_to_text(export.placement))


EXPORTER = PlacementJson()
