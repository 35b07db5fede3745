"""The graph as a picture in SVG: nodes in the colours of their devices, blocks, edges, legend."""

from collections.abc import Iterator
from pathlib import Path

from placement.core import formatting
from placement.core.graph import Graph
from placement.drawing import svg
from placement.drawing.colours.painting import Mix, no_view
from placement.drawing.crossing import QueueLine
from placement.drawing.edge_paths import QUEUE_WIDTH
from placement.drawing.views import View, ViewBox, ViewNode
from placement.exporters._picture import Key, Line, Picture, picture, unplaced
from placement.exporters.base import Export, Exporter
from placement.files.output import write_text

HEAD = 76.0
LEAST_WIDTH = 640.0
HEADER = 26.0
TINT = 0.26
QUEUE_WORDS = "on that path, waits its turn"


class GraphSvg(Exporter):
    """Draws what the studio shows, with the same blocks open; text stays text."""

    name = "graph-svg"
    title = "Graph as SVG"
    summary = "the picture with its open blocks, sharp at any size"
    suffix = ".svg"

    def missing(self, export: Export) -> str:
        return no_view(export.view)

    def export(self, export: Export, path: Path) -> None:
        write_text(path, drawing(picture(export)))


def placed_drawing(export: Export) -> str:
    """The graph of an export as text."""
    return drawing(picture(export))


def plain_drawing(graph: Graph, view: View) -> str:
    """A graph that nothing is placed of yet, as text."""
    return drawing(unplaced(graph, view))


def drawing(shown: Picture) -> str:
    needed = 40 + max(svg.wide(shown.headline, 16), svg.wide(shown.account, 12))
    total = max(LEAST_WIDTH, needed, shown.size[0])
    keys, key_rows = _legend(shown, total)
    head = HEAD + 22 * (key_rows - 1)
    (left, top), (_, height) = shown.corner, shown.size
    moved = f"translate({svg.number(-left)} {svg.number(head - top)})"
    body = [
        svg.text(20, 26, shown.headline, font_size=16, font_weight=600),
        svg.text(20, 46, shown.account, font_size=12, fill=svg.FAINT),
        *keys,
        svg.element("g", "\n".join(_graph(shown)), transform=moved),
    ]
    return svg.document(total, head + height, body, f"{shown.headline}. {shown.account}")


def _legend(shown: Picture, width: float) -> tuple[list[str], int]:
    """Entries in as many rows as they need: the devices, then the signs of the critical path."""
    entries = [
        (words_of(key), svg.element("rect", width=13, height=13, rx=3, fill=key.colour))
        for key in shown.legend
    ]
    entries += [(words, "".join(sign)) for words, sign in _signs(shown)]
    found, x, row = [], 20.0, 0
    for words, sign in entries:
        needed = 26 + 6.6 * len(words) + 18
        if x > 20 and x + needed > width:
            x, row = 20.0, row + 1
        y = 60.0 + 22 * row
        at = f"translate({svg.number(x)} {svg.number(y)})"
        found.append(svg.element("g", sign, transform=at))
        found.append(svg.text(x + 20, y + 11, words, font_size=12))
        x += needed
    return found, row + 1


def words_of(key: Key) -> str:
    """A device in the legend: its name, its ops and its time."""
    return f"{key.name}: {formatting.counted(key.num_ops, 'op')}, busy {key.busy}"


