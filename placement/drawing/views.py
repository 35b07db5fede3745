"""A view: what of a graph is visible, where it is drawn, and what is written on it."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from placement.core.fingerprint import fingerprint_of
from placement.core.formatting import counted
from placement.core.graph import Graph, Tensor
from placement.drawing import wording
from placement.drawing.layout.nested import nested_layout
from placement.drawing.layout.scopes import ScopeGroup, ScopeTree, scope_tree
from placement.drawing.layout.visible import BUDGET, Visible, visible_set
from placement.drawing.memo import remembered
from placement.drawing.names import Names, in_words, names_of

Point = tuple[float, float]


@dataclass(frozen=True)
class ViewNode:
    """One visible node: an op (`group` is -1) or a closed group. `x`, `y` are its centre.

    `stack` is how many equal blocks a closed stack holds; `tucked` counts the edges from here that
    are drawn only on demand.
    """

    id: str
    label: str
    subtitle: str
    title: str
    x: float
    y: float
    width: float
    height: float
    group: int
    num_ops: int
    alike: int
    stack: int = 0
    tucked: int = 0


@dataclass(frozen=True)
class ViewEdge:
    """Data from one visible node to another, indices into `View.nodes`, with its waypoints.

    `way` is None for an edge that is drawn only on demand (see `visible.Flow.tucked`).
    """

    start: int
    end: int
    num_tensors: int
    num_bytes: int
    title: str
    way: tuple[Point, ...] | None


@dataclass(frozen=True)
class ViewBox:
    """The frame of an open group; `left`, `top` is its corner."""

    id: str
    parent: str
    label: str
    title: str
    left: float
    top: float
    width: float
    height: float
    num_ops: int


@dataclass(frozen=True)
class View:
    """Everything that is drawn, apart from devices, selection and marks.

    `node_of_op[i]` is the node that shows op i. `refused` counts groups that should be open but
    stay closed, because no more nodes than the budget are drawn.
    """

    graph: str
    tree: ScopeTree
    op_names: tuple[str, ...]
    nodes: tuple[ViewNode, ...]
    edges: tuple[ViewEdge, ...]
    boxes: tuple[ViewBox, ...]
    node_of_op: tuple[int, ...]
    width: float
    height: float
    refused: int
    hash: str


@remembered(24, key=lambda graph: graph.fingerprint, apart_from="check")
def build_view(
    graph: Graph,
    expanded: frozenset[str],
    *,
    budget: int = BUDGET,
    aspect: float = 1.7,
    check: Callable[[], object] = lambda: None,
) -> View:
    """The view of a graph with these groups open; the last few are kept.

    `aspect` is about how many times wider than high a long narrow drawing is folded to be.

    `check` is called now and then while the drawing is laid out; what it raises ends the work.
    """
    tree = scope_tree(graph)
    visible = visible_set(graph, tree, expanded, budget=budget)
    nodes = _words(graph, tree, visible)
    titles = {g: 7.4 * len(_box_label(tree, g)) + 90 for g in visible.opened}
    sizes = [(n.width, n.height) for n in nodes]
    layout = nested_layout(tree, visible, sizes, titles, aspect=aspect, check=check)
    tucked = Counter(flow.start for flow in visible.flows if flow.tucked)
    placed = tuple(
        replace(n, x=round(x, 1), y=round(y, 1), tucked=tucked[i])
        for i, (n, (x, y)) in enumerate(zip(nodes, layout.centres, strict=True))
    )
    edges = tuple(
        ViewEdge(
            flow.start,
            flow.end,
            flow.num_tensors,
            flow.num_bytes,
            wording.flow_title(flow.num_tensors, flow.num_bytes, flow.largest),
            None if way is None else tuple((round(x, 1), round(y, 1)) for x, y in way),
        )
        for flow, way in zip(visible.flows, layout.ways, strict=True)
    )
    boxes = tuple(
        ViewBox(
            id=tree.groups[box.group].id,
            parent=tree.groups[tree.groups[box.group].parent].id,
            label=_box_label(tree, box.group),
            title=_group_title(graph, tree, box.group),
            left=round(box.left, 1),
            top=round(box.top, 1),
            width=round(box.width, 1),
            height=round(box.height, 1),
            num_ops=tree.groups[box.group].num_ops,
        )
        for box in layout.boxes
    )
    digest = fingerprint_of(
        [
            graph.fingerprint,
            [[n.id, n.label, n.subtitle, n.x, n.y, n.width] for n in placed],
            [[e.start, e.end, e.way] for e in edges],
        ]
    )
    return View(
        graph=graph.fingerprint,
        tree=tree,
        op_names=tuple(op.name for op in graph.ops),
        nodes=placed,
        edges=edges,
        boxes=boxes,
        node_of_op=visible.node_of_op,
        width=layout.width,
        height=layout.height,
        refused=len(visible.refused),
        hash=digest,
    )


def _words(graph: Graph, tree: ScopeTree, visible: Visible) -> list[ViewNode]:
    """The visible nodes with their texts and sizes, not yet placed."""
    outputs, names = wording.largest_outputs(graph), names_of(graph)
    return [
        _op_node(graph, member, names, outputs)
        if member >= 0
        else _group_node(graph, tree, ~member)
        for member in visible.members
    ]


def _op_node(graph: Graph, index: int, names: Names, outputs: dict[str, Tensor]) -> ViewNode:
    op = graph.ops[index]
    label = wording.shortened(op.kind, 22)
    about = (op, names.shown[index], outputs.get(op.name))
    subtitle = wording.op_subtitle(*about)
    width = min(186.0, max(88.0, 7.6 * len(label) + 26, 6.1 * len(subtitle) + 26))
    title = wording.op_title(*about)
    return ViewNode(f"o{index}", label, subtitle, title, 0, 0, width, 40.0, -1, 1, 1)


def _group_node(graph: Graph, tree: ScopeTree, index: int) -> ViewNode:
    group = tree.groups[index]
    label = wording.shortened(_label(group), 28)
    subtitle = counted(group.num_ops, "op")
    if group.stack:
        subtitle = f"×{group.stack} · {subtitle}"
    width = min(266.0, max(132.0, 7.8 * len(label) + 48))
    title = _group_title(graph, tree, index)
    numbers = (index, group.num_ops, group.alike, group.stack)
    return ViewNode(group.id, label, subtitle, title, 0, 0, width, 58.0, *numbers)


def _group_title(graph: Graph, tree: ScopeTree, index: int) -> str:
    group = tree.groups[index]
    ops = [graph.ops[i] for i in tree.ops(index)]
    return wording.group_title(
        group.path,
        group.num_ops,
        group.alike,
        sum(op.flops for op in ops),
        sum(op.param_bytes for op in ops),
    )


def _box_label(tree: ScopeTree, index: int) -> str:
    return wording.shortened(_label(tree.groups[index]), 40)


def _label(group: ScopeGroup) -> str:
    """A block's label in words, as the names of its ops begin."""
    return "/".join(in_words(group.label.split("/")))
