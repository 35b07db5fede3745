"""Lower bounds that hold for every placement: no schedule of the problem can be faster."""

import numpy as np

from placement.core.problem import Problem


def lower_bound(problem: Problem) -> float:
    """Seconds that no placement can beat, in the problem's objective.

    Latency: the longest path with each kernel on its fastest allowed device and free transfers,
    and all work (each unit on its fastest device) shared evenly. Throughput: the second, and the
    largest single unit.
    """
    unit_s = np.where(problem.allowed, problem.unit_s, np.inf).min(axis=1, initial=np.inf)
    shared_s = float(unit_s.sum()) / problem.num_devices
    if problem.objective == "throughput":
        return max(shared_s, float(unit_s.max(initial=0.0)))
    allowed = problem.allowed[problem.unit_of_kernel]
    fastest = np.where(allowed, problem.costs.compute_s, np.inf).min(axis=1, initial=np.inf)
    longest = fastest.tolist()
    for k, readers in reversed(list(enumerate(problem.kernels.successors))):
        longest[k] += max((longest[r] for r in readers), default=0.0)
    return max(shared_s, max(longest, default=0.0))
