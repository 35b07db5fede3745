"""CPoP: critical path on a processor.

Topcuoglu, Hariri and Wu, "Performance-effective and low-complexity task scheduling for
heterogeneous computing", IEEE TPDS 2002. Upward plus downward rank is the length of the longest
path through a task; the tasks of the longest of all go to the one processor that runs them fastest,
the others where they finish first. Among ready tasks the longest path through goes first. Memory,
groups, links and calls as in HEFT here.
"""

from dataclasses import dataclass

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.placers._lists.lists import earliest_finish, falling, mean_costs, way_back_s
from placement.placers.base import Placer, Report, quiet, setting
from placement.simulator.flat import Flat, flatten


@dataclass(frozen=True, kw_only=True)
class Cpop(Placer):
    summary = "The critical path on the one device that runs it fastest, the rest around it"
    paper = "Topcuoglu, Hariri, Wu: HEFT and CPOP, IEEE TPDS 13(3), 2002"
    quick_up_to = 1_000_000

    insertion: bool = setting(True, "Use idle gaps between ops that are already scheduled")

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        flat = flatten(problem)
        through_s = paths_through(flat)
        order = falling(problem, through_s)
        wanted = np.full(order.size, -1, dtype=np.int64)
        path = critical_kernels(flat, through_s)
        wanted[path] = _fastest_device(flat, path)
        back_s = way_back_s(flat)
        return earliest_finish(
            problem, flat, report, order, back_s, wanted, insertion=self.insertion
        )


def paths_through(flat: Flat) -> Floats:
    """Length of the longest path through each kernel (K,), in mean costs."""
    from placement.placers._lists.ranks_compiled import downward, upward

    costs = mean_costs(flat)
    return upward(flat, *costs) + downward(flat, *costs)


def critical_kernels(flat: Flat, through_s: Floats) -> Ints:
    """Kernels of a longest path: from the first entry on, always the reader it is longest through.

    Ties go to the kernel declared first.
    """
    made = flat.producer >= 0
    entry = np.ones(through_s.size, dtype=np.bool_)
    entry[flat.consumers[np.repeat(made, np.diff(flat.consumer_ptr))]] = False
    readers = np.flatnonzero(entry)
    path = []
    while readers.size:
        k = int(readers[through_s[readers].argmax()])
        path.append(k)
        tensors = flat.out_tensors[flat.out_ptr[k] : flat.out_ptr[k + 1]].tolist()
        pieces = [flat.consumers[flat.consumer_ptr[t] : flat.consumer_ptr[t + 1]] for t in tensors]
        readers = np.unique(np.concatenate(pieces)) if pieces else np.zeros(0, dtype=np.int64)
    return np.array(path, dtype=np.int64)


def _fastest_device(flat: Flat, path: Ints) -> int:
    """The device that may run most of a path's kernels, of several the one that runs them first."""
    allowed = flat.allowed[flat.unit_of_kernel[path]]
    seconds = np.where(allowed, flat.compute_s[path], 0.0).sum(axis=0)
    return int(np.lexsort((seconds, -allowed.sum(axis=0)))[0])


PLACER = Cpop
