"""PipeDream's optimiser: a chain of layers cut into stages of even load.

Narayanan et al., "PipeDream: generalized pipeline parallelism for DNN training", SOSP 2019. The
graph is taken as a chain in topological order; A(j, m), the least maximal load of the first j
layers on m devices, is the least over i of max(A(i, m - 1), load of layers i to j). What crosses a
cut of the chain is sent through all stages between, as in a chain of layers, so that branches count
more than they cost. Stages are not replicated here (`replicate` does that).
"""

from dataclasses import dataclass

from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.placers.base import Placer, Progress, Report, quiet


@dataclass(frozen=True, kw_only=True)
class PipeDream(Placer):
    summary = "Pipeline stages of a chain of layers by PipeDream's optimiser (workload files)"
    paper = "Narayanan et al.: PipeDream, SOSP 2019"
    objectives = (Objective.THROUGHPUT,)
    executions = (Execution.CALL,)
    quick_up_to = 3_000

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        from placement.splits.annealing.throughput import max_load_s
        from placement.splits.bounds.loads import throughput_bound_s
        from placement.splits.exact.chain import chain_of_layers
        from placement.splits.model.contract import class_units, contiguous_units
        from placement.splits.model.feasible import no_split, require_room
        from placement.splits.model.instance import from_problem, require_sums
        from placement.splits.model.placements import placement_of

        instance = from_problem(problem)
        require_sums(instance)
        free, units = class_units(instance), contiguous_units(instance)
        require_room(free)
        require_room(units)
        device_of_unit = chain_of_layers(units)
        if device_of_unit is None:
            raise no_split(units, "division of the chain of layers into stages")
        load_s = max_load_s(units, device_of_unit)
        report(Progress(load_s, throughput_bound_s(free), 1, 1))
        return placement_of(problem, units.device_of_class(device_of_unit))


PLACER = PipeDream
