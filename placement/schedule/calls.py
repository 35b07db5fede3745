"""Schedules of subgraph calls: what a placement runs under the execution "call".

Tarnawski et al., NeurIPS 2020: an accelerator's kernels are one call (or few), a CPU's run one by
one; see simulator/call_costs.py for what they cost.
"""

from itertools import groupby

from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.schedule import Schedule, Segment
from placement.schedule.order import kernel_order
from placement.simulator.call_costs import Call, calls_of


def make_call_schedule(problem: Problem, placement: Placement) -> Schedule:
    """The schedule of a placement: accelerator calls in a valid order, each CPU kernel by itself.

    A placement that states both how many calls an accelerator may make and an order has its calls
    in this order: neighbours on one accelerator are one call. Where that makes more calls than it
    states (it may have been edited since), and for all others, the calls are the fewest found.
    """
    device_of_kernel = problem.kernel_devices(placement)
    calls = _in_order(problem, placement, device_of_kernel)
    ops, devices = problem.kernels.ops, problem.machine.devices
    return Schedule(
        tuple(
            Segment(devices[call.device].name, tuple(ops[k].name for k in call.kernels))
            for call in calls or calls_of(problem, device_of_kernel)
        )
    )


def _in_order(
    problem: Problem, placement: Placement, device_of_kernel: Ints
) -> tuple[Call, ...] | None:
    """The calls that the placement's order spells, None where it does not decide them."""
    if placement.calls is None or not placement.order:
        return None
    devices = problem.machine.devices
    made = dict.fromkeys((d.name for d in devices), 0)
    calls = []
    for d, run in groupby(
        kernel_order(problem, placement, device_of_kernel),
        key=device_of_kernel.tolist().__getitem__,
    ):
        if devices[d].on_host:
            calls += [Call(d, (k,)) for k in run]
        else:
            calls.append(Call(d, tuple(run)))
            made[devices[d].name] += 1
    if any(number > placement.calls.get(name, 1) for name, number in made.items()):
        return None
    return tuple(calls)
