"""Find ops by name, by regular expression or by type."""

from typing import Literal, get_args

from placement.constraints.regexes import search_names
from placement.core.graph import Graph
from placement.drawing.memo import remembered

By = Literal["name", "regex", "type"]
MOST_CHARACTERS = 200


@remembered(32, key=lambda graph: graph.fingerprint)
def search(graph: Graph, text: str, by: str) -> tuple[int, ...]:
    """Indices of the ops that match, in declared order; capital letters do not matter.

    `by` is "name" (any part of name or block), "regex" (anywhere in the name) or "type" (the whole
    type, or its beginning where no type is called exactly so). A ValueError says what is wrong with
    the text.
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
        for i, op in enumerate(graph.ops)
        if wanted in op.name.casefold() or wanted in op.scope.casefold()
    )


def _by_regex(graph: Graph, pattern: str) -> tuple[int, ...]:
    (searched,) = search_names([pattern], [op.name for op in graph.ops], any_case=True)
    if searched.too_slow:
        raise ValueError("This regular expression takes too long; write a simpler one.")
    if searched.error:
        raise ValueError(f"This is no regular expression: {searched.error}.")
    return searched.found
