"""m-ETF: earliest task first within memory.

Jeon et al., "Baechi: fast device placement of machine learning graphs", SoCC 2020. Like ETF, but a
pair of kernel and device counts only while the device has room for the kernel's weights and values
(those of all that moves with it); a pair without room is given up. Weights stay, a value goes when
its last reader is scheduled.
"""

from dataclasses import dataclass

from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.placers._lists.lists import earliest_start
from placement.placers.base import Placer, Report, quiet


@dataclass(frozen=True, kw_only=True)
class MEtf(Placer):
    summary = "Earliest task first, on devices that have room for it (Baechi)"
    paper = "Jeon et al.: Baechi, SoCC 2020"
    quick_up_to = 50_000

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        return earliest_start(problem, report)


PLACER = MEtf
