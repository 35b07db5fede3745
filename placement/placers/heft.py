"""HEFT: heterogeneous earliest finish time, with insertion into gaps.

Topcuoglu, Hariri and Wu, "Performance-effective and low-complexity task scheduling for
heterogeneous computing", IEEE TPDS 2002. Kernels are taken by falling upward rank and put where
they finish first. Beyond the paper: fused groups move as one, memory is respected, a tensor is sent
once per device over a first-in first-out link, and a crossing costs the call it starts.
"""

from dataclasses import dataclass

import numpy as np

from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.order import by_priority
from placement.placers._base import Placer, Progress, Report, quiet, setting
from placement.placers._lanes import Lanes


@dataclass(frozen=True, kw_only=True)
class Heft(Placer):
    summary = "Ops by urgency, each on the device where it finishes first (list scheduling)"
    paper = "Topcuoglu, Hariri, Wu: HEFT and CPOP, IEEE TPDS 13(3), 2002"

    insertion: bool = setting(True, "Use idle gaps between ops that are already scheduled")

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        lanes = Lanes(problem, insertion=self.insertion)
        order = by_priority(problem.kernels, [-r for r in mean_upward_ranks(problem)])
        for step, k in enumerate(order):
            unit = int(problem.unit_of_kernel[k])
            fixed = lanes.device_of_unit[unit]
            candidates = [fixed] if fixed >= 0 else lanes.candidates(unit)
            finish = [lanes.finish_s(k, d) + lanes.rest_of_unit_s(unit, k, d) for d in candidates]
            lanes.put(k, candidates[int(np.argmin(finish))])
            if step % 256 == 0:
                report(Progress(step=step, of=len(order)))
        return problem.placement_of(lanes.device_of_unit, lanes.order())


def mean_upward_ranks(problem: Problem) -> list[float]:
    """rank(i) = mean w(i) + max over readers j of (mean c(i, j) + rank(j)), means over devices.

    A mean communication is over pairs of different devices; a kernel that a device does not
    support is averaged over those that do. A model output counts its way back to the host, by the
    share of devices that have memory of their own.
    """
    arrays, costs = problem.kernels.arrays, problem.costs
    supported = np.isfinite(costs.compute_s)
    mean_s = (
        np.where(supported, costs.compute_s, 0.0).sum(axis=1) / np.maximum(supported.sum(axis=1), 1)
    ).tolist()
    pairs = max(1, problem.num_devices * (problem.num_devices - 1))
    mean_latency_s = costs.latency_s.sum() / pairs
    mean_s_per_byte = costs.s_per_byte.sum() / pairs
    move_s = (mean_latency_s + arrays.tensor_bytes * mean_s_per_byte).tolist()
    off_host = [not d.on_host for d in problem.machine.devices]
    share = sum(off_host) / len(off_host) if not all(off_host) else 0.0
    back_s = [share * seconds for seconds in move_s]
    outputs: list[list[int]] = [[] for _ in mean_s]
    for t in np.flatnonzero(arrays.is_output & (arrays.producer >= 0)).tolist():
        outputs[int(arrays.producer[t])].append(t)
    ranks = [0.0] * len(mean_s)
    for k in range(len(ranks) - 1, -1, -1):
        longest = max((back_s[t] for t in outputs[k]), default=0.0)
        for t in arrays.out_tensors[arrays.out_ptr[k] : arrays.out_ptr[k + 1]].tolist():
            for r in arrays.consumers[arrays.consumer_ptr[t] : arrays.consumer_ptr[t + 1]].tolist():
                longest = max(longest, move_s[t] + ranks[r])
        ranks[k] = mean_s[k] + longest
    return ranks


PLACER = Heft
