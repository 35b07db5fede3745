"""Steps of ETF, m-ETF and m-SCT: of all ready ops and devices, the pair that can start first."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placement.core.costs import Floats
from placement.core.formatting import counted
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.timeline import Span
from placement.placers._lists.lists import (
    Children,
    Priorities,
    lanes_for,
    no_children,
    placement_from,
    static_levels,
    static_ranks,
)
from placement.placers._lists.partial_plan import (
    MOST_CHOICES,
    Offer,
    Plan,
    placement_and_scale,
    ranked,
    table_of_devices,
    with_scale,
)
from placement.search.step_parts import kernel_called, name_of_kernel, table
from placement.search.steps import Kind, Question, Step, Table, is_equal, ops_of_kernel
from placement.simulator.flat import flatten

if TYPE_CHECKING:
    from placement.placers._lists.earliest_compiled import Favourites, Pairs


def start_steps(
    problem: Problem,
    scales: Sequence[float],
    most: int,
    children: Children | None = None,
) -> Iterator[Step]:
    """The steps of ETF and m-ETF, which take the pair of kernel and device that starts first.

    With favourite `children` those of m-SCT, whose pseudo-code has one line more before them.
    """
    from placement.placers._lists import earliest_compiled as fast

    flat = flatten(problem)
    levels_s, rank = static_levels(flat), static_ranks(flat)
    num_kernels, num_devices = flat.compute_s.shape

    def planned(scale: float) -> tuple[Plan, fast.Pairs, fast.Favourites]:
        last = np.full(num_devices, -1, dtype=np.int64)
        favourite = children or no_children(num_kernels)
        chosen = fast.Favourites(children is not None, *favourite, last)
        plan = Plan(problem, flat, lanes_for(flat, insertion=False, scale=scale))
        return plan, fast.new_pairs(flat, rank), chosen

    def attempt(scale: float) -> Placement:
        plan, pairs, favourites = planned(scale)
        fast.earliest_start(flat, plan.lanes, pairs, favourites)
        return placement_from(problem, plan.lanes)

    placement, scale = placement_and_scale(problem, attempt, scales)
    plan, pairs, favourites = planned(scale)
    order = np.argsort(rank)
    levels = Priorities(order, levels_s, np.zeros(0), np.zeros(0, dtype=np.int64))
    why = "{op} has the highest level: no other op has so much work after it, one after another."
    first = 0 if children is None else 1
    begun = [ranked(plan, levels, why, "level", first)]
    yield from with_scale([_favourites(plan, children), *begun] if children else begun, scale)
    lanes, looks = plan.lanes, fast.LOOKS_PER_KERNEL * num_kernels
    fast.enter_ready(flat, lanes, pairs)
    for i in range(num_kernels):
        unplaced = lanes.device < 0
        if i == most:
            for _ in range(i, num_kernels):
                looks = fast.put_first(flat, lanes, pairs, favourites, looks)
            yield plan.rest(first + 2, np.flatnonzero(unplaced).tolist())
            break
        ready = np.flatnonzero(unplaced & (pairs.waiting == 0)).tolist()
        free = _kept_free(plan, pairs, favourites)
        offers = {k: _starts(plan, pairs, k) for k in ready}
        looks = fast.put_first(flat, lanes, pairs, favourites, looks)
        k = int(np.flatnonzero(unplaced & (lanes.device >= 0))[0])
        yield _started(plan, k, offers, rank, levels_s, free, first + 2)
    yield plan.ended(placement, first + 3)


class _Free(NamedTuple):
    """Until when each device (D,) keeps itself free for the favourite of its last kernel; `taken`
    is what it may start all the same, as (start in seconds, rank) by kernel and device."""

    until_s: list[float]
    last: list[int]
    favourite: list[int]
    taken: dict[tuple[int, int], tuple[float, int]]

    def counted(self, k: int, offer: Offer, rank: Ints) -> tuple[float, int]:
        """The start that a kernel counts with, and what breaks ties: the favourite goes first.

        A device that stays free for its favourite takes another kernel as if from then on only,
        though it starts at once if nothing else comes first.
        """
        d = offer.device
        found = self.taken.get((k, d))
        return found or (max(offer.start_s, self.until_s[d]), int(rank[k]))


def _kept_free(plan: Plan, pairs: "Pairs", favourites: "Favourites") -> _Free:
    from placement.placers._lists import earliest_compiled as fast

    flat, lanes = plan.flat, plan.lanes
    until_s, taken = [], {}
    for d in range(len(plan.names)):
        awake_s = fast.awake_until_s(flat, lanes, pairs, favourites, d)
        until_s.append(max(float(lanes.free_s[d]), awake_s))
        if awake_s > lanes.free_s[d]:
            k, start_s, rank = fast.reserved(flat, lanes, pairs, favourites, d)
            if k >= 0:
                taken[int(k), d] = float(start_s), int(rank)
    last = favourites.last.tolist()
    return _Free(until_s, last, [int(favourites.child[k]) if k >= 0 else -1 for k in last], taken)


def _favourites(plan: Plan, children: Children) -> Step:
    """The step in which m-SCT chooses which reader should follow each kernel without sending."""
    problem = plan.problem
    kernels = np.flatnonzero(children.child >= 0).tolist()
    rows = [
        (
            kernel_called(problem, k),
            kernel_called(problem, int(children.child[k])),
            float(children.move_s[k]),
        )
        for k in kernels
    ]
    columns: dict[str, Kind] = {"op": "text", "favourite reader": "text", "sending": "seconds"}
    why = (
        f"{counted(len(rows), 'op')} of {children.child.size} get a favourite reader, which should"
        " follow on the same device, so that nothing is sent."
    )
    return plan.begun(0, why, table("Favourite readers", columns, rows))


def _starts(plan: Plan, pairs: "Pairs", k: int) -> list[Offer]:
    """What a ready kernel would do on each device that it still counts for."""
    from placement.placers._lists import earliest_compiled as fast
    from placement.placers._lists.lanes_compiled import duration_s, inputs_ready

    flat, lanes = plan.flat, plan.lanes
    inputs_ready(flat, lanes, k, 0, len(plan.names))
    offers = []
    for d in np.flatnonzero(flat.allowed[flat.unit_of_kernel[k]]).tolist():
        if fast.gone(flat, lanes, pairs, k, d) or not fast.fits(flat, lanes, pairs, k, d):
            continue
        ready_s = float(lanes.ready_s[d])
        start_s = max(ready_s, float(lanes.free_s[d]))
        finish_s = start_s + duration_s(flat, lanes, k, d)
        offers.append(Offer(d, ready_s, start_s, finish_s, finish_s))
    return offers


class _Start(NamedTuple):
    """The earliest start that a ready kernel counts with, and what breaks ties, in that order."""

    start_s: float
    rank: int
    device: int


def _earliest(offers: dict[int, list[Offer]], free: _Free, rank: Ints) -> dict[int, _Start]:
    """The start of each ready kernel that fits somewhere, the one that goes first first."""
    found = {
        k: min(_Start(*free.counted(k, offer, rank), offer.device) for offer in each)
        for k, each in offers.items()
        if each
    }
    return dict(sorted(found.items(), key=lambda pair: pair[1]))


def _started(
    plan: Plan,
    k: int,
    offers: dict[int, list[Offer]],
    rank: Ints,
    levels_s: Floats,
    free: _Free,
    line: int,
) -> Step:
    """The pair that was taken, beside the other devices and the other ready kernels."""
    plan.note([k])
    problem, names, own = plan.problem, plan.names, offers[k]
    op, d, bar = kernel_called(problem, k), int(plan.lanes.device[k]), name_of_kernel(problem, k)
    earliest, at = _earliest(offers, free, rank), [offer.device for offer in own]
    asked = sorted({*list(earliest)[:MOST_CHOICES], k})
    return Step(
        line=line,
        why=_why(plan, k, earliest, levels_s, free),
        devices=plan.devices,
        focus=ops_of_kernel(problem, k),
        spans=tuple(plan.spans),
        ghosts=tuple(Span("compute", bar, names[o.device], o.start_s, o.finish_s) for o in own),
        winner=at.index(d) if d in at else -1,
        tables=(
            table_of_devices(plan, op, d, own, ""),
            _ready(plan, k, earliest, levels_s),
        ),
        question=_which(problem, k, asked, earliest, rank, levels_s),
    )


def _which(
    problem: Problem,
    k: int,
    kernels: list[int],
    earliest: dict[int, _Start],
    rank: Ints,
    levels_s: Floats,
) -> Question | None:
    """Which of some ready kernels starts next: of those as early and of one level any is right.

    Nothing where all of them are; a favourite reader counts before all others and has no equal.
    """

    def is_as_good(j: int) -> bool:
        own, other = earliest.get(k), earliest.get(j)
        return (
            own is not None
            and other is not None
            and is_equal(own.start_s, other.start_s)
            and is_equal(float(levels_s[k]), float(levels_s[j]))
            and (own.rank, other.rank) == (rank[k], rank[j])
        )

    equal = [j for j in kernels if j != k and is_as_good(j)]
    if len(equal) + 1 == len(kernels):
        return None
    choices = tuple(kernel_called(problem, j) for j in kernels)
    others = tuple(kernel_called(problem, j) for j in equal)
    return Question("Which op starts next?", choices, kernel_called(problem, k), others)


def _why(plan: Plan, k: int, earliest: dict[int, _Start], levels_s: Floats, free: _Free) -> str:
    """Why a kernel was taken, in one sentence: what a device stays free for goes before ties."""
    problem, lanes = plan.problem, plan.lanes
    op, d, start_s = kernel_called(problem, k), int(lanes.device[k]), float(lanes.start_s[k])
    device = plan.names[d]
    # What went where most room is, as it fits nowhere, has counted for no device.
    own_s = earliest[k].start_s if k in earliest else start_s
    if (k, d) in free.taken:
        last = kernel_called(problem, free.last[d])
        if free.favourite[d] == k:
            return f"{op} is the favourite reader of {last}, for which {device} has stayed free."
        return (
            f"{op} has the highest level of those that wait and its inputs are everywhere, so"
            f" {device} does not stay free for the favourite reader of {last}."
        )
    if own_s > start_s:
        last = kernel_called(problem, free.last[d])
        return (
            f"{op} starts on {device}, which stays free for the favourite reader of {last} until"
            f" {plan.time(own_s)}: nothing else comes before that."
        )
    tied = next((j for j, start in earliest.items() if j != k and start.start_s <= own_s), None)
    if tied is not None:
        higher = levels_s[k] > levels_s[tied]
        reason = "has the higher level" if higher else "stands first in the model"
        return (
            f"{op} and {kernel_called(problem, tied)} can both start at {plan.time(start_s)}; {op}"
            f" {reason} and goes to {device}."
        )
    return f"{op} can start first of all ready ops: at {plan.time(start_s)}, on {device}."


def _ready(plan: Plan, k: int, earliest: dict[int, _Start], levels_s: Floats) -> Table:
    """The ready kernels in the order in which they can start; the one that was taken is marked."""
    rows = [
        (
            kernel_called(plan.problem, j),
            plan.names[start.device],
            start.start_s,
            float(levels_s[j]),
        )
        for j, start in earliest.items()
    ]
    columns: dict[str, Kind] = {"op": "text", "device": "text"}
    columns |= {"start": "seconds", "level": "seconds"}
    marked = [i for i, j in enumerate(earliest) if j == k]
    return table("Ready ops, where each can start first", columns, rows, marked)
