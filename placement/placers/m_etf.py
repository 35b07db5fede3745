"""m-ETF: earliest task first within memory.

Jeon et al., "Baechi: fast device placement of machine learning graphs", SoCC 2020. Like ETF, but a
pair of kernel and device counts only while the device has room for the kernel's weights and values
(those of all that moves with it); a pair without room is given up. Weights stay, a value goes when
its last reader is scheduled.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.placers._lists.lists import earliest_start
from placement.placers.base import Placer, Report, Step, quiet
from placement.search.feasible import SCALES


@dataclass(frozen=True, kw_only=True)
class MEtf(Placer):
    summary = "Earliest task first, on devices that have room for it (Baechi)"
    paper = "Jeon et al.: Baechi, SoCC 2020"
    quick_up_to = 50_000
    tells_up_to = 300
    pseudo_code = (
        "level of an op = the longest way of mean times from its start to the end, nothing sent",
        "for each ready op and each device with room: when are its inputs there, when is it free",
        "put the op that can start first there; of several the one with the highest level",
        "cut the plan into calls and predict the step",
    )

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        return earliest_start(problem, report)

    def steps(self, problem: Problem, most: int, report: Report = quiet) -> Iterator[Step]:
        from placement.placers._lists.start_steps import start_steps

        return start_steps(problem, SCALES, most)


PLACER = MEtf
