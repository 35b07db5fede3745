"""What a notebook shows of the values that verbs return: the graph by device, timelines, a board.

Static markup: drawings in SVG and tables, made of escaped text, with nothing that runs or is
fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import singledispatch

from placement.api.compare import Board
from placement.api.place import Placed
from placement.api.results.placing import CompareRow
from placement.api.run import LiveRun, LiveStream
from placement.core import formatting
from placement.core.model import Model
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.timeline import Timeline
from placement.drawing import gantt, svg, timelines_svg
from placement.drawing.colours.palette import device_colour
from placement.drawing.layout.expansion import default_expanded
from placement.drawing.views import build_view
from placement.exporters import Export, graph_svg, timeline_svg
from placement.schedule.simulated import Simulated
from placement.simulator.critical_path import critical_path

# A cell of a notebook shows so much of a graph; the rest is scrolled to.
GRAPH_HEIGHT = 560
# Many more make a notebook heavy.
MOST_BARS = gantt.MOST_BARS
_COLUMNS = ("Method", "Predicted", "Behind the best", "From the bound", "Measured", "Ops by device")
_NO_VALUE = "–"


@singledispatch
def html_of(value: object) -> str:
    """The markup of a value that can be drawn."""
    raise TypeError(f"a {type(value).__name__} has no picture")


@html_of.register
def _(model: Model) -> str:
    view = build_view(model.graph, default_expanded(model.graph))
    return _scrolled(graph_svg.plain_drawing(model.graph, view))


@html_of.register
def _(placed: Placed) -> str:
    if placed.solved is None:
        return html_of(placed.timeline)
    return _both(placed.solved, placed.placement, placed.placer)


@html_of.register
def _(simulated: Simulated) -> str:
    if simulated.problem is None or simulated.placement is None:
        return html_of(simulated.timeline)
    return _both(simulated.problem, simulated.placement)


@html_of.register(LiveRun)
def _(ran: LiveRun) -> str:
    return _on_one_axis(ran.predicted, ran.measured.timeline)


@html_of.register(LiveStream)
def _(streamed: LiveStream) -> str:
    return _on_one_axis(streamed.predicted, streamed.measured.run.timeline)


@html_of.register
def _(timeline: Timeline) -> str:
    """Without its problem: devices by name, and what runs on them under its own names."""
    names = sorted({s.device for s in timeline.spans if s.kind == "compute"})
    colours = {name: device_colour(i) for i, name in enumerate(names)}
    path = gantt.CriticalPath(critical_path(timeline))
    title = timeline.origin.capitalize()
    panel = gantt.panel(timeline.origin, title, "", timeline, colours, path=path, most=MOST_BARS)
    return _fitting(timelines_svg.drawing([panel], "Timeline of a step", "", "s"))


@html_of.register
def _(board: Board) -> str:
    rows = sorted(board, key=lambda row: (row.value is None, row.value or 0.0, row.placer))
    best = next((row.value for row in rows if row.value is not None), None)
    head = _row("th", (svg.plain(name) for name in _COLUMNS))
    colours = {name: device_colour(i) for i, name in enumerate(board.devices)}
    return _table([head, *(_row("td", _cells(row, best, colours)) for row in rows)])


def _both(problem: Problem, placement: Placement, label: str = "") -> str:
    export = _export(problem, placement, label)
    timeline = _fitting(timeline_svg.drawing(export, MOST_BARS))
    return _scrolled(graph_svg.placed_drawing(export)) + timeline


def _on_one_axis(predicted: Simulated, measured: Timeline) -> str:
    if predicted.problem is None or predicted.placement is None:
        return html_of(predicted.timeline) + html_of(measured)
    export = _export(predicted.problem, predicted.placement, measured=measured)
    return _fitting(timeline_svg.drawing(export, MOST_BARS))


def _export(
    problem: Problem, placement: Placement, label: str = "", measured: Timeline | None = None
) -> Export:
    graph = problem.graph
    return Export(
        Model(graph),
        problem,
        placement,
        label,
        measured=measured,
        view=lambda: build_view(graph, default_expanded(graph)),
    )


def _cells(row: CompareRow, best: float | None, colours: Mapping[str, str]) -> Sequence[str]:
    if row.value is None:
        return svg.plain(row.placer), svg.plain(row.error), *[_NO_VALUE] * 4
    behind = row.value / best - 1.0 if best else 0.0
    return (
        svg.plain(row.placer),
        svg.plain(formatting.stated(row.value, row.unit)),
        formatting.percent(behind, signed=True) if behind else "best",
        _NO_VALUE if row.gap is None else formatting.percent(row.gap),
        _NO_VALUE if row.measured_s is None else formatting.seconds(row.measured_s),
        _shares(row.ops_per_device or {}, colours),
    )


def _shares(ops_per_device: Mapping[str, int], colours: Mapping[str, str]) -> str:
    """A square in the colour of each device, with its name and its number of ops."""
    found = []
    for name, count in ops_per_device.items():
        square = svg.element("rect", width=10, height=10, rx=2, fill=colours[name])
        drawn = svg.element("svg", square, width=10, height=10)
        found.append(f"{drawn} {svg.plain(name)}: {count}")
    return " &nbsp; ".join(found)


def _row(cell: str, contents: Iterable[str]) -> str:
    styled = "text-align:left;padding:3px 12px"
    return svg.element("tr", (svg.element(cell, content, style=styled) for content in contents))


def _table(rows: Sequence[str]) -> str:
    return svg.element("table", svg.element("tbody", rows))


def _scrolled(drawn: str) -> str:
    """A drawing at its own size in a frame of limited height."""
    style = f"overflow:auto;max-height:{GRAPH_HEIGHT}px"
    return svg.element("div", _inner(drawn), style=style)


def _fitting(drawn: str) -> str:
    """A drawing as wide as there is room."""
    style = '<svg style="max-width:100%;height:auto" '
    return svg.element("div", _inner(drawn).replace("<svg ", style, 1))


def _inner(drawn: str) -> str:
    """A drawing without the first line of a file."""
    return drawn[drawn.index("<svg ") :].strip()
