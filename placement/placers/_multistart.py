"""The shared course of the searches: start from cheap placements, improve each, take the best."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from placement.core.placement import Placement
from placement.core.problem import Objective, Problem
from placement.parallel.executor import HERE, Executor
from placement.search.chain import Chain, start_of
from placement.search.coarsening import blocks
from placement.search.feasible import best_of, final_s
from placement.search.improvement import improve
from placement.search.progress import Report


@dataclass(frozen=True, eq=False)
class Improved:
    """Where a search started, and the chains that went on from there, one each."""

    starts: Sequence[Placement]
    chains: Sequence[Chain]

    def best(self, problem: Problem) -> Placement:
        return best_of(problem, [*self.starts, *(chain.placement for chain in self.chains)])


def improved(
    problem: Problem,
    report: Report,
    *,
    start: str,
    seed: int,
    max_iterations: int,
    time_limit_s: float | None,
    make_chain: Callable[..., Chain],
    executor: Executor = HERE,
) -> Improved:
    """A chain from each of the placers named in `start`, all of them searched to the end.

    `make_chain` is `Chain` with the settings of the search. The time limit covers the starts before
    and the choice after the search, which takes as long for each as valuing one start does.
    """
    begun_s = time.perf_counter()
    begun = starts(problem, names_of(start))
    moved_together = blocks(problem)
    chains = [
        make_chain(problem, start_of(problem, placement), moved_together, seed=seed + 1000 * i)
        for i, placement in enumerate(begun)
    ]
    left_s = None
    if time_limit_s is not None:
        before_s = time.perf_counter()
        final_s(problem, begun[0])
        now_s = time.perf_counter()
        choice_s = (now_s - before_s) * (len(begun) + len(chains))
        left_s = max(0.0, time_limit_s - (now_s - begun_s) - choice_s)
    improve(
        problem,
        chains,
        report,
        max_iterations=max_iterations,
        time_limit_s=left_s,
        executor=executor,
    )
    return Improved(begun, chains)


def starts(problem: Problem, placers: Sequence[str]) -> list[Placement]:
    """Placements of cheap placers to start from; those that find none within memory are left out.

    List schedulers know only latency; for throughput their placements are starts all the same. If
    no placer has one, the first one's ValueError stands.
    """
    from placement.placers import placer_class

    found: list[Placement] = []
    refusal: ValueError | None = None
    for name in placers:
        kind = placer_class(name)
        known = problem.objective in kind.objectives
        asked = problem if known else replace(problem, objective=Objective.LATENCY)
        try:
            found.append(kind().place(asked))
        except ValueError as error:
            refusal = refusal or error
    if refusal is not None and not found:
        raise refusal
    return found


def names_of(text: str) -> list[str]:
    """Placer names in a setting, separated by commas; a ValueError if there is none."""
    found = [name for name in (part.strip() for part in text.split(",")) if name]
    if not found:
        raise ValueError(f"The setting start is {text!r}; name at least one placer to start from.")
    return found
