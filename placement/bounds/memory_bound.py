"""What the accelerators cannot hold takes longer: a bound by Lagrangian relaxation of their memory.

The kernels of a path run one after another. Each takes at least its least time on a device whose
weights lie in an accelerator's memory, where they and its state take room, or on any other device
(the CPU, or one whose weights stream). With a price on room, z seconds for a byte, every placement
within memory takes at least

    the longest path with each kernel at min(near_s + z * bytes, far_s), minus z * all room

whatever the price is (Fisher, "The Lagrangian relaxation method for solving integer programming
problems", Management Science 27, 1981).
"""

import numpy as np

from placement.core.costs import Floats
from placement.core.problem import Problem

# Prices that are tried: each costs a walk over the graph.
NUM_PRICES = 16
MOST_KERNELS = 50_000


def beyond_memory_s(problem: Problem) -> float:
    """Seconds of a step that no placement within memory can beat; 0 where all weights have room."""
    machine, num_bytes = problem.machine, problem.kernels.arrays.resident_bytes
    owner, limits = machine.places.weights, machine.limit_bytes
    on_host = np.array([d.on_host for d in machine.devices])
    near = ~on_host[owner] & np.isfinite(limits)
    room = float(limits[np.unique(owner[near])].sum())
    if not near.any() or num_bytes.sum() <= room or num_bytes.size > MOST_KERNELS:
        return 0.0
    allowed = problem.allowed[problem.unit_of_kernel]
    seconds = np.where(allowed, problem.costs.compute_s, np.inf)
    near_s = seconds[:, near].min(axis=1, initial=np.inf)
    far_s = seconds[:, ~near].min(axis=1, initial=np.inf)
    return max(
        _longest_path_s(problem, np.minimum(near_s + price * num_bytes, far_s)) - price * room
        for price in _prices(near_s, far_s, num_bytes, float(num_bytes.sum()) - room)
    )


def _prices(near_s: Floats, far_s: Floats, num_bytes: Floats, excess: float) -> list[float]:
    """Prices at which kernels change sides: the one at which as much as exceeds all room has left
    for the other devices, and others spread over all."""
    price, left = leaving(near_s, far_s, num_bytes)
    if not price.size:
        return [0.0]
    wanted = [excess, *np.linspace(0.0, float(left[-1]), NUM_PRICES)]
    at = np.minimum(np.searchsorted(left, wanted), price.size - 1)
    return sorted({0.0, *price[at].tolist()})


def leaving(near_s: Floats, far_s: Floats, num_bytes: Floats) -> tuple[Floats, Floats]:
    """Prices of a byte at which kernels leave the near devices for far ones, rising, and the bytes
    that have left by each; of kernels that could run on both."""
    free = np.flatnonzero((num_bytes > 0) & np.isfinite(near_s) & np.isfinite(far_s))
    price = np.maximum(0.0, (far_s[free] - near_s[free]) / num_bytes[free])
    order = np.argsort(price, kind="stable")
    return np.asarray(price[order], dtype=np.float64), np.cumsum(num_bytes[free][order])


def _longest_path_s(problem: Problem, kernel_s: Floats) -> float:
    longest: list[float] = kernel_s.tolist()
    successors = problem.kernels.successors
    for k in range(len(longest) - 1, -1, -1):
        longest[k] += max((longest[r] for r in successors[k]), default=0.0)
    return max(longest, default=0.0)
