"""Throughput of a placement: seconds between samples when many are in flight."""

import math
from collections.abc import Mapping

import numpy as np

from placement.core.graph import Ints
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.simulator import call_costs
from placement.simulator.lowering import lower


def loads_s(
    problem: Problem, schedule: Schedule, replicas: Mapping[str, int] | None = None
) -> dict[str, float]:
    """Seconds of work per sample by device and by link, in declared order.

    A device's load is its work (compute and call overheads) and all that it sends and receives; a
    link's load is what passes it. The slowest of them decides the time between samples. Host
    devices share memory, and in a full pipeline they compute at the same time: each one's work
    takes longer by `contention` times the share of the time between samples that each other one
    works, which is its work over the largest load. Two lanes of 10 ms each and a contention of 0.2
    have loads of 12 ms; lanes of 10 and 5 ms have loads of 11 and 6 ms.

    Under the execution "call" tensors move through host memory, once per device, and `replicas`
    of a device share its load (see call_costs.py).
    """
    if problem.execution == "call":
        return call_costs.loads_s(problem, _device_of_kernel(problem, schedule), replicas)
    tasks = lower(problem, schedule)
    names = [d.name for d in problem.machine.devices]
    works = dict.fromkeys(names, 0.0)
    for d, work_s in zip(tasks.device, tasks.work_s, strict=True):
        works[names[d]] += work_s
    loads = dict(works)
    for move in tasks.transfers:
        link = f"{names[move.src]}->{names[move.dst]}"
        loads[link] = loads.get(link, 0.0) + move.duration_s
        loads[names[move.src]] += move.duration_s
        loads[names[move.dst]] += move.duration_s
    most_s = max(loads.values())
    if problem.costs.contention and 0.0 < most_s < math.inf:
        on_host = [d.name for d in problem.machine.devices if d.on_host]
        together_s = sum(works[name] for name in on_host)
        for name in on_host:
            others_s = together_s - works[name]
            loads[name] += works[name] * problem.costs.contention * others_s / most_s
    return loads


def seconds_per_sample(
    problem: Problem, schedule: Schedule, replicas: Mapping[str, int] | None = None
) -> float:
    """The largest load: seconds between samples of a full pipeline."""
    return max(loads_s(problem, schedule, replicas).values())


def bottleneck(
    problem: Problem, schedule: Schedule, replicas: Mapping[str, int] | None = None
) -> str:
    """The device or link with the largest load, the first of equals in declared order."""
    loads = loads_s(problem, schedule, replicas)
    return max(loads, key=lambda name: loads[name])


def _device_of_kernel(problem: Problem, schedule: Schedule) -> Ints:
    index, machine = problem.kernels.index, problem.machine.index
    device = np.empty(len(problem.kernels.ops), dtype=np.int64)
    for segment in schedule.segments:
        device[[index[k] for k in segment.kernels]] = machine[segment.device]
    return device