def _signs(shown: Picture) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What is drawn of the critical path, in words and as a sign of 13 by 13."""
    if shown.critical:
        yield "critical path", (_diamond(6.5, 6.5),)
    if shown.queues:
        yield QUEUE_WORDS, (_dots("M0 6.5H13"),)


def _graph(shown: Picture) -> Iterator[str]:
    for box in shown.view.boxes:
        yield _frame(box)
    for line in shown.lines:
        yield _edge(line)
    for queue in shown.queues:
        yield _queue(queue)
    for i, node in enumerate(shown.view.nodes):
        yield _node(node, shown.mixes[i], shown.colours, i in shown.critical)


def _frame(box: ViewBox) -> str:
    outline = svg.element(
        "rect",
        x=box.left,
        y=box.top,
        width=box.width,
        height=box.height,
        rx=10,
        fill=svg.TEXT,
        fill_opacity=0.035,
        stroke=svg.FRAME,
    )
    at = (box.left + 12, box.top + HEADER / 2 + 5)
    label = svg.fitted(*at, box.label, 12.5, box.width - 24, font_weight=600)
    return svg.element("g", (svg.title(box.title), outline, label))


def _edge(line: Line) -> str:
    colour = svg.CRITICAL if line.critical else svg.TEXT if line.crosses else svg.LINE
    dashes = {"stroke_dasharray": "7 4"} if line.crosses else {}
    way = svg.element(
        "path", d=line.path, fill="none", stroke=colour, stroke_width=line.width, **dashes
    )
    head = svg.element("path", d=line.arrow, fill=colour)
    return svg.element("g", (svg.title(line.title), way, head))


def _queue(queue: QueueLine) -> str:
    head = svg.element("path", d=queue.arrow, fill=svg.CRITICAL)
    return svg.element("g", (svg.title(queue.title), _dots(queue.way), head))


def _dots(d: str) -> str:
    """A way on which the critical path goes and no data."""
    return svg.element(
        "path",
        d=d,
        fill="none",
        stroke=svg.CRITICAL,
        stroke_width=QUEUE_WIDTH,
        stroke_dasharray=f"0.1 {svg.number(2.6 * QUEUE_WIDTH)}",
        stroke_linecap="round",
    )


def _node(node: ViewNode, mix: Mix, colours: tuple[str, ...], critical: bool) -> str:
    x, y = node.x - node.width / 2, node.y - node.height / 2
    radius = 9 if node.group >= 0 else 6
    one = colours[mix[0][0]] if len(mix) == 1 else None
    card: dict[str, str | float] = {
        "x": x,
        "y": y,
        "width": node.width,
        "height": node.height,
        "rx": radius,
        "fill": svg.blend(svg.BACKGROUND, one, TINT) if one else svg.NEUTRAL,
        "stroke": one or svg.FAINT,
        "stroke_width": 1.4,
    }
    parts = [svg.title(node.title)]
    if node.group >= 0:
        parts.append(svg.element("rect", **{**card, "x": x + 4, "y": y + 4, "fill": "#ffffff"}))
    parts.append(svg.element("rect", **card))
    if node.group >= 0:
        parts += _bar(x + 12, y + node.height - 15, node.width - 24, 7, mix, colours)
    elif one:
        parts.append(svg.element("rect", x=x, y=y, width=6, height=node.height, rx=3, fill=one))
    inset = 12 if node.group >= 0 else 14
    first, second = (20, 36) if node.group >= 0 else (17, 32)
    if not node.subtitle:
        first = round(node.height / 2 + 4)
    # A drawing of its own cuts off what does not fit, whatever the font.
    room = node.width - inset - 10
    words = svg.fitted(inset, first, node.label, 12.5, room, font_weight=600)
    if node.subtitle:
        words += svg.fitted(inset, second, node.subtitle, 10.5, room, fill_opacity=0.75)
    parts.append(
        svg.element(
            "svg", words, x=x, y=y, width=node.width - 6, height=node.height, overflow="hidden"
        )
    )
    if critical:
        parts.append(_diamond(x, y))
    return svg.element("g", parts)


def _bar(
    x: float, y: float, width: float, height: float, mix: Mix, colours: tuple[str, ...]
) -> list[str]:
    """The shares of a closed block's devices."""
    total, bars = sum(count for _, count in mix) or 1, []
    for device, count in mix:
        share = width * count / total
        bars.append(svg.element("rect", x=x, y=y, width=share, height=height, fill=colours[device]))
        x += share
    return bars


def _diamond(x: float, y: float, size: float = 6.0) -> str:
    """The sign of the critical path."""
    d = f"M{svg.number(x)} {svg.number(y - size)}l{size} {size}l-{size} {size}l-{size} -{size}Z"
    return svg.element("path", d=d, fill=svg.CRITICAL)


EXPORTER = GraphSvg()
