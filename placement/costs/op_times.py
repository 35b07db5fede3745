"""Times of source ops where a runtime measures kernels: each kernel's time shared out over its ops.

By arithmetic, evenly where none of a kernel's ops has any; so the sum over all ops stays what it
was. A kernel of the runtime's own belongs to the ops that it moves with.
"""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem


@dataclass(frozen=True)
class _Work:
    """Which share of which kernel is whose: three arrays of the same length."""

    op: Ints
    kernel: Ints
    share: Floats


_works: "WeakKeyDictionary[Problem, _Work]" = WeakKeyDictionary()


def op_seconds(problem: Problem) -> Floats:
    """Seconds of every source op on every device, (ops, devices); infinite where not supported.

    Ops that the runtime folds away take none.
    """
    work = _work(problem)
    return _added_up(problem, work, problem.costs.compute_s[work.kernel], work.share[:, None])


def placed_seconds(problem: Problem, placement: Placement) -> Floats:
    """Seconds of each source op on its device, (ops,); infinite where the device cannot run it."""
    work = _work(problem)
    device = problem.kernel_devices(placement)[work.kernel]
    return _added_up(problem, work, problem.costs.compute_s[work.kernel, device], work.share)


def _added_up(problem: Problem, work: _Work, kernel_s: Floats, share: Floats) -> Floats:
    can = np.isfinite(kernel_s)
    # An infinite time stays infinite however small the share.
    parts = np.where(can, np.where(can, kernel_s, 0.0) * share, np.inf)
    total = np.zeros((len(problem.graph.ops), *kernel_s.shape[1:]))
    np.add.at(total, work.op, parts)
    return total


def _work(problem: Problem) -> _Work:
    found = _works.get(problem)
    if found is None:
        found = _works[problem] = _shared_out(problem)
    return found


def _shared_out(problem: Problem) -> _Work:
    ops, kernels, shares = [], [], []
    flops = [op.flops for op in problem.graph.ops]
    for k, sources in enumerate(problem.sources):
        owners = sources or problem.ops_of_unit[int(problem.unit_of_kernel[k])]
        total = sum(flops[i] for i in owners)
        for i in owners:
            ops.append(i)
            kernels.append(k)
            shares.append(flops[i] / total if total > 0 else 1 / len(owners))
    return _Work(np.array(ops, np.int64), np.array(kernels, np.int64), np.array(shares))
