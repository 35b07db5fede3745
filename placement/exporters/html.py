"""The graph as one web page that works from disk: pan, zoom, hover, search; nothing is loaded.

pyvis holds the network and fills our own template; its own would fetch styles from the internet and
takes what a title says for markup. Edges and frames keep the ways they have in the studio: they are
paths, drawn beneath the nodes.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placement.core import formatting
from placement.drawing import svg
from placement.drawing.colours.painting import no_view
from placement.exporters._files import ASSETS
from placement.exporters._picture import Picture, picture
from placement.exporters.base import Export, Exporter
from placement.exporters.graph_svg import QUEUE_WORDS, TINT, words_of
from placement.files.output import write_text

if TYPE_CHECKING:
    from pyvis.network import Network

TEMPLATE = "graph.html"
VIS = "lib/vis-9.1.2/vis-network.min.js"
OPTIONS: dict[str, Any] = {
    "physics": {"enabled": False},
    "layout": {"improvedLayout": False},
    "nodes": {"fixed": True},
    "interaction": {"dragNodes": False, "hover": True, "tooltipDelay": 150, "keyboard": False},
}


class Html(Exporter):
    """Writes one file with the drawing library inside; a policy in it forbids any request."""

    name = "html"
    title = "Graph as a web page"
    summary = "one file to look around in, without internet"
    suffix = ".html"

    def missing(self, export: Export) -> str:
        return no_view(export.view)

    def export(self, export: Export, path: Path) -> None:
        write_text(path, page(picture(export)))


def page(shown: Picture) -> str:
    """The page's text."""
    net = _network(shown)
    net.set_template_dir(str(ASSETS), TEMPLATE)
    net.templateEnv.autoescape = True
    net.templateEnv.globals.update(
        headline=_readable(shown.headline),
        account=_readable(shown.account),
        legend=[{"colour": key.colour, "words": _readable(words_of(key))} for key in shown.legend],
        queue_words=QUEUE_WORDS if shown.queues else "",
        drawing=_drawing(shown),
        library=_library(),
    )
    return str(net.generate_html())


def _network(shown: Picture) -> "Network":
    from pyvis.network import Network

    net = Network(height="100%", width="100%", directed=True, cdn_resources="in_line")
    net.set_options(json.dumps(OPTIONS))
    names = [key.name for key in shown.legend]
    for i, node in enumerate(shown.view.nodes):
        mix = shown.mixes[i]
        where = ", ".join(
            f"{names[d]}: {formatting.counted(n, 'op')}" if node.group >= 0 else names[d]
            for d, n in mix
        )
        net.add_node(
            node.id,
            label=_readable(node.label),
            title=_readable(f"{node.title}\n{where}"),
            shape="custom",
            x=node.x,
            y=node.y,
            w=node.width,
            h=node.height,
            sub=_readable(node.subtitle),
            closed=node.group >= 0,
            mix=mix,
            critical=i in shown.critical,
            color=_colour(shown, i),
        )
    return net


def _colour(shown: Picture, i: int) -> dict[str, str]:
    mix = shown.mixes[i]
    one = shown.colours[mix[0][0]] if len(mix) == 1 else None
    ground = svg.blend(svg.BACKGROUND, one, TINT) if one else svg.NEUTRAL
    return {"background": ground, "border": one or svg.FAINT}


def _drawing(shown: Picture) -> dict[str, Any]:
    """What the page draws beneath the nodes: frames and edges."""
    nodes = shown.view.nodes
    return {
        "frames": [
            [box.left, box.top, box.width, box.height, _readable(box.label)]
            for box in shown.view.boxes
        ],
        "edges": [
            {
                "from": nodes[line.start].id,
                "to": nodes[line.end].id,
                "path": line.path,
                "arrow": line.arrow,
                "width": round(line.width, 2),
                "crosses": line.crosses,
                "critical": line.critical,
            }
            for line in shown.lines
        ],
        "queues": [{"path": queue.way, "arrow": queue.arrow} for queue in shown.queues],
        "corner": shown.corner,
        "size": shown.size,
        "colours": shown.colours,
    }


def _readable(text: str) -> str:
    """Text without characters that cannot be written or that turn the text after them."""
    return svg.UNFIT.sub("\ufffd", text)


def _library() -> str:
    """vis-network as pyvis carries it, without the note on where its source map would be."""
    import pyvis

    text = (Path(pyvis.__file__).parent / VIS).read_text(encoding="utf-8")
    rows = (row for row in text.split("\n") if not row.startswith("//# sourceMapping"))
    return "\n".join(rows).replace("</script", "<\\/script")


EXPORTER = Html()
