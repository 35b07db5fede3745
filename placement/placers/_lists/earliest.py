"""ETF and its descendants from Python: levels, favourite children, one run of the compiled loop."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.placers._lists.lists import lanes_for, mean_costs, placement_from
from placement.search.feasible import SCALES, within_memory
from placement.search.progress import Progress, Report
from placement.simulator.flat import Flat, flatten


class Children(NamedTuple):
    """Favourite child of each kernel (K,), -1 for none, and mean seconds to send it its input."""

    child: Ints
    move_s: Floats


def no_children(num_kernels: int) -> Children:
    return Children(np.full(num_kernels, -1, dtype=np.int64), np.zeros(num_kernels))


def static_ranks(flat: Flat) -> Ints:
    """Place of each kernel (K,) by falling static level, ties in declared order.

    The static level is the longest path of mean compute to the end, without communication.
    """
    from placement.placers._lists.ranks_compiled import upward

    nothing = np.zeros(flat.producer.size)
    levels = upward(flat, mean_costs(flat).compute_s, nothing, nothing)
    rank = np.empty(levels.size, dtype=np.int64)
    rank[np.argsort(-levels, kind="stable")] = np.arange(levels.size)
    return rank


def earliest_start(
    problem: Problem,
    report: Report,
    children: Children | None = None,
    scales: Sequence[float] = SCALES,
) -> Placement:
    """The placement of one run with devices' memory as it is, or scaled until all of it fits."""
    from placement.placers._lists import earliest_compiled as fast

    flat = flatten(problem)
    rank = static_ranks(flat)
    favourite = no_children(rank.size) if children is None else children

    def attempt(scale: float) -> Placement:
        lanes = lanes_for(flat, insertion=False, scale=scale)
        last = np.full(lanes.free_s.size, -1, dtype=np.int64)
        favourites = fast.Favourites(favourite.child, favourite.move_s, last)
        fast.earliest_start(flat, lanes, fast.new_pairs(flat, rank), favourites)
        report(Progress(step=rank.size, of=rank.size))
        return placement_from(problem, lanes)

    return within_memory(problem, attempt, scales)
