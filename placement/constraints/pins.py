"""Pins of whole units: ops that stay on a device, whatever a person or a method moves."""

from collections.abc import Collection, Iterable, Mapping

from placement.constraints.fusion import join_units
from placement.core.placement import Placement
from placement.core.problem import Problem


def whole(problem: Problem, pins: Mapping[str, str]) -> dict[str, str]:
    """The same pins for every op of each unit that has one, in declared order.

    Which ops move together may become known only after they were pinned; where their pins differ,
    the unit belongs to the device most of them name, ties to the first of the machine. Ops and
    devices that the problem does not have are left out.
    """
    graph, devices = problem.graph, problem.machine.index
    votes: dict[int, dict[str, int]] = {}
    for op, device in pins.items():
        if op in graph.index and device in devices:
            count = votes.setdefault(int(problem.unit_of_op[graph.index[op]]), {})
            count[device] = count.get(device, 0) + 1
    device_of_unit = {
        unit: min(count, key=lambda d: (-count[d], devices[d])) for unit, count in votes.items()
    }
    members = sorted(i for unit in device_of_unit for i in problem.ops_of_unit[unit])
    return {graph.ops[i].name: device_of_unit[int(problem.unit_of_op[i])] for i in members}


def all_but(problem: Problem, placement: Placement, movable: Collection[str]) -> dict[str, str]:
    """Pins that keep every unit without a movable op where the placement has most of it."""
    placement.require_graph(problem.graph)
    for device in sorted(set(placement.device_of.values())):
        problem.machine.device(device)
    free = _units_of(problem, movable)
    device_of = join_units(problem, placement.device_of)
    return {
        op.name: device_of[op.name]
        for op, unit in zip(problem.graph.ops, problem.unit_of_op.tolist(), strict=True)
        if unit not in free
    }


def held(
    problem: Problem,
    pins: Mapping[str, str],
    placement: Placement,
    movable: Collection[str],
) -> dict[str, str]:
    """Pins, and beside them what `all_but` the movable ops keeps: a pin says more than that."""
    pinned = _units_of(problem, pins)
    kept = all_but(problem, placement, movable)
    unit_of, index = problem.unit_of_op, problem.graph.index
    return {**pins, **{op: d for op, d in kept.items() if int(unit_of[index[op]]) not in pinned}}


def _units_of(problem: Problem, ops: Iterable[str]) -> set[int]:
    index = problem.graph.index
    return {int(problem.unit_of_op[index[op]]) for op in ops if op in index}
