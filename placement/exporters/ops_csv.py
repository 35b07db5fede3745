"""A table of all ops as comma-separated values: where each is, what it costs, when it runs."""

from collections.abc import Iterator
from pathlib import Path

from placement.costs.op_times import op_seconds
from placement.exporters._rows import Cell, csv_text
from placement.exporters._sources import kernel_of_op, output_bytes
from placement.exporters.base import Export, Exporter
from placement.files.output import write_text

HEADER = (
    "op",
    "kind",
    "scope",
    "phase",
    "device",
    "flops",
    "weight_bytes",
    "output_bytes",
    "segment",
    "start_s",
    "end_s",
    "critical",
)


class OpsCsv(Exporter):
    """One row per op in running order; times in seconds, predicted, of the call the op is in."""

    name = "csv"
    title = "Ops as a table"
    summary = "every op with its device, sizes and predicted times"
    suffix = ".csv"

    def export(self, export: Export, path: Path) -> None:
        devices = [f"seconds on {d.name}" for d in export.problem.machine.devices]
        write_text(path, csv_text((*HEADER, *devices), _rows(export)))


def _rows(export: Export) -> Iterator[tuple[Cell, ...]]:
    problem, simulated = export.problem, export.simulated
    when: dict[int, tuple[float, float]] = {}
    for span in simulated.timeline.spans:
        if span.kind == "compute":
            start_s, end_s = when.get(span.segment, (span.start_s, span.end_s))
            when[span.segment] = (min(start_s, span.start_s), max(end_s, span.end_s))
    critical = {s.segment for s in simulated.critical_path if s.kind == "compute"}
    seconds, written = op_seconds(problem), output_bytes(problem.graph)
    kernel_of, segment_of = kernel_of_op(problem), simulated.schedule.segment_of
    for i, op in enumerate(problem.graph.ops):
        kernel = kernel_of.get(i)
        segment = None if kernel is None else segment_of[problem.kernels.ops[kernel].name]
        start, end = (None, None) if segment is None else when.get(segment, (None, None))
        yield (
            op.name,
            op.kind,
            op.scope,
            op.phase,
            export.placement.device_of[op.name],
            op.flops,
            op.param_bytes,
            written.get(op.name, 0),
            segment,
            start,
            end,
            segment in critical,
            *map(float, seconds[i]),
        )


EXPORTER = OpsCsv()
