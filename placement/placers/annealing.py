"""Simulated annealing: moves of ops, groups and blocks, worse ones accepted while it is hot.

Kirkpatrick, Gelatt and Vecchi, "Optimization by simulated annealing", Science 220, 1983. Half of
the moves start at the critical path; a move is simulated only from the first kernel it touches.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from placement.core.placement import Placement
from placement.core.problem import Objective, Problem
from placement.parallel.executor import HERE
from placement.placers._multistart import Improved, improved
from placement.placers.base import Placer, Report, Step, quiet, setting
from placement.search.chain import Chain


@dataclass(frozen=True, kw_only=True)
class Annealing(Placer):
    summary = "Random moves, of which worse ones are accepted less and less (simulated annealing)"
    paper = "Kirkpatrick, Gelatt, Vecchi: Optimization by simulated annealing, Science 220, 1983"
    objectives = tuple(Objective)
    all_cores: ClassVar[bool] = True
    pseudo_code = (
        "start from the placements of quick methods, one search from each",
        "every move: an op or a block, half of them on the critical path, and a device for it;"
        " without room there, something of that device goes back in exchange",
        "    it takes no longer, or longer by d and chance allows exp(-d / temperature): accept",
        "    else take it back; cool down a little",
        "16 turns: if another order of the ops takes less with the same devices, take it",
        "answer the best of all searches and starts",
    )

    max_iterations: int = setting(
        0, "Moves of each chain; 0 takes as many as a few seconds allow, by the graph's size"
    )
    hot: float = setting(0.02, "Temperature at the start, as a share of the start's value")
    cold: float = setting(1e-5, "Temperature at the end, as a share of the start's value")
    start: str = setting(
        "heft,single", "Placers to start from, separated by commas; one chain each"
    )

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        return self._improved(problem, report).best(problem)

    def steps(self, problem: Problem, most: int, report: Report = quiet) -> Iterator[Step]:
        from placement.placers._steps.moves import walk

        return walk(problem, self._improved(problem, quiet, traced=most), most)

    def _improved(self, problem: Problem, report: Report, traced: int = 0) -> Improved:
        if not 0 < self.cold <= self.hot:
            raise ValueError(
                f"The temperatures are {self.hot} and {self.cold}; use 0 < cold <= hot."
            )
        return improved(
            problem,
            report,
            start=self.start,
            seed=self.seed,
            max_iterations=self.max_iterations,
            time_limit_s=self.time_limit_s,
            make_chain=partial(Chain, hot=self.hot, cold=self.cold, traced=traced),
            # What is traced is written down here.
            executor=HERE if traced else self.executor,
        )


PLACER = Annealing
