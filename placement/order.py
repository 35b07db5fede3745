"""Orders of execution: every placement gets one, deterministic and topological."""

import heapq
from collections.abc import Sequence

import numpy as np

from placement.core.graph import Graph, Ints
from placement.core.placement import Placement
from placement.core.problem import Problem


def upward_ranks(problem: Problem, device_of_kernel: Ints) -> list[float]:
    """Seconds from the start of each kernel to the end of the step along its longest path.

    Compute on the chosen devices plus the transfers between them, without queueing.
    """
    arrays, costs = problem.kernels.arrays, problem.costs
    num_kernels = len(problem.kernels.ops)
    device = device_of_kernel.tolist()
    compute = costs.compute_s[np.arange(num_kernels), device_of_kernel].tolist()
    ranks = [0.0] * num_kernels
    for k in range(num_kernels - 1, -1, -1):
        longest = 0.0
        for t in arrays.out_tensors[arrays.out_ptr[k] : arrays.out_ptr[k + 1]].tolist():
            num_bytes = float(arrays.tensor_bytes[t])
            for r in arrays.consumers[arrays.consumer_ptr[t] : arrays.consumer_ptr[t + 1]].tolist():
                move_s = costs.transfer_s(device[k], device[r], num_bytes)
                longest = max(longest, move_s + ranks[r])
        ranks[k] = compute[k] + longest
    return ranks


def kernel_order(problem: Problem, placement: Placement, device_of_kernel: Ints) -> list[int]:
    """Kernels in running order: the placement's own where it has one, else falling upward rank."""
    if not placement.order:
        ranks = upward_ranks(problem, device_of_kernel)
        return by_priority(problem.kernels, [-r for r in ranks])
    position: dict[str, int] = {}
    for i, name in enumerate(placement.order):
        if name not in problem.graph.index or name in position:
            raise ValueError(
                f"The placement's order names op {name!r} twice or in vain; list each op once."
            )
        position[name] = i
    of_op = [position.get(op.name, len(position)) for op in problem.graph.ops]
    keys = [float(max((of_op[i] for i in ops), default=-1)) for ops in problem.sources]
    for k in range(len(keys) - 1, -1, -1):
        if keys[k] < 0:
            keys[k] = min((keys[r] for r in problem.kernels.successors[k]), default=0.0)
    return by_priority(problem.kernels, keys)


def by_priority(graph: Graph, keys: Sequence[float]) -> list[int]:
    """Topological order that takes the ready op with the smallest key, ties in declared order."""
    waiting = [len(p) for p in graph.predecessors]
    ready = [(keys[i], i) for i, n in enumerate(waiting) if n == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        _, i = heapq.heappop(ready)
        order.append(i)
        for j in graph.successors[i]:
            waiting[j] -= 1
            if waiting[j] == 0:
                heapq.heappush(ready, (keys[j], j))
    return order
