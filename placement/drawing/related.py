"""What belongs to a selection: everything before it, everything after it, all of its kind."""

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from placement.core.graph import Graph
from placement.drawing.layout.scopes import scope_tree

Way = Literal["upstream", "downstream", "alike"]


def related(graph: Graph, ops: Iterable[str], way: str) -> tuple[str, ...]:
    """The ops with all that they depend on, all that depends on them, or all that are alike."""
    chosen = sorted({graph.index[name] for name in ops if name in graph.index})
    if way == "upstream":
        found = _reached(chosen, graph.predecessors)
    elif way == "downstream":
        found = _reached(chosen, graph.successors)
    elif way == "alike":
        found = _alike(graph, chosen)
    else:
        raise ValueError(f"{way!r} is no way to widen a selection; use one of {get_args(Way)}.")
    return tuple(graph.ops[i].name for i in sorted(found))


def _reached(chosen: Iterable[int], neighbours: Sequence[Sequence[int]]) -> set[int]:
    found = set(chosen)
    waiting = list(found)
    while waiting:
        for other in neighbours[waiting.pop()]:
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found


def _alike(graph: Graph, chosen: Sequence[int]) -> set[int]:
    """All blocks built like the chosen ones; for ops that fill no block, all ops of their type.

    A block counts as chosen when all of its ops are, and the outermost such block stands for them.
    """
    tree = scope_tree(graph)
    inside = [0] * len(tree.groups)
    for i in chosen:
        for group in (*tree.ancestors(tree.group_of[i]), 0):
            inside[group] += 1
    whole = [inside[g.index] == g.num_ops > 1 for g in tree.groups]
    shapes: set[int] = set()
    kinds: set[str] = set()
    for i in chosen:
        around = [g for g in tree.ancestors(tree.group_of[i]) if whole[g]]
        if around:
            shapes.add(tree.groups[around[-1]].shape)
        else:
            kinds.add(graph.ops[i].kind)
    found = {i for i, op in enumerate(graph.ops) if op.kind in kinds}
    for block in tree.groups[1:]:
        if block.shape in shapes:
            found.update(tree.ops(block.index))
    return found
