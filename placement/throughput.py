"""Throughput of a placement: seconds between samples when many are in flight."""

import numpy as np

from placement import split_cost
from placement._tasks import lower
from placement.core.graph import Ints
from placement.core.problem import Problem
from placement.core.schedule import Schedule


def loads_s(problem: Problem, schedule: Schedule) -> dict[str, float]:
    """Seconds of work per sample by device and by link, in declared order.

    A device's load is its compute, its call overheads and all that it sends and receives; a link's
    load is what passes it. The slowest of them decides the time between samples. Under the
    execution "call" tensors move through host memory, once per device (see split_cost.py).
    """
    if problem.execution == "call":
        return split_cost.loads_s(problem, _device_of_kernel(problem, schedule))
    tasks = lower(problem, schedule)
    names = [d.name for d in problem.machine.devices]
    loads = dict.fromkeys(names, 0.0)
    for d, work_s in zip(tasks.device, tasks.work_s, strict=True):
        loads[names[d]] += work_s
    for move in tasks.transfers:
        link = f"{names[move.src]}->{names[move.dst]}"
        loads[link] = loads.get(link, 0.0) + move.duration_s
        loads[names[move.src]] += move.duration_s
        loads[names[move.dst]] += move.duration_s
    return loads


def seconds_per_sample(problem: Problem, schedule: Schedule) -> float:
    """The largest load: seconds between samples of a full pipeline."""
    return max(loads_s(problem, schedule).values())


def _device_of_kernel(problem: Problem, schedule: Schedule) -> Ints:
    index, machine = problem.kernels.index, problem.machine.index
    device = np.empty(len(problem.kernels.ops), dtype=np.int64)
    for segment in schedule.segments:
        device[[index[k] for k in segment.kernels]] = machine[segment.device]
    return device
