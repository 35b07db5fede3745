"""CPoP: critical path on a processor.

Topcuoglu, Hariri and Wu, "Performance-effective and low-complexity task scheduling for
heterogeneous computing", IEEE TPDS 2002. Upward plus downward rank is the length of the longest
path through a task; the tasks of the longest of all go to the one processor that runs them fastest,
the others where they finish first. Among ready tasks the longest path through goes first. Memory,
groups, links and calls as in HEFT here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.placers._lists.lists import (
    Priorities,
    Wording,
    by_falling,
    earliest_finish,
    mean_costs,
    way_back_s,
)
from placement.placers.base import Placer, Report, Step, quiet, setting
from placement.simulator.flat import Flat, flatten

if TYPE_CHECKING:
    from placement.placers._lists.partial_plan import Plan


WORDING = Wording("way", "left", line=4, line_if_fixed=3, last_line=5)


@dataclass(frozen=True, kw_only=True)
class Cpop(Placer):
    summary = "The critical path on the one device that runs it fastest, the rest around it"
    paper = "Topcuoglu, Hariri, Wu: HEFT and CPOP, IEEE TPDS 13(3), 2002"
    quick_up_to, tells_up_to = 1_000_000, 20_000
    pseudo_code = (
        "way of an op = the longest mean way through it, from the begin to the end of the step",
        "the ops of the longest way of all go to the device that runs all of them fastest",
        "take the ready op with the longest way through it",
        "    one of the critical path: put it on the path's device",
        "    another: put it on the device where it finishes first",
        "cut the plan into calls and predict the step",
    )

    insertion: bool = setting(True, "Use idle gaps between ops that are already scheduled")

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        return earliest_finish(problem, priorities(problem), report, insertion=self.insertion)

    def steps(self, problem: Problem, most: int, report: Report = quiet) -> Iterator[Step]:
        from placement.placers._lists.finish_steps import finish_steps, path_on_one_device
        from placement.placers._lists.partial_plan import ranked

        found, flat = priorities(problem), flatten(problem)
        path = critical_kernels(flat, found.ranks_s)
        seconds = _seconds_of_path(flat, path)

        def first(plan: "Plan") -> Sequence[Step]:
            why = "{op} comes first, for it is ready and the longest way through it is longest."
            way = ranked(plan, found, why, "way")
            return [way, path_on_one_device(plan, path, seconds, _fastest_device(flat, path))]

        return finish_steps(problem, found, first, WORDING, most, insertion=self.insertion)

    def step_of(self, problem: Problem, op: str) -> Step | None:
        from placement.placers._lists.finish_steps import finish_step_of

        return finish_step_of(problem, priorities(problem), WORDING, op, insertion=self.insertion)


def priorities(problem: Problem) -> Priorities:
    """Kernels by the longest path through them, those of the critical path on one device."""
    flat = flatten(problem)
    through_s = paths_through(flat)
    found = by_falling(problem, through_s, way_back_s(flat))
    path = critical_kernels(flat, through_s)
    found.wanted[path] = _fastest_device(flat, path)
    return found


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
    return int(np.lexsort((_seconds_of_path(flat, path), -allowed.sum(axis=0)))[0])


def _seconds_of_path(flat: Flat, path: Ints) -> Floats:
    """Compute (D,) of a path's kernels on each device, of those that it may run."""
    allowed = flat.allowed[flat.unit_of_kernel[path]]
    seconds: Floats = np.where(allowed, flat.compute_s[path], 0.0).sum(axis=0)
    return seconds


PLACER = Cpop
