"""m-ETF: earliest task first within memory.

Jeon et al., "Baechi: fast device placement of machine learning graphs", SoCC 2020. Like ETF, but a
pair of kernel and device counts only while the device has room for the kernel's weights and values
(those of all that moves with it); a pair without room is given up. Weights stay, a value goes when
its last reader is scheduled.
"""

from dataclasses import dataclass

from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.placers._lists.earliest import earliest_start, no_children, static_ranks
from placement.placers.base import Placer, Progress, Report, quiet
from placement.search.feasible import within_memory
from placement.simulator.flat import flatten


@dataclass(frozen=True, kw_only=True)
class MEtf(Placer):
    summary = "Earliest task first, on devices that have room for it (Baechi)"
    paper = "Jeon et al.: Baechi, SoCC 2020"
    quick_up_to = 50_000

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        flat = flatten(problem)
        rank, children = static_ranks(flat), no_children(flat.compute_s.shape[0])

        def attempt(scale: float) -> Placement:
            placement = earliest_start(problem, flat, rank, children, scale)
            report(Progress(step=rank.size, of=rank.size))
            return placement

        return within_memory(problem, attempt)


PLACER = MEtf
