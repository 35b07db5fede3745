"""What is visible with a given set of open groups: nodes, and edges added up between them."""

from dataclasses import dataclass

from placement.core.graph import Graph
from placement.drawing.layout.scopes import ScopeTree

BUDGET = 1500
FAN_OUT = 24


@dataclass(frozen=True)
class Flow:
    """Tensors from one visible node to another: how many, their bytes, the largest one's name.

    `tucked` flows come from constants, or from a source that nearly everything reads; they would
    bury the picture, so they are drawn only while one of their ends is selected or under the
    pointer.
    """

    start: int
    end: int
    num_tensors: int
    num_bytes: int
    largest: str
    tucked: bool = False


@dataclass(frozen=True)
class Visible:
    """Visible members (op index or `~group`) with the open groups, and the flows between them.

    `node_of_op[i]` is the position in `members` that shows op i. `refused` are groups that stay
    closed because the budget is spent.
    """

    members: tuple[int, ...]
    opened: frozenset[int]
    refused: tuple[int, ...]
    node_of_op: tuple[int, ...]
    flows: tuple[Flow, ...]


def visible_set(graph: Graph, tree: ScopeTree, expanded: frozenset[str], *, budget: int) -> Visible:
    """Open groups from the outside in, in declared order, while at most `budget` nodes show."""
    opened, refused = [0], []
    count = len(tree.groups[0].members)
    layer = [0]
    while layer:
        inner = [~m for g in layer for m in tree.groups[g].members if m < 0]
        layer = []
        for index in inner:
            if tree.groups[index].id not in expanded:
                continue
            more = len(tree.groups[index].members) - 1
            if count + more > budget:
                refused.append(index)
            else:
                count += more
                layer.append(index)
        opened.extend(layer)
    is_open = frozenset(opened)
    members: list[int] = []
    node_of_op = [0] * len(graph.ops)
    stack = [~0] if tree.groups[0].members else []
    while stack:
        member = stack.pop()
        if member < 0 and ~member in is_open:
            stack.extend(reversed(tree.groups[~member].members))
            continue
        if member >= 0:
            node_of_op[member] = len(members)
        else:
            for op in tree.ops(~member):
                node_of_op[op] = len(members)
        members.append(member)
    constants = {i for i, m in enumerate(members) if m < 0 and tree.groups[~m].tucked}
    flows = _flows(graph, node_of_op, len(members), constants)
    return Visible(tuple(members), is_open, tuple(refused), tuple(node_of_op), flows)


def _flows(
    graph: Graph, node_of_op: list[int], num_nodes: int, constants: set[int]
) -> tuple[Flow, ...]:
    """Bytes between visible nodes, each tensor counted once per pair of nodes."""
    index = graph.index
    found: dict[tuple[int, int], tuple[int, int, int, str]] = {}
    for tensor in graph.tensors:
        if tensor.producer is None:
            continue
        start = node_of_op[index[tensor.producer]]
        ends = dict.fromkeys(node_of_op[index[c]] for c in tensor.consumers)
        for end in ends:
            if end == start:
                continue
            number, num_bytes, top, name = found.get((start, end), (0, 0, -1, ""))
            if tensor.num_bytes > top:
                top, name = tensor.num_bytes, tensor.name
            found[start, end] = (number + 1, num_bytes + tensor.num_bytes, top, name)
    fan_out, has_input = [0] * num_nodes, [False] * num_nodes
    for start, end in found:
        fan_out[start] += 1
        has_input[end] = True
    tucked = [
        i in constants or n > FAN_OUT or (n > FAN_OUT / 3 and not has_input[i])
        for i, n in enumerate(fan_out)
    ]
    return tuple(
        Flow(start, end, number, num_bytes, name, tucked[start])
        for (start, end), (number, num_bytes, _, name) in sorted(found.items())
    )
