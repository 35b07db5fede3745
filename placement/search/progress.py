"""How far a search is, for whoever waits for it and may end it, and what it came to in words."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from placement.core.formatting import gap, percent, seconds


@dataclass(frozen=True)
class Progress:
    """How far a search is: best value and bound in the objective's seconds, step `step` of `of`.

    `bound_s` is proven: no placement of the problem is faster. `note` says in words how the best
    came about; the last one given becomes the account of the placement. Searches by samples count
    the placements that they valued as `evaluations`; learners also tell what their policy's
    placements come to on average and the entropy of its decisions, and in the end the group of
    each op (O,) that they formed; the last ones given become those of the result.
    """

    best_s: float = math.inf
    bound_s: float = 0.0
    step: int = 0
    of: int = 0
    note: str = ""
    evaluations: int = 0
    mean_s: float = math.inf
    entropy: float = 0.0
    groups: tuple[int, ...] = ()


# Returns False to ask for the best so far.
Report = Callable[[Progress], bool]


def quiet(progress: Progress) -> bool:
    """The report that tells nobody and never stops."""
    return True


def in_words(value_s: float) -> str:
    """A time, or that there is none."""
    return "no end" if math.isinf(value_s) else seconds(max(0.0, value_s))


def gap_in_words(value_s: float, bound_s: float) -> str:
    """How far a value can be from the best there is, by a proven bound."""
    if math.isinf(value_s):
        return "nothing within all limits yet"
    if value_s <= bound_s * (1 + 1e-9):
        return "proven optimal"
    if bound_s <= 0:
        return "no bound is known"
    return f"at most {percent(gap(value_s, bound_s) or 0.0)} above the optimum"
