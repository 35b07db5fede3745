"""Steps of HEFT, CPoP and PEFT: each op in the order of a queue, where it finishes first."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from placement.core.costs import Floats
from placement.core.decoding import listed
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.timeline import Span
from placement.placers._lists.lists import Priorities, Wording, lanes_for, placement_from
from placement.placers._lists.partial_plan import (
    Offer,
    Plan,
    placement_and_scale,
    table_of_devices,
    with_scale,
)
from placement.search.feasible import SCALES
from placement.search.step_parts import kernel_called, name_of_kernel, table
from placement.search.steps import (
    Cell,
    Kind,
    Step,
    Table,
    is_equal,
    ops_of_kernel,
    placed_ops,
    question,
)
from placement.simulator.flat import flatten

# Ops of the queue that a step shows.
QUEUE = 8
# Devices that a sentence names besides the one that was chosen.
MOST_OTHERS = 3


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
    order = priorities.order
    plan, placement, scale = _planned(problem, priorities, insertion=insertion)
    yield from with_scale(first(plan), scale)
    for i in range(order.size):
        if i == most:
            _go_on(plan, priorities, i, order.size)
            yield plan.rest(wording.line, order[i:].tolist())
            break
        yield _next(plan, priorities, i, wording)
    yield plan.ended(placement, wording.last_line)


def finish_step_of(
    problem: Problem, priorities: Priorities, wording: Wording, op: str, *, insertion: bool
) -> Step | None:
    """The step of these methods that has put an op where the answer has it: the others are gone
    through as `place` does, all at once."""
    unit = problem.unit_of_op[problem.graph.index[op]]
    own = np.flatnonzero(problem.unit_of_kernel[priorities.order] == unit)
    if not own.size:
        return None
    plan, placement, _ = _planned(problem, priorities, insertion=insertion)
    _go_on(plan, priorities, 0, int(own[0]))
    step = _next(plan, priorities, int(own[0]), wording)
    is_there = placed_ops(problem, step)[op] == placement.device_of[op]
    return step if is_there else None


def _planned(
    problem: Problem, priorities: Priorities, *, insertion: bool
) -> tuple[Plan, Placement, float]:
    """An empty plan, the answer, and the share of memory with which the answer's plan was made."""
    flat = flatten(problem)

    def planned(scale: float) -> Plan:
        return Plan(problem, flat, lanes_for(flat, insertion=insertion, scale=scale))

    def attempt(scale: float) -> Placement:
        plan = planned(scale)
        _go_on(plan, priorities, 0, priorities.order.size)
        return placement_from(problem, plan.lanes)

    placement, scale = placement_and_scale(problem, attempt, SCALES)
    return planned(scale), placement, scale


def _go_on(plan: Plan, priorities: Priorities, start: int, end: int) -> None:
    """Schedule the kernels of these places in the queue, as `place` does."""
    from placement.placers._lists import lanes_compiled as fast

    order, _, left_s, wanted = priorities
    fast.earliest_finish(plan.flat, plan.lanes, order[start:end], left_s, wanted)


def _next(plan: Plan, priorities: Priorities, i: int, wording: Wording) -> Step:
    """The step of the kernel at a place in the queue, which comes next."""
    from placement.placers._lists import lanes_compiled as fast

    flat, lanes, (order, ranks_s, left_s, wanted) = plan.flat, plan.lanes, priorities
    k, found = int(order[i]), np.zeros(len(plan.names), dtype=np.bool_)
    unit = int(flat.unit_of_kernel[k])
    grouped = bool(lanes.device_of_unit[unit] >= 0)
    fast.candidates(flat, lanes, unit, found)
    fast.least_finish(flat, lanes, k, found, left_s[k])
    offers = _offers(plan, found)
    _go_on(plan, priorities, i, i + 1)
    d = int(lanes.device[k])
    queue = _queue(plan.problem, order[i : i + QUEUE].tolist(), ranks_s, wording.rank)
    return _chosen(plan, k, d, offers, queue, wording, grouped, fixed=d == wanted[k])


def _offers(plan: Plan, found: NDArray[np.bool_]) -> list[Offer]:
    lanes = plan.lanes
    return [
        Offer(
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
    offers: list[Offer],
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
    text = text if looks_ahead else f"Where does {op} finish first?"
    sums_s = {names[offer.device]: offer.sum_s for offer in offers}
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
        tables=(table_of_devices(plan, op, d, offers, wording.left if looks_ahead else ""), queue),
        question=question(text, names[d], sums_s) if asks else None,
    )


def _why(plan: Plan, op: str, d: int, offers: list[Offer], looks_ahead: bool) -> str:
    least_s = next(offer.sum_s for offer in offers if offer.device == d)
    equal = [plan.names[o.device] for o in offers if o.device != d and is_equal(o.sum_s, least_s)]
    later = [offer for offer in offers if not is_equal(offer.sum_s, least_s)]
    others = [f"{plan.names[o.device]} {plan.time(o.sum_s)}" for o in later[:MOST_OTHERS]]
    if len(later) > len(others):
        others[-1] += f" and {len(later) - len(others)} more"
    beside = f" ({', '.join(others)})" if others else ""
    said = "finish and what is left come to" if looks_ahead else "it would finish at"
    least = f"{said} {plan.time(least_s)}"
    if not equal:
        return f"{op} goes to {plan.names[d]}, where {least}{beside}."
    where = listed([plan.names[d], *equal])
    said = f"on each of {where} {least}{beside}; of equal ones the first is taken"
    return f"{op} goes to {plan.names[d]}: {said}."


def _queue(problem: Problem, kernels: list[int], ranks_s: Floats, rank: str) -> Table:
    """The kernel that is looked at, and those that come next."""
    rows = [(kernel_called(problem, k), float(ranks_s[k])) for k in kernels]
    return table("Queue", {"op": "text", rank: "seconds"}, rows, (0,))


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
    text = "Which device runs the critical path fastest?"
    asked = question(text, names[device], dict(rows))
    step = plan.begun(1, why, totals, asked=asked)
    return replace(step, focus=tuple(op for k in path.tolist() for op in ops_of_kernel(problem, k)))
