"""Seconds of one sample by the definition of calls, which the simulator is held against."""

from collections.abc import Sequence

import numpy as np

from placement.core.graph import Ints, topological_order
from placement.core.problem import Problem
from placement.simulator.call_costs import Call, parts_s


def latency_s(problem: Problem, calls: Sequence[Call]) -> float:
    """Seconds of one sample; an accelerator runs its calls in the order given.

    Kernels in none of the calls run one by one on the first CPU. A ValueError says that the calls
    wait for each other in a cycle.
    """
    calls = _with_single_kernels(problem, calls)
    part = np.empty(len(problem.kernels.ops), dtype=np.int64)
    for i, call in enumerate(calls):
        part[list(call.kernels)] = i
    duration_s = parts_s(problem, part, np.array([c.device for c in calls])).tolist()
    successors = _call_successors(problem, calls, part)
    order = topological_order(len(calls), successors)
    if order is None:
        raise ValueError(
            "The calls wait for each other in a cycle; split one of them (--set calls=2 where the"
            " placer has it) or move kernels."
        )
    start_s = [0.0] * len(calls)
    end_s = [0.0] * len(calls)
    for i in order:
        end_s[i] = start_s[i] + duration_s[i]
        for j in successors[i]:
            start_s[j] = max(start_s[j], end_s[i])
    return max(end_s, default=0.0)


def _with_single_kernels(problem: Problem, calls: Sequence[Call]) -> list[Call]:
    """The accelerators' calls and every other kernel as a call of its own."""
    on_host = [d.on_host for d in problem.machine.devices]
    whole = [c for c in calls if not on_host[c.device]]
    cpu_of = {k: c.device for c in calls if on_host[c.device] for k in c.kernels}
    covered = {k for c in whole for k in c.kernels}
    rest = [k for k in range(len(problem.kernels.ops)) if k not in covered]
    if rest and True not in on_host:
        raise ValueError(
            f"Kernel {problem.kernels.ops[rest[0]].name!r} is in no call and the machine has no"
            " CPU; put it into one."
        )
    return whole + [Call(cpu_of.get(k, on_host.index(True)), (k,)) for k in rest]


def _call_successors(problem: Problem, calls: Sequence[Call], part: Ints) -> list[list[int]]:
    """Calls that wait for each call: those that read from it and its device's next one."""
    after: list[set[int]] = [set() for _ in calls]
    last: dict[int, int] = {}
    for i, call in enumerate(calls):
        if not problem.machine.devices[call.device].on_host:
            if call.device in last:
                after[last[call.device]].add(i)
            last[call.device] = i
    for k, readers in enumerate(problem.kernels.successors):
        after[int(part[k])].update(int(part[r]) for r in readers if part[r] != part[k])
    return [sorted(a) for a in after]
