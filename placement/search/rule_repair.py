"""Placements made fit for the rules of their problem, by methods that do not know them."""

import numpy as np

from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.search.feasible import within_memory
from placement.simulator.call_costs import calls_of


def by_the_rules(problem: Problem, device_of_unit: Ints) -> Placement:
    """The placement once pins, support, memory and numbers of calls are respected.

    A unit that its device may not run goes to the one where it is fastest. A ValueError says what
    cannot be met.
    """
    units = np.arange(problem.num_units)
    elsewhere = np.where(problem.allowed, problem.unit_s, np.inf).argmin(axis=1)
    devices = np.where(problem.allowed[units, device_of_unit], device_of_unit, elsewhere)
    placement = within_memory(problem, lambda _: problem.placement_of(devices), scales=(1.0,))
    if problem.limits_calls:
        return one_call_each(problem, placement)
    return placement


def one_call_each(problem: Problem, placement: Placement) -> Placement:
    """The placement with only the call of most work left on each accelerator, the rest on CPUs.

    Raises a ValueError that names an op of another call which no CPU may run.
    """
    devices = problem.machine.devices
    hosts = [d for d, device in enumerate(devices) if device.on_host]
    device_of_kernel = problem.kernel_devices(placement)
    unit = problem.unit_of_kernel
    device_of_unit = np.zeros(problem.num_units, dtype=np.int64)
    device_of_unit[unit] = device_of_kernel
    while True:
        most: dict[int, tuple[float, int]] = {}
        calls = calls_of(problem, device_of_unit[unit])
        for i, call in enumerate(calls):
            work_s = float(problem.costs.compute_s[list(call.kernels), call.device].sum())
            most[call.device] = max(most.get(call.device, (-1.0, 0)), (work_s, -i))
        moved = False
        for i, call in enumerate(calls):
            if not devices[call.device].on_host and -most[call.device][1] != i:
                moved = True
                for u in sorted(set(unit[list(call.kernels)].tolist())):
                    device_of_unit[u] = _host_of(problem, u, hosts)
        if not moved:
            return problem.placement_of(device_of_unit)


def _host_of(problem: Problem, u: int, hosts: list[int]) -> int:
    allowed = [d for d in hosts if problem.allowed[u, d]]
    if not allowed:
        op = problem.graph.ops[problem.ops_of_unit[u][0]].name
        raise ValueError(
            f"Op {op!r} would need a second call of its accelerator and no CPU may run it; remove"
            " a pin or let a CPU run it."
        )
    return allowed[0]
