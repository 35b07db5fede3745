"""Steps of list schedulers: the compiled loops of `place`, asked for one kernel at a time.

The state of a list scheduler is its lanes, so calling its loop for a part of its order and looking
at the lanes before and after is the method itself, step by step. What is compared in a step is what
the loop has written down there when it chose.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement.core.costs import Floats
from placement.core.decoding import listed
from placement.core.formatting import counted, percent, seconds
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
from placement.search.feasible import SCALES, within_memory
from placement.search.step_parts import (
    device_names,
    ended,
    kernel_called,
    name_of_kernel,
    table,
)
from placement.search.steps import Cell, Kind, Question, Step, Table, ops_of_kernel
from placement.simulator.flat import Flat, flatten

if TYPE_CHECKING:
    from placement.placers._lists.earliest_compiled import Favourites, Pairs
    from placement.placers._lists.lanes_compiled import Lanes

# Ops that a question offers, and that a queue shows.
MOST_CHOICES, QUEUE = 6, 8
# Devices that a sentence names besides the one that was chosen.
MOST_OTHERS = 3


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


class Plan:
    """What is in the lanes of a list scheduler, as the spans of a partial timeline."""

    def __init__(self, problem: Problem, flat: Flat, lanes: "Lanes") -> None:
        self.problem, self.flat, self.lanes = problem, flat, lanes
        self.names = device_names(problem)
        self.spans: list[Span] = []
        self._sent = lanes.arrival_s >= 0

    @property
    def devices(self) -> tuple[int, ...]:
        return tuple(self.lanes.device_of_unit.tolist())

    def note(self, kernels: Sequence[int]) -> None:
        """Add the spans of kernels that were scheduled just now, and of what was sent to them."""
        lanes, flat = self.lanes, self.flat
        sent = lanes.arrival_s >= 0
        for t, d in np.argwhere(sent & ~self._sent).tolist():
            p = int(flat.producer[t])
            src = int(lanes.device[p]) if p >= 0 else flat.host
            takes_s = float(flat.move_s[src, d] + flat.tensor_bytes[t] * flat.s_per_byte[src, d])
            tensor, end_s = self.problem.kernels.tensors[t], float(lanes.arrival_s[t, d])
            link = f"{self.names[src]}->{self.names[d]}"
            start_s = max(0.0, end_s - takes_s)
            size = tensor.num_bytes
            self.spans.append(Span("transfer", tensor.name, link, start_s, end_s, num_bytes=size))
        self._sent = sent
        for k in kernels:
            name, device = name_of_kernel(self.problem, k), self.names[int(lanes.device[k])]
            start_s, end_s = float(lanes.start_s[k]), float(lanes.end_s[k])
            self.spans.append(Span("compute", name, device, start_s, end_s))

    def begun(self, line: int, why: str, *tables: Table, question: Question | None = None) -> Step:
        """The step before anything is placed."""
        return Step(line=line, why=why, devices=self.devices, tables=tables, question=question)

    def rest(self, line: int, kernels: Sequence[int]) -> Step:
        """One step for all that is left beyond the number of steps that were asked for."""
        self.note(kernels)
        why = f"The other {counted(len(kernels), 'op')} went the same way, one after another."
        return Step(line=line, why=why, devices=self.devices, spans=tuple(self.spans))

    def ended(self, placement: Placement, line: int) -> Step:
        """The last step: the plan as a placement, mended where it did not fit into memory."""
        own = placement_from(self.problem, self.lanes)
        end_s = max((span.end_s for span in self.spans), default=0.0)
        said = f"All ops are placed; in this plan the last one ends after {self.time(end_s)}."
        if own != placement:
            pairs = own.device_of.items()
            moved = sum(placement.device_of[op] != device for op, device in pairs)
            said = f"The plan did not fit into memory, so {counted(moved, 'op')} moved elsewhere."
        return ended(self.problem, placement, line, said)

    def time(self, value_s: float) -> str:
        return seconds(value_s, self.problem.unit)


def finish_steps(
    problem: Problem,
    priorities: Priorities,
    first: Callable[[Plan], Sequence[Step]],
    wording: Wording,
    most: int,
    *,
    insertion: bool,
) -> Iterator[Step]:
    """The steps of HEFT, CPoP and PEFT: `first` makes those before the loop, `most` is the most."""
    from placement.placers._lists import lanes_compiled as fast

    flat, (order, ranks_s, left_s, wanted) = flatten(problem), priorities

    def planned(scale: float) -> Plan:
        return Plan(problem, flat, lanes_for(flat, insertion=insertion, scale=scale))

    def attempt(scale: float) -> Placement:
        lanes = planned(scale).lanes
        fast.earliest_finish(flat, lanes, order, left_s, wanted)
        return placement_from(problem, lanes)

    placement, scale = _placement_and_scale(problem, attempt, SCALES)
    plan = planned(scale)
    yield from _with_scale(first(plan), scale)
    lanes, found = plan.lanes, np.zeros(len(plan.names), dtype=np.bool_)
    for i, k in enumerate(order.tolist()):
        if i == most:
            fast.earliest_finish(flat, lanes, order[i:], left_s, wanted)
            yield plan.rest(wording.line, order[i:].tolist())
            break
        unit = int(flat.unit_of_kernel[k])
        grouped = bool(lanes.device_of_unit[unit] >= 0)
        fast.candidates(flat, lanes, unit, found)
        fast.least_finish(flat, lanes, k, found, left_s[k])
        offers = _offers(plan, found)
        fast.earliest_finish(flat, lanes, order[i : i + 1], left_s, wanted)
        d = int(lanes.device[k])
        queue = _queue(problem, order[i : i + QUEUE].tolist(), ranks_s, wording.rank)
        yield _chosen(plan, k, d, offers, queue, wording, grouped, fixed=d == wanted[k])
    yield plan.ended(placement, wording.last_line)


class _Offer(NamedTuple):
    """What the loop has found for a kernel on a device that may take it, in seconds."""

    device: int
    ready_s: float
    start_s: float
    finish_s: float
    sum_s: float


def _offers(plan: Plan, found: NDArray[np.bool_]) -> list[_Offer]:
    lanes = plan.lanes
    return [
        _Offer(
            d,
            float(lanes.ready_s[d]),
            float(lanes.begins_s[d]),
            float(lanes.ends_s[d]),
            float(lanes.offer_s[d]),
        )
        for d in np.flatnonzero(found).tolist()
    ]


def _chosen(
    plan: Plan,
    k: int,
    d: int,
    offers: list[_Offer],
    queue: Table,
    wording: Wording,
    grouped: bool,
    *,
    fixed: bool,
) -> Step:
    """A kernel on the device that the loop has chosen, beside what it compared."""
    plan.note([k])
    problem, names, op = plan.problem, plan.names, kernel_called(plan.problem, k)
    bar, looks_ahead = name_of_kernel(problem, k), any(o.sum_s != o.finish_s for o in offers)
    only = [offer.device for offer in offers] == [d]
    if grouped:
        why = f"{op} belongs to what is on {names[d]} already."
    elif fixed:
        why = f"{op} is on the critical path, whose device is {names[d]}."
    elif only:
        why = f"Only {names[d]} can take {op}: no other may run it, or none has room for it."
    else:
        why = _why(plan, op, d, offers, looks_ahead)
    asks = not (grouped or fixed or only)
    text = f"Where are the finish of {op} and what is left after it least?"
    question = Question(
        text if looks_ahead else f"Where does {op} finish first?",
        tuple(names[offer.device] for offer in offers),
        names[d],
    )
    return Step(
        line=wording.line_if_fixed if fixed else wording.line,
        why=why,
        devices=plan.devices,
        focus=ops_of_kernel(problem, k),
        spans=tuple(plan.spans),
        ghosts=tuple(
            Span("compute", bar, names[offer.device], offer.start_s, offer.finish_s)
            for offer in offers
        ),
        winner=[offer.device for offer in offers].index(d),
        tables=(_table_of(plan, op, d, offers, wording.left if looks_ahead else ""), queue),
        question=question if asks else None,
    )


def _why(plan: Plan, op: str, d: int, offers: list[_Offer], looks_ahead: bool) -> str:
    least = min(offer.sum_s for offer in offers)
    sums = {offer.device: plan.time(offer.sum_s) for offer in offers}
    others = [f"{plan.names[e]} {sum_s}" for e, sum_s in sums.items() if e != d][:MOST_OTHERS]
    rest = len(sums) - 1 - len(others)
    more = f" and {rest} more" if rest else ""
    said = "finish and what is left come to" if looks_ahead else "it would finish at"
    tied = any(offer.device != d and offer.sum_s <= least for offer in offers)
    end = "; of equal ones the first is taken" if tied else ""
    others_said = f"({', '.join(others)}{more}){end}"
    return f"{op} goes to {plan.names[d]}, where {said} {sums[d]} {others_said}."


def _table_of(plan: Plan, op: str, d: int, offers: list[_Offer], left: str) -> Table:
    """A row for each device; `left` is the name of what is left, empty where nothing is."""
    columns: dict[str, Kind] = {"device": "text", "ready": "seconds", "start": "seconds"}
    columns["finish"] = "seconds"
    if left:
        columns |= {left: "seconds", "sum": "seconds"}
    by_device = {offer.device: offer for offer in offers}
    rows: list[tuple[Cell, ...]] = []
    for e, name in enumerate(plan.names):
        offer = by_device.get(e)
        cells: Sequence[Cell] = [None] * (len(columns) - 1)
        if offer is not None:
            cells = [*offer[1:4], offer.sum_s - offer.finish_s, offer.sum_s][: len(cells)]
        rows.append((name, *cells))
    return table(f"{op} on each device", columns, rows, (d,))


def _queue(problem: Problem, kernels: list[int], ranks_s: Floats, rank: str) -> Table:
    """The kernel that is looked at, and those that come next."""
    rows = [(kernel_called(problem, k), float(ranks_s[k])) for k in kernels]
    return table("Queue", {"op": "text", rank: "seconds"}, rows, (0,))


def ranked(plan: Plan, priorities: Priorities, why: str, rank: str, line: int = 0) -> Step:
    """The first step of a method that goes by ranks: all of them, in the order of its queue.

    `why` says it of the first "{op}".
    """
    order = priorities.order.tolist()
    names = [kernel_called(plan.problem, k) for k in order]
    said = why.format(op=names[0]) if names else "There is no op to place."
    rows = [(n, float(priorities.ranks_s[k])) for n, k in zip(names, order, strict=True)]
    choices = tuple(kernel_called(plan.problem, k) for k in sorted(order[:MOST_CHOICES]))
    asked = Question("Which op comes first?", choices, names[0]) if len(choices) > 1 else None
    ranks = table("Ranks", {"op": "text", rank: "seconds"}, rows)
    return plan.begun(line, said, ranks, question=asked)


def table_ahead(plan: Plan, priorities: Priorities) -> Step:
    """The step in which PEFT works out, from the last op to the first, what is left after each."""
    problem, order = plan.problem, priorities.order.tolist()
    rows: list[tuple[Cell, ...]] = [
        (kernel_called(problem, k), *priorities.left_s[k].tolist()) for k in reversed(order)
    ]
    columns: dict[str, Kind] = {"op": "text", **dict.fromkeys(plan.names, "seconds")}
    why = (
        "After the last ops nothing is left; before them, each op takes the best way on for each"
        " device that it may have run on, as if all devices were free."
    )
    return plan.begun(0, why, table("What is left after an op", columns, rows))


def path_on_one_device(plan: Plan, path: Ints, path_s: Floats, device: int) -> Step:
    """The step in which CPoP gives the critical path one device."""
    names, problem = plan.names, plan.problem
    rows = [(name, float(path_s[d])) for d, name in enumerate(names)]
    ops = [kernel_called(problem, k) for k in path.tolist()]
    columns: dict[str, Kind] = {"device": "text", "whole path": "seconds"}
    totals = table("The critical path on one device", columns, rows, (device,))
    why = (
        f"The longest way leads through {listed(ops)}; {names[device]} runs them fastest, in"
        f" {plan.time(float(path_s[device]))}."
    )
    question = Question("Which device runs the critical path fastest?", tuple(names), names[device])
    step = plan.begun(1, why, totals, question=question if len(names) > 1 else None)
    return replace(step, focus=tuple(op for k in path.tolist() for op in ops_of_kernel(problem, k)))


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
        chosen = fast.Favourites(*(children or no_children(num_kernels)), last)
        plan = Plan(problem, flat, lanes_for(flat, insertion=False, scale=scale))
        return plan, fast.new_pairs(flat, rank), chosen

    def attempt(scale: float) -> Placement:
        plan, pairs, favourites = planned(scale)
        fast.earliest_start(flat, plan.lanes, pairs, favourites)
        return placement_from(problem, plan.lanes)

    placement, scale = _placement_and_scale(problem, attempt, scales)
    plan, pairs, favourites = planned(scale)
    order = np.argsort(rank)
    levels = Priorities(order, levels_s, np.zeros(0), np.zeros(0, dtype=np.int64))
    why = "{op} has the highest level: no other op has so much work after it, one after another."
    first = 0 if children is None else 1
    begun = [ranked(plan, levels, why, "level", first)]
    yield from _with_scale([_favourites(plan, children), *begun] if children else begun, scale)
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

    def counted(self, k: int, offer: _Offer, rank: Ints) -> tuple[float, int]:
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


def _starts(plan: Plan, pairs: "Pairs", k: int) -> list[_Offer]:
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
        offers.append(_Offer(d, ready_s, start_s, finish_s, finish_s))
    return offers


def _started(
    plan: Plan,
    k: int,
    offers: dict[int, list[_Offer]],
    rank: Ints,
    levels_s: Floats,
    free: _Free,
    line: int,
) -> Step:
    """The pair that was taken, beside the other devices and the other ready kernels."""
    plan.note([k])
    problem, names, lanes = plan.problem, plan.names, plan.lanes
    op, d, own = kernel_called(problem, k), int(lanes.device[k]), offers[k]
    firsts = {
        j: min(each, key=lambda o: (*free.counted(j, o, rank), o.device))
        for j, each in offers.items()
        if each
    }
    by_start = sorted(firsts, key=lambda j: (*free.counted(j, firsts[j], rank), firsts[j].device))
    counts_s = {j: free.counted(j, offer, rank)[0] for j, offer in firsts.items()}
    rows = [
        (
            kernel_called(problem, j),
            names[firsts[j].device],
            counts_s[j],
            float(levels_s[j]),
        )
        for j in by_start
    ]
    columns: dict[str, Kind] = {"op": "text", "device": "text"}
    columns |= {"start": "seconds", "level": "seconds"}
    marked = [i for i, j in enumerate(by_start) if j == k]
    start_s = float(lanes.start_s[k])
    # What went where most room is, as it fits nowhere, has counted for no device.
    own_s = counts_s.get(k, start_s)
    ties = [j for j in by_start if j != k and counts_s[j] <= own_s]
    why = f"{op} can start first of all ready ops: at {plan.time(start_s)}, on {names[d]}."
    if ties:
        also = kernel_called(problem, ties[0])
        higher = levels_s[k] > levels_s[ties[0]]
        reason = "has the higher level" if higher else "stands first in the model"
        why = (
            f"{op} and {also} can both start at {plan.time(start_s)}; {op} {reason} and goes to"
            f" {names[d]}."
        )
    if own_s > start_s:
        last = kernel_called(problem, free.last[d])
        why = (
            f"{op} starts on {names[d]}, which stays free for the favourite reader of {last} until"
            f" {plan.time(own_s)}: nothing else comes before that."
        )
    if (k, d) in free.taken:
        last = kernel_called(problem, free.last[d])
        if free.favourite[d] == k:
            why = f"{op} is the favourite reader of {last}, for which {names[d]} has stayed free."
        else:
            why = (
                f"{op} has the highest level of those that wait and its inputs are everywhere, so"
                f" {names[d]} does not stay free for the favourite reader of {last}."
            )
    choices = tuple(kernel_called(problem, j) for j in sorted({*by_start[:MOST_CHOICES], k}))
    bar = name_of_kernel(problem, k)
    ghosts = tuple(Span("compute", bar, names[o.device], o.start_s, o.finish_s) for o in own)
    at = [o.device for o in own]
    return Step(
        line=line,
        why=why,
        devices=plan.devices,
        focus=ops_of_kernel(problem, k),
        spans=tuple(plan.spans),
        ghosts=ghosts,
        winner=at.index(d) if d in at else -1,
        tables=(
            _table_of(plan, op, d, own, ""),
            table("Ready ops, where each can start first", columns, rows, marked),
        ),
        question=Question("Which op starts next?", choices, op) if len(choices) > 1 else None,
    )


def _placement_and_scale(
    problem: Problem, attempt: Callable[[float], Placement], scales: Sequence[float]
) -> tuple[Placement, float]:
    """What `place` answers, and the share of memory with which its last plan was made."""
    tried: list[float] = []

    def noted(scale: float) -> Placement:
        tried.append(scale)
        return attempt(scale)

    return within_memory(problem, noted, scales), tried[-1]


def _with_scale(steps: Sequence[Step], scale: float) -> Iterator[Step]:
    """The first steps, of which one says so if plans with all of the memory did not fit."""
    for i, step in enumerate(steps):
        if i == 0 and scale < 1:
            said = (
                f" Plans with more did not fit, so devices count with {percent(scale)} of memory."
            )
            step = replace(step, why=step.why + said)
        yield step
