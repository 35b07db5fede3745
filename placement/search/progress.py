"""How far a search is, told to whoever waits for it and may end it."""

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """How far a search is: best value and bound in the objective's seconds, step `step` of `of`.

    `bound_s` is proven: no placement of the problem is faster. `note` says in words how the best
    came about; the last one given becomes the account of the placement.
    """

    best_s: float = math.inf
    bound_s: float = 0.0
    step: int = 0
    of: int = 0
    note: str = ""


# Returns False to ask for the best so far.
Report = Callable[[Progress], bool]


def quiet(progress: Progress) -> bool:
    """The report that tells nobody and never stops."""
    return True
