"""The pyvis network of a view: nodes, edges and options, made once and used everywhere.

The component sends exactly these to the browser; a standalone HTML export can render the same
network through its own template. Ids are ours, titles are plain text without angle brackets.
"""

import json
from typing import TYPE_CHECKING

from placement.drawing.edge_paths import edge_width
from placement.drawing.memo import remembered
from placement.drawing.views import View, ViewEdge, ViewNode

if TYPE_CHECKING:
    from pyvis.network import Network

OPTIONS: dict[str, object] = {
    "autoResize": True,
    "physics": False,
    "layout": {"improvedLayout": False},
    "nodes": {"fixed": True, "shape": "box"},
    "edges": {"smooth": {"enabled": True, "type": "cubicBezier", "forceDirection": "vertical"}},
    "interaction": {
        "dragNodes": False,
        "dragView": True,
        "zoomView": True,
        "selectable": False,
        "hover": False,
        "hoverConnectedEdges": False,
        "selectConnectedEdges": False,
        "keyboard": False,
    },
}


def network(view: View) -> "Network":
    """The view as a pyvis network without colours."""
    from pyvis.network import Network

    net = Network(height="100%", width="100%", directed=True, cdn_resources="in_line")
    net.set_options(json.dumps(OPTIONS))
    for node in view.nodes:
        net.add_node(node.id, label=node.label, shape="box", title=node.title, **_extras(node))
    for edge in view.edges:
        net.add_edge(
            view.nodes[edge.start].id,
            view.nodes[edge.end].id,
            title=edge.title,
            width=round(edge_width(edge.num_bytes), 2),
            **_way(edge),
        )
    return net


def _extras(node: ViewNode) -> dict[str, object]:
    extras: dict[str, object] = {
        "x": node.x,
        "y": node.y,
        "w": node.width,
        "h": node.height,
        "sub": node.subtitle,
        "ops": node.num_ops,
    }
    if node.group >= 0:
        extras["closed"] = True
        extras["alike"] = node.alike
    if node.stack:
        extras["stack"] = node.stack
    if node.tucked:
        extras["hiddenEdges"] = node.tucked
    return extras


def _way(edge: ViewEdge) -> dict[str, object]:
    """Waypoints as one flat list; `tucked` edges are `hidden` for vis-network too."""
    if edge.way is None:
        return {"tucked": True, "hidden": True}
    return {"way": [value for point in edge.way for value in point]}


@remembered(8, key=lambda view: view.hash)
def store_payload(view: View) -> dict[str, object]:
    """What the browser keeps under the view's hash: the network, the frames, the parents."""
    net = network(view)
    parent_of = {
        node.id: view.tree.groups[
            view.tree.groups[node.group].parent
            if node.group >= 0
            else view.tree.group_of[int(node.id[1:])]
        ].id
        for node in view.nodes
    }
    boxes = [
        {
            "id": box.id,
            "parent": box.parent,
            "label": box.label,
            "title": box.title,
            "x": box.left,
            "y": box.top,
            "w": box.width,
            "h": box.height,
            "ops": box.num_ops,
        }
        for box in view.boxes
    ]
    return {
        "hash": view.hash,
        "graph": view.graph,
        "nodes": [{**node, "parent": parent_of[str(node["id"])]} for node in net.nodes],
        "edges": net.edges,
        "options": net.options,
        "boxes": boxes,
        "refused": view.refused,
    }
