"""The timelines as comma-separated values: one row per stretch of computing or sending."""

from pathlib import Path

from placement.exporters._rows import csv_text
from placement.exporters.base import Export, Exporter
from placement.files.output import write_text

HEADER = ("timeline", "kind", "where", "name", "start_s", "end_s", "bytes", "segment")


class TimelineCsv(Exporter):
    """The predicted step and, where a run is given, the measured one below it."""

    name = "timeline-csv"
    title = "Timeline as a table"
    summary = "what computes or is sent, where and when"
    suffix = ".csv"

    def export(self, export: Export, path: Path) -> None:
        rows = (
            (
                timeline.origin,
                span.kind,
                span.device,
                span.name,
                span.start_s,
                span.end_s,
                span.num_bytes if span.kind == "transfer" else None,
                span.segment if span.segment >= 0 else None,
            )
            for _, timeline in export.timelines
            for span in timeline.spans
        )
        write_text(path, csv_text(HEADER, rows))


EXPORTER = TimelineCsv()
