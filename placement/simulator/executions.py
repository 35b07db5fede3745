"""What a schedule is to the simulator, by the problem's execution: all that differs stands here.

Under "op" and "segment" tensors cross links. Under "call" (workload files, `call_costs.py`) a
segment moves its tensors inside itself through host memory, and CPUs have any width.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from placement.core.graph import Ints
from placement.core.problem import Execution, Problem
from placement.core.schedule import Schedule
from placement.simulator import call_costs
from placement.simulator.call_costs import Replicas
from placement.simulator.flat import Flat
from placement.simulator.lowering import Tasks, kernels_in_order, segment_devices, segment_tasks


@dataclass(frozen=True)
class CostModel:
    """The tasks of a schedule, its segments as kernels with what they cost, its loads, and the
    seconds between samples."""

    lower: Callable[[Problem, Schedule], Tasks]
    priced: Callable[[Problem, Schedule, Flat], Flat]
    loads_s: Callable[[Problem, Schedule, Replicas], dict[str, float]]
    sample_s: Callable[[Problem, Schedule, Replicas], float]


def lower(problem: Problem, schedule: Schedule) -> Tasks:
    """Tasks of a schedule on lanes, and transfers on links."""
    return COST_MODELS[problem.execution].lower(problem, schedule)


def _as_they_are(problem: Problem, schedule: Schedule, flat: Flat) -> Flat:
    return flat


def _call_tasks(problem: Problem, schedule: Schedule) -> Tasks:
    """Tasks under the cost model of calls: each has its transfers inside, CPUs have any width."""
    machine, segment_of = problem.machine, schedule.segment_of
    device = [machine.index[s.device] for s in schedule.segments]
    lanes: list[list[int]] = [[] for _ in machine.devices]
    for s, d in enumerate(device):
        if not machine.devices[d].on_host:
            lanes[d].append(s)
    reads: list[set[int]] = [set() for _ in device]
    for tensor in problem.kernels.tensors:
        if tensor.producer is not None:
            made = segment_of[tensor.producer]
            for reader in {segment_of[c] for c in tensor.consumers} - {made}:
                reads[reader].add(made)
    return Tasks(
        device=tuple(device),
        work_s=tuple(call_costs.call_durations_s(problem, schedule).tolist()),
        lanes=tuple(map(tuple, lanes)),
        reads=tuple(() for _ in device),
        local_reads=tuple(tuple(sorted(r)) for r in reads),
        sends=tuple(() for _ in device),
        at_start=(),
        transfers=(),
    )


def _as_calls(problem: Problem, schedule: Schedule, flat: Flat) -> Flat:
    """Segments that last as calls do, without transfers beside them, on CPUs of any width."""
    durations_s = call_costs.call_durations_s(problem, schedule)
    return flat._replace(
        compute_s=np.where(np.isfinite(flat.compute_s), durations_s[:, None], np.inf),
        call_s=np.zeros_like(flat.call_s),
        move_s=np.zeros_like(flat.move_s),
        s_per_byte=np.zeros_like(flat.s_per_byte),
        has_overhead=False,
        way_s=np.zeros_like(flat.move_s),
        way_s_per_byte=np.zeros_like(flat.s_per_byte),
        one_at_a_time=False,
        wide=flat.on_host,
    )


def _link_loads_s(problem: Problem, schedule: Schedule, replicas: Replicas) -> dict[str, float]:
    """What devices compute, send and receive, and what passes links; replicas are of calls.

    What passes links of one channel stands at the first of them.
    """
    tasks = segment_tasks(problem, schedule)
    names, channels = [d.name for d in problem.machine.devices], problem.machine.channels
    works = dict.fromkeys(names, 0.0)
    for d, work_s in zip(tasks.device, tasks.work_s, strict=True):
        works[names[d]] += work_s
    for move in tasks.transfers:
        # What crosses counts whole at both ends, below.
        works[names[move.src]] -= move.send_s
        works[names[move.dst]] -= move.receive_s
    loads = dict(works)
    for move in tasks.transfers:
        src, dst = divmod(int(channels[move.src * len(names) + move.dst]), len(names))
        link = f"{names[src]}->{names[dst]}"
        num_bytes = problem.kernels.tensors[move.tensor].num_bytes
        whole_s = problem.costs.transfer_s(move.src, move.dst, num_bytes)
        loads[link] = loads.get(link, 0.0) + whole_s
        loads[names[move.src]] += whole_s
        loads[names[move.dst]] += whole_s
    for device in (d for d in problem.machine.devices if d.engine):
        loads[device.engine] += loads[device.name]
    most_s = max(loads.values())
    if problem.costs.contention and 0.0 < most_s < math.inf:
        on_host = [d.name for d in problem.machine.devices if d.on_host]
        together_s = sum(works[name] for name in on_host)
        for name in on_host:
            others_s = together_s - works[name]
            loads[name] += works[name] * problem.costs.contention * others_s / most_s
    return loads


def _largest_load_s(problem: Problem, schedule: Schedule, replicas: Replicas) -> float:
    return max(_link_loads_s(problem, schedule, replicas).values())


def _call_loads_s(problem: Problem, schedule: Schedule, replicas: Replicas) -> dict[str, float]:
    return call_costs.loads_s(problem, _kernel_devices(problem, schedule), replicas)


def _call_sample_s(problem: Problem, schedule: Schedule, replicas: Replicas) -> float:
    return call_costs.max_load_s(problem, _kernel_devices(problem, schedule), replicas)


def _kernel_devices(problem: Problem, schedule: Schedule) -> Ints:
    return segment_devices(problem, schedule)[kernels_in_order(problem, schedule)[1]]


_OVER_LINKS = CostModel(segment_tasks, _as_they_are, _link_loads_s, _largest_load_s)
COST_MODELS = {
    Execution.OP: _OVER_LINKS,
    Execution.SEGMENT: _OVER_LINKS,
    Execution.CALL: CostModel(_call_tasks, _as_calls, _call_loads_s, _call_sample_s),
}
