"""The cost model of split graphs: loads of devices, and the calls of subgraphs that run them.

Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020,
written from its definitions and independent of every placer. Tensors move through host memory: a
device off the host (an accelerator) pays for each tensor that it takes in or hands out, once, and
does not compute meanwhile; a device on the host (a CPU) never pays. The problem's rules
(`core/objective.py`) may change how the loads of a pipeline are charged:

- overlap: the longer of compute and transfers counts, not their sum;
- gpipe: the largest forward load and the largest backward load add up; a tensor belongs to the
  phase of its maker;
- clusters: an accelerator pays more for a tensor that it takes in from another cluster, or hands
  out to some accelerator of another one;
- replicas: r accelerators share a part, whose load is divided by r, and keep its weights alike
  once for every r samples. Each moves 4 (r - 1) / r of their bytes then, as PipeDream's planner
  has it (SOSP 2019); it counts as a transfer, of the backward phase where phases are apart.

A set of kernels on an accelerator is one call: it starts when its last input is there, takes inputs
+ compute + outputs, and its values appear when it ends. A kernel on a CPU is a call of its own, and
any number of them run at the same time.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.simulator.lowering import kernels_in_order, segment_devices

Bools = NDArray[np.bool_]
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


def compute_of_parts_s(
    problem: Problem, part_of_kernel: Ints, device_of_part: Ints, kernels: Bools | None = None
) -> Floats:
    """Seconds that each part (P,) computes, of some kernels (K,) or of all."""
    some = np.arange(len(part_of_kernel)) if kernels is None else np.flatnonzero(kernels)
    part = part_of_kernel[some]
    total: Floats = np.zeros(len(device_of_part))
    np.add.at(total, part, problem.costs.compute_s[some, device_of_part[part]])
    return total


def moves_of_parts_s(
    problem: Problem,
    part_of_kernel: Ints,
    device_of_part: Ints,
    tensors: Bools | None = None,
    cluster_of_device: Ints | None = None,
) -> Floats:
    """Seconds that each part (P,) takes tensors in and hands them out, some (T,) of them or all.

    Between clusters of devices (D,; -1 is none) a tensor takes longer.
    """
    arrays, moving_s, num_parts = problem.kernels.arrays, crossing_s(problem), len(device_of_part)
    total: Floats = np.zeros(num_parts)
    tensor = np.repeat(np.arange(len(moving_s)), np.diff(arrays.consumer_ptr))
    reader = part_of_kernel[arrays.consumers]
    maker = np.full(len(moving_s), -1, dtype=np.int64)
    made = arrays.producer >= 0
    maker[made] = part_of_kernel[arrays.producer[made]]
    crosses = reader != maker[tensor]
    leaves = arrays.is_output.copy()
    if tensors is not None:
        crosses &= tensors[tensor]
        leaves &= tensors
    no_cluster = np.full(problem.num_devices, -1, dtype=np.int64)
    clusters = no_cluster if cluster_of_device is None else cluster_of_device
    # Inputs are in no cluster.
    cluster_of = np.append(clusters[device_of_part], -1)
    taken = np.unique(tensor[crosses] * num_parts + reader[crosses])
    of, by = taken // num_parts, taken % num_parts
    factor = problem.rules.slow_link_factor
    far = _apart(cluster_of[maker[of]], cluster_of[by])
    np.add.at(total, by, moving_s[of, device_of_part[by]] * np.where(far, factor, 1.0))
    leaves[tensor[crosses]] = True
    goes_far = np.zeros(len(leaves), dtype=np.bool_)
    goes_far[of[far]] = True
    out = np.flatnonzero(leaves & made)
    sent_s = moving_s[out, device_of_part[maker[out]]] * np.where(goes_far[out], factor, 1.0)
    np.add.at(total, maker[out], sent_s)
    return total


def clusters_of(problem: Problem) -> Ints:
    """The cluster of each device (D,), -1 for those on the host."""
    accelerators = [d for d, device in enumerate(problem.machine.devices) if not device.on_host]
    cluster_of = np.full(problem.num_devices, -1, dtype=np.int64)
    cluster_of[accelerators] = problem.rules.clusters(len(accelerators))
    return cluster_of


def _apart(here: Ints, there: Ints) -> Bools:
    """Whether both are in clusters, and not in the same one."""
    apart: Bools = (here >= 0) & (there >= 0) & (here != there)
    return apart


def phase_loads_s(problem: Problem, device_of_kernel: Ints, replicas: Replicas = None) -> Floats:
    """Seconds of work per sample by phase and device: one row for all, or forward and backward.

    The time between samples is the sum over phases of the largest load of any device.
    """
    every, rules = np.arange(problem.num_devices), problem.rules
    names = [d.name for d in problem.machine.devices]
    counts = np.array([(replicas or {}).get(name, 1) for name in names], dtype=np.float64)
    _require_idle(problem, device_of_kernel, counts)
    rows = []
    for kernels, tensors in _phases(problem):
        compute_s = compute_of_parts_s(problem, device_of_kernel, every, kernels)
        moves_s = moves_of_parts_s(problem, device_of_kernel, every, tensors, clusters_of(problem))
        rows.append((compute_s, moves_s))
    held_bytes = np.zeros(problem.num_devices)
    np.add.at(held_bytes, device_of_kernel, problem.kernels.arrays.param_bytes)
    sync_s = 4.0 * (counts - 1.0) / counts * held_bytes * rules.sync_s_per_byte
    rows[-1] = rows[-1][0], rows[-1][1] + sync_s
    together = np.maximum if rules.overlap else np.add
    return np.stack([together(compute_s, moves_s) / counts for compute_s, moves_s in rows])


def _phases(problem: Problem) -> list[tuple[Bools | None, Bools | None]]:
    """Kernels and tensors of each phase that counts by itself; None for all of them."""
    if not problem.rules.gpipe:
        return [(None, None)]
    kernels = np.array([op.phase == "backward" for op in problem.kernels.ops], dtype=np.bool_)
    producer = problem.kernels.arrays.producer
    tensors = np.append(kernels, False)[producer]
    return [(~kernels, ~tensors), (kernels, tensors)]


def loads_s(
    problem: Problem, device_of_kernel: Ints, replicas: Replicas = None
) -> dict[str, float]:
    """Seconds of work per sample by device, in declared order.

    `replicas` says by name how many accelerators hold the part of one and take samples in turn, so
    that each of them has as much less to do; the others must be idle and are not shown.
    """
    loads = phase_loads_s(problem, device_of_kernel, replicas).sum(axis=0)
    names = [d.name for d in problem.machine.devices]
    return dict(zip(names, loads.tolist(), strict=True))


def _require_idle(problem: Problem, device_of_kernel: Ints, counts: Floats) -> None:
    """ValueError where replicas are more than there are idle accelerators, or of a CPU."""
    more = counts > 1
    if more.any() and problem.rules.has_clusters:
        raise ValueError(
            "In which clusters replicas are is not known; leave out the clusters or the replicas."
        )
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


def max_load_s(problem: Problem, device_of_kernel: Ints, replicas: Replicas = None) -> float:
    """Seconds between samples of a full pipeline: the objective "throughput"."""
    loads = phase_loads_s(problem, device_of_kernel, replicas)
    return float(loads.max(axis=1).sum())


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
