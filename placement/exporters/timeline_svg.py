"""The timelines as a picture in SVG: rows by device and link, predicted above measured."""

from pathlib import Path

from placement.core.timeline import Timeline
from placement.drawing import gantt, spans, timelines_svg
from placement.drawing.colours.painting import colours
from placement.exporters._picture import account, headline
from placement.exporters.base import Export, Exporter
from placement.files.output import write_text
from placement.simulator.critical_path import critical_path


class TimelineSvg(Exporter):
    """All timelines on one axis of time, so that their lengths compare; critical path in red."""

    name = "timeline-svg"
    title = "Timeline as SVG"
    summary = "who computes and sends when, sharp at any size"
    suffix = ".svg"

    def export(self, export: Export, path: Path) -> None:
        write_text(path, drawing(export))


def drawing(export: Export, most: int | None = None) -> str:
    """The picture as text; with at most about `most` bars per timeline, where that is given."""
    panels = [_panel(export, title, timeline, most) for title, timeline in export.timelines]
    return timelines_svg.drawing(panels, headline(export), account(export), export.problem.unit)


def _panel(export: Export, title: str, timeline: Timeline, most: int | None) -> gantt.Panel:
    problem = export.problem
    devices = [device.name for device in problem.machine.devices]
    return gantt.panel(
        timeline.origin,
        title,
        "",
        timeline,
        dict(zip(devices, colours(problem.machine), strict=True)),
        sources=spans.Sources(problem.graph, spans.ops_of(problem, export.simulated.schedule)),
        path=gantt.CriticalPath(critical_path(timeline)),
        most=len(timeline.spans) if most is None else most,
    )


EXPORTER = TimelineSvg()
