"""Contiguity: no path of the forward graph leaves a device and returns to it.

Tarnawski et al., NeurIPS 2020, with their rule for training graphs. Units (colour classes) are
contracted. A unit of backward kernels alone stands for a forward kernel that is not there: each
edge between backward kernels that touches such a unit is a forward edge the other way round. Units
that lie on a cycle of forward edges belong together, or a path through it leaves their devices.
"""

from placement.core.graph import Ints
from placement.core.problem import Problem


def contiguity(problem: Problem, device_of_kernel: Ints) -> tuple[str, ...]:
    """Names of the devices, in declared order, whose forward part is not contiguous."""
    device = [-1] * problem.num_units
    for unit, d in zip(problem.unit_of_kernel.tolist(), device_of_kernel.tolist(), strict=True):
        device[unit] = d
    after = forward_units(problem)
    return tuple(
        problem.machine.devices[d].name
        for d in range(problem.num_devices)
        if _returns(after, device, d)
    )


def forward_units(problem: Problem) -> list[list[int]]:
    """Units that follow each unit in the forward graph, each once, in increasing order."""
    unit = problem.unit_of_kernel.tolist()
    backward = [op.phase == "backward" for op in problem.kernels.ops]
    has_forward = [False] * problem.num_units
    for k, late in enumerate(backward):
        has_forward[unit[k]] |= not late
    after: list[set[int]] = [set() for _ in has_forward]
    for k, readers in enumerate(problem.kernels.successors):
        for r in readers:
            if not backward[k] and not backward[r]:
                after[unit[k]].add(unit[r])
            elif (
                backward[k] and backward[r] and not (has_forward[unit[k]] and has_forward[unit[r]])
            ):
                after[unit[r]].add(unit[k])
    return [sorted(a - {u}) for u, a in enumerate(after)]


def _returns(after: list[list[int]], device: list[int], d: int) -> bool:
    """Whether a path leaves device d and comes back to it."""
    waiting = [v for u, at in enumerate(device) if at == d for v in after[u] if device[v] != d]
    seen = set(waiting)
    while waiting:
        for v in after[waiting.pop()]:
            if device[v] == d:
                return True
            if v not in seen:
                seen.add(v)
                waiting.append(v)
    return False
