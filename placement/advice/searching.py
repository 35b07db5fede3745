"""A whole search as something that another computer can do: a placer, and what it found."""

import time
from dataclasses import dataclass

from placement.advice.warming import warm_up
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.verb_options import PlaceOptions
from placement.parallel.calls import travels
from placement.parallel.executor import Threads
from placement.placers import placer_class
from placement.placers.base import Progress, build


@dataclass(frozen=True)
class Search:
    """What a placer found within some seconds, the bound that it proved, its account and groups."""

    placement: Placement
    seconds: float
    bound_s: float = 0.0
    account: str = ""
    groups: tuple[int, ...] = ()


@travels
def search(problem: Problem, options: PlaceOptions, num_lanes: int) -> Search | str:
    """What a placer finds on so many cores, or in a sentence why it finds nothing."""
    built = build(placer_class(options.placer), options, Threads(num_lanes))
    warm_up(built, problem)
    heard, begun_s = _Heard(), time.perf_counter()
    try:
        placement = built.place(problem, heard)
    except ValueError as error:
        return str(error)
    seconds = time.perf_counter() - begun_s
    return Search(placement, seconds, heard.bound_s, heard.account, heard.groups)


class _Heard:
    """Keeps the best bound, and the account and groups that were told last."""

    def __init__(self) -> None:
        self.bound_s, self.account, self.groups = 0.0, "", tuple[int, ...]()

    def __call__(self, progress: Progress) -> bool:
        self.bound_s = max(self.bound_s, progress.bound_s)
        self.account = progress.note or self.account
        self.groups = progress.groups or self.groups
        return True
