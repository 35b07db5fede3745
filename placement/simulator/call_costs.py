"""The cost model of split graphs: loads of devices, and the calls of subgraphs that run them.

Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020,
written from its definitions and independent of every placer. Tensors move through host memory: a
device off the host (an accelerator) pays for each tensor that it takes in or hands out, once, and
does not compute meanwhile (unless the problem says so); a device on the host (a CPU) never pays.

A set of kernels on an accelerator is one call: it starts when its last input is there, takes inputs
+ compute + outputs, and its values appear when it ends. A kernel on a CPU is a call of its own, and
any number of them run at the same time.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.simulator.lowering import kernels_in_order, segment_devices

# How many accelerators hold the part of one, by its name.
Replicas = Mapping[str, int] | None


class Call(NamedTuple):
    """Kernels (indices) that a device (index) runs in one call, in the order it runs them."""

    device: int
    kernels: tuple[int, ...]


def crossing_s(problem: Problem) -> Floats:
    """Seconds of every tensor between every device and host memory, (T, D); zero for CPUs."""
    costs, num_bytes = problem.costs, problem.kernels.arrays.tensor_bytes
    seconds = costs.latency_s.max(axis=1) + num_bytes[:, None] * costs.s_per_byte.max(axis=1)
    return np.where([d.on_host for d in problem.machine.devices], 0.0, seconds)


def parts_s(problem: Problem, part_of_kernel: Ints, device_of_part: Ints) -> Floats:
    """Seconds of each part (P,) of the kernels: inputs from outside, compute, outputs to outside.

    A tensor is taken in once by each part that reads it elsewhere than it is made, and handed out
    once by its maker's part. Model inputs start on the host and model outputs end there.
    """
    return compute_of_parts_s(problem, part_of_kernel, device_of_part) + moves_of_parts_s(
        problem, part_of_kernel, device_of_part
    )


def compute_of_parts_s(problem: Problem, part_of_kernel: Ints, device_of_part: Ints) -> Floats:
    """Seconds that each part (P,) computes."""
    device = device_of_part[part_of_kernel]
    compute_s = problem.costs.compute_s[np.arange(len(device)), device]
    total: Floats = np.zeros(len(device_of_part))
    np.add.at(total, part_of_kernel, compute_s)
    return total


def moves_of_parts_s(problem: Problem, part_of_kernel: Ints, device_of_part: Ints) -> Floats:
    """Seconds that each part (P,) takes tensors in and hands them out."""
    arrays, moving_s, num_parts = problem.kernels.arrays, crossing_s(problem), len(device_of_part)
    total: Floats = np.zeros(num_parts)
    tensor = np.repeat(np.arange(len(moving_s)), np.diff(arrays.consumer_ptr))
    reader = part_of_kernel[arrays.consumers]
    maker = np.full(len(moving_s), -1, dtype=np.int64)
    made = arrays.producer >= 0
    maker[made] = part_of_kernel[arrays.producer[made]]
    crosses = reader != maker[tensor]
    taken = np.unique(tensor[crosses] * num_parts + reader[crosses])
    np.add.at(
        total,
        taken % num_parts,
        moving_s[taken // num_parts, device_of_part[taken % num_parts]],
    )
    leaves = arrays.is_output.copy()
    leaves[tensor[crosses]] = True
    out = np.flatnonzero(leaves & made)
    np.add.at(total, maker[out], moving_s[out, device_of_part[maker[out]]])
    return total


def loads_s(
    problem: Problem, device_of_kernel: Ints, replicas: Replicas = None
) -> dict[str, float]:
    """Seconds of work per sample by device, in declared order.

    Compute and transfers add up, or only the longer counts if the problem lets them overlap.
    `replicas` says by name how many accelerators hold the part of one and take samples in turn, so
    that each of them has as much less to do; the others must be idle and are not shown.
    """
    every = np.arange(problem.num_devices)
    compute_s = compute_of_parts_s(problem, device_of_kernel, every)
    moves_s = moves_of_parts_s(problem, device_of_kernel, every)
    loads = np.maximum(compute_s, moves_s) if problem.overlap else compute_s + moves_s
    names = [d.name for d in problem.machine.devices]
    counts = np.array([(replicas or {}).get(name, 1) for name in names], dtype=np.float64)
    _require_idle(problem, device_of_kernel, counts)
    return dict(zip(names, (loads / counts).tolist(), strict=True))


def _require_idle(problem: Problem, device_of_kernel: Ints, counts: Floats) -> None:
    """ValueError where replicas are more than there are idle accelerators, or of a CPU."""
    more = counts > 1
    on_host = np.array([d.on_host for d in problem.machine.devices])
    if (more & on_host).any():
        name = problem.machine.devices[int((more & on_host).argmax())].name
        raise ValueError(f"Device {name!r} is a CPU and cannot be replicated; set it to 1.")
    used = np.zeros(problem.num_devices, dtype=np.bool_)
    used[device_of_kernel] = True
    idle, wanted = int((~used & ~on_host).sum()), int((counts[used] - 1).sum())
    if wanted > idle:
        raise ValueError(
            f"The replicas need {wanted} more accelerators, but {idle} are idle; replicate less."
        )


def max_load_s(problem: Problem, device_of_kernel: Ints) -> float:
    """Seconds between samples of a full pipeline: the objective "throughput"."""
    return max(loads_s(problem, device_of_kernel).values())


def calls_of(problem: Problem, device_of_kernel: Ints) -> tuple[Call, ...]:
    """Calls that run a placement, in a valid order: few and large, CPU kernels one by one.

    Where every accelerator's kernels can be one call without calls waiting for each other in a
    cycle, they are. Else the accelerator that comes nearest to running all it has left runs what it
    can, ties to the first.
    """
    on_host = [d.on_host for d in problem.machine.devices]
    device = device_of_kernel.tolist()
    successors = problem.kernels.successors
    missing = [len(p) for p in problem.kernels.predecessors]
    left = np.bincount(device_of_kernel, minlength=problem.num_devices).tolist()
    ready: list[list[int]] = [[] for _ in left]
    calls: list[Call] = []

    def release(freed: list[int]) -> None:
        """Note kernels whose inputs are all there or come from the call that they can join."""
        while freed:
            k = freed.pop()
            d = device[k]
            if on_host[d]:
                calls.append(Call(d, (k,)))
                left[d] -= 1
            else:
                ready[d].append(k)
            for r in successors[k]:
                if on_host[d] or device[r] == d:
                    missing[r] -= 1
                    if missing[r] == 0:
                        freed.append(r)

    release([k for k in reversed(range(len(device))) if missing[k] == 0])
    while any(ready):
        d = min((d for d, r in enumerate(ready) if r), key=lambda d: (left[d] - len(ready[d]), d))
        kernels, ready[d] = tuple(sorted(ready[d])), []
        left[d] -= len(kernels)
        calls.append(Call(d, kernels))
        freed = []
        for k in kernels:
            for r in successors[k]:
                if device[r] != d:
                    missing[r] -= 1
                    if missing[r] == 0:
                        freed.append(r)
        release(freed[::-1])
    return tuple(calls)


def call_durations_s(problem: Problem, schedule: Schedule) -> Floats:
    """Seconds of each segment (S,): what it moves in and out and its compute, one after another."""
    device, segment_of = segment_devices(problem, schedule), kernels_in_order(problem, schedule)[1]
    return parts_s(problem, segment_of, device)
