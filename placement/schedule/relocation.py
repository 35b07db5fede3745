"""A placement with ops moved: what it says of everything else stays.

The order of execution belongs to the placement. Where a method decided one, it is kept as it is;
where the order was left open, the one that the placement ran in until now is written down, so that
moving an op changes the order of nothing else. What moves keeps its place in the order, which is
valid on any device, because a move changes no dependency.
"""

from collections.abc import Mapping
from dataclasses import replace

from placement.core.placement import Placement
from placement.core.problem import Execution, Problem
from placement.schedule.order import order_of_ops


def moved(problem: Problem, placement: Placement, device_of: Mapping[str, str]) -> Placement:
    """The placement with some ops on other devices.

    Calls stay as many as they are. Replicas that no idle accelerator is left for are given up, one
    at a time from where most are.
    """
    after = {**placement.device_of, **device_of}
    replicas = placement.replicas and _with_room(problem, after, placement.replicas)
    return replace(
        placement, device_of=after, order=spelled_order(problem, placement), replicas=replicas
    )


def spelled_order(problem: Problem, placement: Placement) -> tuple[str, ...]:
    """The placement's order, or the one that it runs in by default.

    Under the execution "call" an open order stays open: there the calls are found, not listed.
    """
    if placement.order or problem.execution is Execution.CALL:
        return placement.order
    return order_of_ops(problem, placement)


def _with_room(
    problem: Problem, device_of: Mapping[str, str], replicas: Mapping[str, int]
) -> dict[str, int] | None:
    """As many of the replicas as there are idle accelerators for; None where none is left."""
    used = set(device_of.values())
    num_idle = sum(not d.on_host and d.name not in used for d in problem.machine.devices)
    counts = dict(replicas)
    shared = [name for name in counts if name in used]
    while sum(counts.get(name, 1) - 1 for name in shared) > num_idle:
        most = max(shared, key=lambda name: counts.get(name, 1))
        counts[most] -= 1
        if counts[most] == 1:
            del counts[most]
    return counts or None
