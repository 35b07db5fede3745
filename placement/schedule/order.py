"""Orders of execution: every placement gets one, deterministic and topological.

The order belongs to the placement. Where a method decided one, moving ops keeps it as it is; where
it was left open, falling upward rank is written down, so that later moves change the order of
nothing else. What moves keeps its place in the order, which is valid on any device, because a move
changes no dependency.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from placement.core.costs import Floats
from placement.core.decoding import shown
from placement.core.graph import Graph, Ints
from placement.core.placement import Placement
from placement.core.problem import Execution, Problem


def upward_ranks(problem: Problem, device_of_kernel: Ints) -> list[float]:
    """Seconds from the start of each kernel to the end of the step along its longest path.

    Compute on the chosen devices plus the transfers between them, without queueing.
    """
    from placement.schedule import order_compiled

    arrays, costs = problem.kernels.arrays, problem.costs
    ranks = order_compiled.upward_ranks(
        costs.compute_s,
        np.asarray(device_of_kernel, dtype=np.int64),
        costs.latency_s,
        costs.s_per_byte,
        arrays.tensor_bytes,
        arrays.consumer_ptr,
        arrays.consumers,
        arrays.out_ptr,
        arrays.out_tensors,
    )
    return list(ranks.tolist())


def kernel_order(problem: Problem, placement: Placement, device_of_kernel: Ints) -> list[int]:
    """Kernels in the placement's order where it has one, else by falling upward rank.

    They run so, but for an open order on one device alone (`segments.py`).
    """
    if not placement.order:
        ranks = upward_ranks(problem, device_of_kernel)
        return by_priority(problem.kernels, [-r for r in ranks])
    position: dict[str, int] = {}
    for i, name in enumerate(placement.order):
        if name not in problem.graph.index or name in position:
            raise ValueError(
                f"The placement's order names op {shown(name)} twice or in vain; list each op once."
            )
        position[name] = i
    of_op = [position.get(op.name, len(position)) for op in problem.graph.ops]
    keys = [float(max((of_op[i] for i in ops), default=-1)) for ops in problem.sources]
    for k in range(len(keys) - 1, -1, -1):
        if keys[k] < 0:
            keys[k] = min((keys[r] for r in problem.kernels.successors[k]), default=0.0)
    return by_priority(problem.kernels, keys)


def order_of_ops(problem: Problem, placement: Placement) -> tuple[str, ...]:
    """Source ops in a placement's order, by falling upward rank where it leaves that open."""
    device_of_kernel = problem.kernel_devices(placement)
    return problem.ops_in_order(kernel_order(problem, placement, device_of_kernel))


def by_priority(graph: Graph, keys: Sequence[float] | Floats) -> list[int]:
    """Topological order that takes the ready op with the smallest key, ties in declared order."""
    from placement.schedule import order_compiled

    arrays = graph.arrays
    order = order_compiled.by_priority(
        np.asarray(keys, dtype=np.float64),
        arrays.producer,
        arrays.consumer_ptr,
        arrays.consumers,
        arrays.out_ptr,
        arrays.out_tensors,
    )
    return list(order.tolist())


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
    """The placement's order, or falling upward rank.

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
