"""What is painted on a view: a colour or a mix per node, the style of every edge, the legend."""

from dataclasses import dataclass

from placement.constraints.fusion import mended
from placement.core import formatting
from placement.core.graph import Graph
from placement.drawing.colours.painting import Mix, colours, mixes
from placement.drawing.crossing import QueueLine, path_lines
from placement.drawing.edge_paths import Point, arrow_of, edge_width, path_of, points_of
from placement.drawing.op_reasons import critical_ops
from placement.drawing.views import View
from placement.exporters.base import Export
from placement.simulator.path_steps import PathSteps, path_steps


@dataclass(frozen=True)
class Line:
    """A drawn edge: its path, the head of its arrow, and whether it joins different devices.

    `critical` says that the critical path runs along it.
    """

    start: int
    end: int
    path: str
    arrow: str
    width: float
    crosses: bool
    critical: bool
    title: str


@dataclass(frozen=True)
class Key:
    """One entry of the legend."""

    name: str
    colour: str
    num_ops: int
    busy: str


@dataclass(frozen=True)
class Picture:
    """A placed graph ready to be drawn; `corner` and `size` bound everything on it."""

    view: View
    colours: tuple[str, ...]
    mixes: tuple[Mix, ...]
    critical: frozenset[int]
    lines: tuple[Line, ...]
    queues: tuple[QueueLine, ...]
    legend: tuple[Key, ...]
    corner: Point
    size: Point
    headline: str
    account: str


def picture(export: Export) -> Picture:
    """The export's view with its devices; the prediction gives the critical path and the times."""
    assert export.view is not None, "asked for a picture without a view"
    view, problem = export.view(), export.problem
    simulated = export.simulated
    placed = mended(problem, export.placement).device_of
    device_of_op = [problem.machine.index[placed[op.name]] for op in problem.graph.ops]
    shares = mixes(view, device_of_op)
    index = problem.graph.index
    critical = {view.node_of_op[index[name]] for name in critical_ops(problem, simulated)}
    steps = path_steps(problem, simulated.schedule, simulated.critical_path)
    shown = steps.between(view.node_of_op)
    palette = colours(problem.machine)
    counts = [device_of_op.count(d) for d in range(problem.num_devices)]
    legend = [
        Key(d.name, palette[i], counts[i], formatting.seconds(simulated.busy_s.get(d.name, 0.0)))
        for i, d in enumerate(problem.machine.devices)
    ]
    corner, size = _bounds(view)
    return Picture(
        view,
        tuple(palette),
        tuple(shares),
        frozenset(critical),
        _lines(view, shares, shown),
        path_lines(view, steps).queues,
        tuple(legend),
        corner,
        size,
        headline(export),
        account(export),
    )


def unplaced(graph: Graph, view: View) -> Picture:
    """The graph alone, without devices and times."""
    shares: list[Mix] = [() for _ in view.nodes]
    corner, size = _bounds(view)
    weights = formatting.num_bytes(graph.param_bytes)
    return Picture(
        view,
        (),
        tuple(shares),
        frozenset(),
        _lines(view, shares, PathSteps(frozenset(), ())),
        (),
        (),
        corner,
        size,
        _shortened(graph.name),
        f"{formatting.counted(len(graph.ops), 'op')}, weights {weights}.",
    )


def headline(export: Export) -> str:
    """What is placed on what; very long names give way in the middle."""
    graph, machine = export.problem.graph.name, export.problem.machine.name
    placed = f", placement {_shortened(export.label)}" if export.label else ""
    return f"{_shortened(graph)} on {_shortened(machine)}{placed}"


def _shortened(name: str, most: int = 48) -> str:
    return name if len(name) <= most else f"{name[: most // 2]}…{name[len(name) - most // 2 :]}"


def account(export: Export) -> str:
    """Predicted and measured times in a sentence."""
    problem, simulated = export.problem, export.simulated
    value, per = formatting.seconds(simulated.value, problem.unit), problem.objective.per
    said = f"Predicted {value} per {per} ({export.costs})"
    if export.measured is not None:
        origin = "emulated" if export.measured.origin == "emulated" else "measured"
        said += f", {origin} {formatting.seconds(export.measured.step_s)} in the step shown"
    return f"{said}."


def _lines(view: View, shares: list[Mix], path: PathSteps) -> tuple[Line, ...]:
    """The edges of a view; those drawn on demand alone only where the critical path runs."""
    found = []
    for edge in view.edges:
        critical = (edge.start, edge.end) in path.edges
        if edge.way is None and not critical:
            continue
        points, width = points_of(view, edge), edge_width(edge.num_bytes)
        a, b = shares[edge.start], shares[edge.end]
        crosses = len(a) == 1 and len(b) == 1 and a[0][0] != b[0][0]
        drawn = path_of(points), arrow_of(points, width), width
        found.append(Line(edge.start, edge.end, *drawn, crosses, critical, edge.title))
    # What is drawn last lies on top.
    return tuple(sorted(found, key=lambda line: line.critical))


def _bounds(view: View, margin: float = 24.0) -> tuple[Point, Point]:
    """The corner and the size of a frame around everything, with a margin."""
    xs = [n.x + side * n.width / 2 for n in view.nodes for side in (-1, 1)]
    ys = [n.y + side * n.height / 2 for n in view.nodes for side in (-1, 1)]
    for box in view.boxes:
        xs += [box.left, box.left + box.width]
        ys += [box.top, box.top + box.height]
    for edge in view.edges:
        xs += [x for x, _ in edge.way or ()]
        ys += [y for _, y in edge.way or ()]
    left, top = min(xs, default=0.0) - margin, min(ys, default=0.0) - margin
    size = (max(xs, default=0.0) + margin - left, max(ys, default=0.0) + margin - top)
    return (left, top), size
