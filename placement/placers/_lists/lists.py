"""What list schedulers share on the Python side: mean costs, fresh lanes, levels, the placement.

HEFT, CPoP and PEFT take kernels in an order, each where it ends first (`earliest_finish`); ETF and
its descendants take the pair of kernel and device that can start first (`earliest_start`).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.schedule.order import by_priority
from placement.search.feasible import SCALES, within_memory
from placement.search.progress import Progress, Report
from placement.simulator.flat import Flat, flatten

if TYPE_CHECKING:
    from placement.placers._lists.lanes_compiled import Lanes


class MeanCosts(NamedTuple):
    """Costs before any device is chosen; see `mean_costs`."""

    compute_s: Floats
    move_s: Floats
    back_s: Floats


class Wording(NamedTuple):
    """How a method calls what its loop compares, and the lines of its pseudo-code.

    `rank` is what its queue goes by and `left` what is left after an op on a device. `line` is
    where a device is chosen, `line_if_fixed` where none is left to choose, `last_line` the end.
    """

    rank: str
    left: str
    line: int
    line_if_fixed: int
    last_line: int


def mean_costs(flat: Flat) -> MeanCosts:
    """Compute per kernel (K,), a tensor's way to another device and between device and host (T,).

    A kernel that a device does not support is averaged over those that do; a move is averaged over
    pairs of different devices. The way to the host counts by the share of devices that have memory
    of their own.
    """
    supported = np.isfinite(flat.compute_s)
    total_s = np.where(supported, flat.compute_s, 0.0).sum(axis=1)
    num_devices = flat.on_host.size
    pairs = max(1, num_devices * (num_devices - 1))
    move_s = flat.move_s.sum() / pairs + flat.tensor_bytes * (flat.s_per_byte.sum() / pairs)
    share = float((~flat.on_host).mean()) if flat.on_host.any() else 0.0
    return MeanCosts(total_s / np.maximum(supported.sum(axis=1), 1), move_s, share * move_s)


def way_back_s(flat: Flat) -> Floats:
    """Seconds (K, D) that a kernel's model outputs take from each device to the host."""
    seconds = np.zeros(flat.compute_s.shape)
    if flat.host >= 0:
        outputs = np.flatnonzero(flat.is_output & (flat.producer >= 0))
        for d in np.flatnonzero(~flat.on_host).tolist():
            move_s = flat.move_s[d, flat.host] + flat.tensor_bytes * flat.s_per_byte[d, flat.host]
            np.add.at(seconds[:, d], flat.producer[outputs], move_s[outputs])
    return seconds


def lanes_for(flat: Flat, *, insertion: bool, scale: float = 1.0) -> "Lanes":
    """Lanes with nothing scheduled, on devices whose limits are scaled; infinity lifts them."""
    from placement.placers._lists.lanes_compiled import new_lanes

    limit_bytes = np.full(flat.limit_bytes.size, np.inf)
    if np.isfinite(scale):
        limit_bytes = flat.limit_bytes * scale
    return new_lanes(flat, limit_bytes, insertion=insertion)


def falling(problem: Problem, ranks: Floats) -> Ints:
    """Kernels in topological order by falling rank, ties in declared order."""
    return np.array(by_priority(problem.kernels, -ranks), dtype=np.int64)


def order_of(problem: Problem, lanes: "Lanes") -> list[int]:
    """Kernels by start time, data respected where times are equal."""
    num_kernels = lanes.start_s.size
    by_start = np.lexsort((np.arange(num_kernels), lanes.end_s, lanes.start_s))
    position = np.empty(num_kernels)
    position[by_start] = np.arange(num_kernels)
    return by_priority(problem.kernels, position)


def placement_from(problem: Problem, lanes: "Lanes") -> Placement:
    """The placement and order that a list scheduler arrived at."""
    devices = lanes.device_of_unit.copy()
    # A unit without kernels costs nothing anywhere.
    undecided = np.flatnonzero(devices < 0)
    devices[undecided] = problem.allowed[undecided].argmax(axis=1)
    return problem.placement_of(devices, order_of(problem, lanes))


class Priorities(NamedTuple):
    """What HEFT, CPoP and PEFT work out before they place anything.

    Kernels are taken in `order` (K,), which follows `ranks_s` (K,). `left_s` (K, D) are the seconds
    left after a kernel on a device; `wanted` (K,) fixes devices, -1 leaves the choice.
    """

    order: Ints
    ranks_s: Floats
    left_s: Floats
    wanted: Ints


def by_falling(problem: Problem, ranks_s: Floats, left_s: Floats) -> Priorities:
    """Kernels by falling rank, all devices left open."""
    anywhere = np.full(ranks_s.size, -1, dtype=np.int64)
    return Priorities(falling(problem, ranks_s), ranks_s, left_s, anywhere)


def earliest_finish(
    problem: Problem, priorities: Priorities, report: Report, *, insertion: bool
) -> Placement:
    """Kernels in order, each on the device where its end and what is left after it come first.

    Memory is as it is, or scaled until all of it fits.
    """
    from placement.placers._lists import lanes_compiled as fast

    flat, (order, _, left_s, wanted) = flatten(problem), priorities

    def attempt(scale: float) -> Placement:
        lanes = lanes_for(flat, insertion=insertion, scale=scale)
        fast.earliest_finish(flat, lanes, order, left_s, wanted)
        report(Progress(step=order.size, of=order.size))
        return placement_from(problem, lanes)

    return within_memory(problem, attempt)


class Children(NamedTuple):
    """Favourite child of each kernel (K,), -1 for none, and mean seconds to send it its input."""

    child: Ints
    move_s: Floats


def no_children(num_kernels: int) -> Children:
    return Children(np.full(num_kernels, -1, dtype=np.int64), np.zeros(num_kernels))


def static_levels(flat: Flat) -> Floats:
    """Longest path of mean compute from each kernel (K,) to the end, without communication."""
    from placement.placers._lists.ranks_compiled import upward

    nothing = np.zeros(flat.producer.size)
    return upward(flat, mean_costs(flat).compute_s, nothing, nothing)


def static_ranks(flat: Flat) -> Ints:
    """Place of each kernel (K,) by falling static level, ties in declared order."""
    levels = static_levels(flat)
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
        favourites = fast.Favourites(children is not None, *favourite, last)
        fast.earliest_start(flat, lanes, fast.new_pairs(flat, rank), favourites)
        report(Progress(step=rank.size, of=rank.size))
        return placement_from(problem, lanes)

    return within_memory(problem, attempt, scales)
