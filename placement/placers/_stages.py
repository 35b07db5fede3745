"""Pipeline stages of models: from the best contiguous split to a placement within memory."""

from collections.abc import Callable

from placement.core.formatting import gap, percent
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.search.feasible import final_s, remedy, within_memory
from placement.search.progress import Progress, Report
from placement.splits.stages.closing import SAME
from placement.splits.stages.search import Evaluate, Split

# Finds a split by a function that values splits, with a share of the devices' memory.
Search = Callable[[Evaluate, float], Split | None]


def place_stages(problem: Problem, report: Report, search: Search) -> Placement:
    """The placement of what a search finds; ValueError where no split keeps to memory and pins."""
    return found_stages(problem, report, search)[0]


def found_stages(problem: Problem, report: Report, search: Search) -> tuple[Placement, Split]:
    """The same beside the split that it comes from."""
    found: list[Split] = []

    def evaluate(device_of_unit: Ints) -> float:
        return final_s(problem, problem.placement_of(device_of_unit))

    def attempt(memory_share: float) -> Placement:
        split = search(evaluate, memory_share)
        if split is None and not found:
            raise ValueError(
                "No contiguous split was found that keeps to the devices' memory and to pins;"
                f" {remedy(problem)}, or choose a placer that needs no contiguous stages."
            )
        found.append(split or found[-1])
        return problem.placement_of(found[-1].device_of_unit)

    placement, split = within_memory(problem, attempt), found[-1]
    unchanged = problem.placement_of(split.device_of_unit) == placement
    note = _in_words(split) if unchanged else "contiguous stages, mended to fit memory"
    report(Progress(final_s(problem, placement), 0.0, 1, 1, note))
    return placement, split


def _in_words(split: Split) -> str:
    """What the split is among all that are contiguous, as far as that was proven."""
    if split.bound_s <= 0.0:
        return "contiguous stages"
    joined = "" if split.is_finest else f" into {split.num_blocks} joined blocks"
    which = f"contiguous split{joined}"
    if joined and split.value_s < split.bound_s * (1.0 - SAME):
        return f"better than the best {which}"
    if split.is_best:
        return f"the best {which}"
    above = gap(split.value_s, split.bound_s)
    return f"at most {percent(above or 0.0)} above the best {which}"
