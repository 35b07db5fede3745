"""Annealing of splits: workload files for throughput without contiguity, and for latency by calls.

Kirkpatrick, Gelatt and Vecchi, "Optimization by simulated annealing", Science 1983, on the cost
model of Tarnawski et al., NeurIPS 2020. Starts are the best contiguous split and a greedy one
(throughput), or splits of linearised graphs (latency). Chains run side by side.
"""

from dataclasses import dataclass

import numpy as np

from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.placers.base import Placer, Progress, Report, quiet, setting
from placement.schedule.segments import make_schedule
from placement.simulator.throughput import value_s
from placement.splits.annealing.search import Budget, Tell, silent
from placement.splits.model.contract import Units
from placement.splits.model.instance import SplitInstance, from_problem

# Steps of each chain per unit where neither time nor steps are given, and the most in all.
STEPS_PER_UNIT = {Objective.LATENCY: 3_000, Objective.THROUGHPUT: 20_000}
MOST_STEPS = {Objective.LATENCY: 2_000_000, Objective.THROUGHPUT: 20_000_000}
# The warm start must be quick.
MAX_IDEALS = 20_000
FEW_UNITS = 2000


@dataclass(frozen=True, kw_only=True)
class AnnealingSplit(Placer):
    summary = "Splits that need not be contiguous, or calls for latency, annealed (workload files)"
    paper = "Kirkpatrick et al.: Optimization by simulated annealing, Science 220, 1983"
    objectives = tuple(Objective)
    executions = (Execution.CALL,)
    no_steps = "it moves by the million, and writes none of its moves down"
    all_cores = True

    calls: int = setting(1, "Latency: calls that an accelerator may make per sample", low=1)
    chains: int = setting(2, "Independent searches, each on a core of its own", low=1)
    warm: bool = setting(True, "Throughput: start every other chain from the best contiguous split")
    max_iterations: int = setting(
        0, "Steps of each chain, which give the same answer every time; 0: by time limit or size"
    )

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        instance = from_problem(problem)
        if problem.objective is Objective.LATENCY:
            return self._place_calls(problem, instance, report)
        return self._place_stages(problem, instance, report)

    def _budget(self, problem: Problem, share: float = 1.0) -> Budget:
        steps, kind = self.max_iterations, problem.objective
        if self.time_limit_s is not None:
            return Budget(share * self.time_limit_s, int(np.ceil(share * steps)))
        steps = steps or min(STEPS_PER_UNIT[kind] * problem.num_units, MOST_STEPS[kind])
        return Budget(None, int(np.ceil(share * steps)))

    def _place_stages(self, problem: Problem, instance: SplitInstance, report: Report) -> Placement:
        from placement.splits.annealing.throughput import best_split
        from placement.splits.model.contract import class_units
        from placement.splits.model.feasible import no_split, require_room
        from placement.splits.model.placements import placement_of

        units = class_units(instance)
        require_room(units)
        found = best_split(
            units,
            contiguous_start(units, self.seed) if self.warm else None,
            budget=self._budget(problem),
            num_chains=self.chains,
            seed=self.seed,
            tell=_teller(report),
            executor=self.executor,
        )
        if found is None:
            raise no_split(units, "split")
        return placement_of(problem, units.device_of_class(found.device_of_unit))

    def _place_calls(self, problem: Problem, instance: SplitInstance, report: Report) -> Placement:
        """With several calls each, first one call each: more are taken only where they help."""
        from placement.splits.annealing.latency import best_calls, in_calls
        from placement.splits.model.contract import call_units
        from placement.splits.model.feasible import no_split, require_room
        from placement.splits.model.placements import placement_of_calls

        units = call_units(instance)
        require_room(units)
        numbers = (1, self.calls) if self.calls > 1 else (1,)
        placements, warm = [], None
        for number in numbers:
            found = best_calls(
                instance,
                calls_each=number,
                budget=self._budget(problem, 1.0 / len(numbers)),
                num_chains=self.chains,
                seed=self.seed,
                warm=warm,
                tell=_teller(report) if number == self.calls else silent,
                executor=self.executor,
            )
            if found is not None:
                slots = found.slot_of_class
                placements.append(placement_of_calls(problem, instance, slots, number))
                warm = in_calls(slots, self.calls)
        if not placements:
            raise no_split(units, "split into calls")
        return min(placements, key=lambda found: value_s(problem, make_schedule(problem, found)))


def _teller(report: Report) -> Tell:
    def tell(best_s: float, bound_s: float, share: float) -> bool:
        return report(Progress(best_s, bound_s, int(1000 * share), 1000))

    return tell


def contiguous_start(units: Units, seed: int) -> Ints | None:
    """The best contiguous split in terms of other units of the same instance."""
    from placement.splits.exact.ideals import TooManyIdeals, best_chain
    from placement.splits.exact.linear import best_intervals
    from placement.splits.model.contract import contiguous_units

    fused = contiguous_units(units.instance)
    if (~fused.on_acc & ~fused.on_cpu).any():
        return None
    try:
        found = best_chain(fused, max_ideals=MAX_IDEALS)
    except TooManyIdeals:
        few = fused.num_units <= FEW_UNITS
        found = best_intervals(fused, num_orders=5 if few else 1, seed=seed)
    if found is None:
        return None
    device = np.zeros(units.num_units, dtype=np.int64)
    device[units.unit_of_class] = fused.device_of_class(found.device_of_unit)
    return device


PLACER = AnnealingSplit
