"""Find ops by name, expression or type, or from a selection: before it, after it, alike."""

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from placement.constraints.regexes import search_names
from placement.core.graph import Graph
from placement.drawing.alike import classes_of
from placement.drawing.layout.scopes import scope_tree
from placement.drawing.memo import remembered
from placement.drawing.names import names_of

By = Literal["name", "regex", "type"]
MOST_CHARACTERS = 200


@remembered(32, key=lambda graph: graph.fingerprint)
def search(graph: Graph, text: str, by: str) -> tuple[int, ...]:
    """Indices of the ops that match, in declared order; capital letters do not matter.

    `by` is "name" (any part of name or block, in the file or as shown), "regex" (anywhere in the
    name in the file) or "type" (the whole type, or its beginning where no type is called exactly
    so). A ValueError says what is wrong with the text.
    """
    if by not in get_args(By):
        raise ValueError(f"Ops can be searched by {', '.join(get_args(By))}, not by {by!r}.")
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"The search text is too long; use at most {MOST_CHARACTERS} characters.")
    wanted = text.strip().casefold()
    if not wanted:
        return ()
    if by == "regex":
        return _by_regex(graph, text)
    if by == "type":
        kinds = [op.kind.casefold() for op in graph.ops]
        exact = tuple(i for i, kind in enumerate(kinds) if kind == wanted)
        return exact or tuple(i for i, kind in enumerate(kinds) if kind.startswith(wanted))
    return tuple(
        i
        for i, (op, called) in enumerate(zip(graph.ops, names_of(graph).shown, strict=True))
        if any(wanted in said.casefold() for said in (op.name, op.scope, called))
    )


def _by_regex(graph: Graph, pattern: str) -> tuple[int, ...]:
    (searched,) = search_names([pattern], [op.name for op in graph.ops], any_case=True)
    if searched.too_slow:
        raise ValueError("This regular expression takes too long; write a simpler one.")
    if searched.error:
        raise ValueError(f"This is no regular expression: {searched.error}.")
    return searched.found


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
    """All blocks like the chosen ones; for ops that fill no block, all ops like them.

    A block counts as chosen when all of its ops are, and the outermost such block stands for them.
    """
    tree = scope_tree(graph)
    inside = [0] * len(tree.groups)
    for i in chosen:
        for group in (*tree.ancestors(tree.group_of[i]), 0):
            inside[group] += 1
    whole = [inside[g.index] == g.num_ops > 1 for g in tree.groups]
    shapes: set[int] = set()
    classes: set[str] = set()
    class_of = classes_of(graph)
    for i in chosen:
        around = [g for g in tree.ancestors(tree.group_of[i]) if whole[g]]
        if around:
            shapes.add(tree.groups[around[-1]].shape)
        else:
            classes.add(class_of[i])
    found = {i for i, of in enumerate(class_of) if of in classes}
    for block in tree.groups[1:]:
        if block.shape in shapes:
            found.update(tree.ops(block.index))
    return found
