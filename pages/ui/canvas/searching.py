"""Find ops by name, by regular expression or by type.

A regular expression can take for ever on some names, and both may come from anywhere, so it is
matched in a process of its own that ends when its time is up.
"""

import json
import subprocess
import sys
from collections.abc import Sequence

from pages.ui.canvas.memo import remembered
from placement.core.graph import Graph

BY = ("name", "regex", "type")
MOST_CHARACTERS = 200
PATIENCE_S = 3.0
MATCHER = """
import json, re, sys
pattern, names, any_case = json.load(sys.stdin)
wanted = re.compile(pattern, re.IGNORECASE if any_case else 0)
print(json.dumps([i for i, name in enumerate(names) if wanted.search(name)]))
"""


@remembered(32, key=lambda graph: graph.fingerprint)
def search(graph: Graph, text: str, by: str) -> tuple[int, ...]:
    """Indices of the ops that match, in declared order; capital letters do not matter.

    `by` is "name" (any part of name or block), "regex" (anywhere in the name) or "type" (the whole
    type, or its beginning where no type is called exactly so). A ValueError says what is wrong with
    the text.
    """
    if by not in BY:
        raise ValueError(f"Ops can be searched by {', '.join(BY)}, not by {by!r}.")
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"The search text is too long; use at most {MOST_CHARACTERS} characters.")
    wanted = text.strip().casefold()
    if not wanted:
        return ()
    if by == "regex":
        return by_regex(text, [op.name for op in graph.ops])
    if by == "type":
        kinds = [op.kind.casefold() for op in graph.ops]
        exact = tuple(i for i, kind in enumerate(kinds) if kind == wanted)
        return exact or tuple(i for i, kind in enumerate(kinds) if kind.startswith(wanted))
    return tuple(
        i
        for i, op in enumerate(graph.ops)
        if wanted in op.name.casefold() or wanted in op.scope.casefold()
    )


def by_regex(pattern: str, names: Sequence[str], *, any_case: bool = True) -> tuple[int, ...]:
    """Indices of the names that match; a ValueError where it is no expression or takes too long."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", MATCHER],
            input=json.dumps([pattern, names, any_case]),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    except subprocess.TimeoutExpired:
        raise ValueError("This regular expression takes too long; write a simpler one.") from None
    if done.returncode:
        reason = done.stderr.strip().rsplit("\n", 1)[-1].rpartition("rror: ")[2]
        raise ValueError(f"This is no regular expression: {reason or 'it cannot be read'}.")
    return tuple(json.loads(done.stdout))
