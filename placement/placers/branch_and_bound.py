"""Exact splits of workload files: annealing finds them, branch and bound and linear programs prove.

The optima are those of Tarnawski et al., "Efficient algorithms for device placement of DNN graph
operators", NeurIPS 2020, without contiguity. Annealing finds a split; crowds of large units, all
splits one by one (small graphs), prices of units and, where memory is scarce, configurations of
devices then prove how near to the best it is. For latency the bound is that of the cheapest chain
of calls (`splits/bounds/chain.py`), and on small graphs all splits into calls are tried.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placement.core.formatting import gap, percent
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.parallel.executor import Executor
from placement.placers.annealing_split import STEPS_PER_UNIT, contiguous_start
from placement.placers.base import Placer, Progress, Report, quiet, setting
from placement.splits.annealing.search import Budget, silent
from placement.splits.model.contract import Units
from placement.splits.model.instance import SplitInstance, from_problem

if TYPE_CHECKING:
    from placement.splits.exact.branch_calls import CallBranchSearch

# Shares of the time limit for the annealing and, after it, for trying all splits.
SEARCH_SHARE, BRANCH_SHARE = 0.3, 0.3
# Nodes between two looks at the clock, and the most where there is no time limit.
NODES, MOST_NODES = 200_000, 4_000_000
# With more units than these trying all splits leads nowhere.
MOST_BRANCHING = 100
# The most steps of the annealing where there is no time limit.
MOST_STEPS = {Objective.LATENCY: 2_000_000, Objective.THROUGHPUT: 4_000_000}
# With more units than these, all splits into calls are too many to begin with.
FEW_UNITS, CALL_NODES, MOST_CALL_NODES = 40, 20_000, 200_000
PROVEN = 1.0 + 1e-9
TINY_S = 1e-300


@dataclass(frozen=True, kw_only=True)
class BranchAndBound(Placer):
    summary = "Annealing, then branch and bound: how near to the best it is (workload files)"
    paper = "Gilmore, Gomory: A linear programming approach to the cutting-stock problem, 1961"
    objectives = tuple(Objective)
    executions = (Execution.CALL,)
    no_steps = "it tries splits by the million, too many to follow"
    exact = True
    needs = ("highspy",)
    all_cores = True

    calls: int = setting(1, "Latency: calls that an accelerator may make per sample", low=1)
    max_iterations: int = setting(
        0, "Steps of the search before the proof; 0: by time limit or size of the graph"
    )

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        clock = _Clock(self.time_limit_s)
        instance = from_problem(problem)
        if problem.objective is Objective.LATENCY:
            return self._place_calls(problem, instance, clock, report)
        return self._place_stages(problem, instance, clock, report)

    def _place_calls(
        self, problem: Problem, instance: SplitInstance, clock: "_Clock", report: Report
    ) -> Placement:
        from placement.splits.annealing.latency import best_calls, in_calls
        from placement.splits.exact.branch_calls import CallBranchSearch
        from placement.splits.model.contract import call_units
        from placement.splits.model.feasible import no_split, require_room
        from placement.splits.model.placements import placement_of_calls

        units = call_units(instance)
        require_room(units)
        few = units.num_units <= FEW_UNITS and instance.num_accelerators > 0
        proof = _CallProof(clock, report)
        share = SEARCH_SHARE if few else 1.0
        found, slots = None, None
        # Several calls are begun from the best with one.
        for calls_each in sorted({1, self.calls}):
            share_now = share if calls_each == self.calls else share / 2
            found = best_calls(
                instance,
                calls_each=calls_each,
                budget=self._budget(units, clock, Objective.LATENCY, share_now),
                seed=self.seed,
                warm=slots,
                tell=proof.hear if calls_each == self.calls else silent,
                executor=self.executor,
            )
            if found is not None:
                slots = found.slot_of_class
                slots = slots if calls_each == self.calls else in_calls(slots, self.calls)
        if few and proof.open:
            slots = proof.run(CallBranchSearch(instance, slots, self.calls))
        if slots is None:
            raise no_split(units, "split into calls")
        return placement_of_calls(problem, instance, slots, self.calls)

    def _place_stages(
        self, problem: Problem, instance: SplitInstance, clock: "_Clock", report: Report
    ) -> Placement:
        from placement.splits.annealing.throughput import best_split, max_load_s
        from placement.splits.model.contract import class_units
        from placement.splits.model.feasible import no_split, require_room
        from placement.splits.model.placements import placement_of

        units = class_units(instance)
        require_room(units)
        found = best_split(
            units,
            contiguous_start(units, self.seed),
            budget=self._budget(units, clock, Objective.THROUGHPUT, SEARCH_SHARE),
            seed=self.seed,
            tell=lambda best_s, bound_s, _: report(Progress(best_s, bound_s)),
            executor=self.executor,
        )
        if found is None:
            raise no_split(units, "split")
        proof = _Proof(units, found.device_of_unit, found.load_s, clock, report)
        proof.run()
        if not self.max_iterations:
            proof.search_on(self.seed + 1, self.executor)
        device_of_class = units.device_of_class(proof.device_of_unit)
        assert max_load_s(units, proof.device_of_unit) <= found.load_s * PROVEN
        return placement_of(problem, device_of_class)

    def _budget(self, units: Units, clock: "_Clock", objective: Objective, share: float) -> Budget:
        if math.isinf(clock.left_s()):
            steps = min(STEPS_PER_UNIT[objective] * units.num_units, MOST_STEPS[objective])
            return Budget(None, self.max_iterations or max(1, steps))
        return Budget(share * clock.left_s(), self.max_iterations)


class _Clock:
    """The time that is left, endless without a limit."""

    def __init__(self, limit_s: float | None, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._end_s = math.inf if limit_s is None else now() + limit_s

    def left_s(self) -> float:
        return self._end_s - self._now()


class _Account:
    """What is known of the best value while it is searched for and proven.

    It is `open` while there is something to prove, time for it, and somebody who wants to know.
    """

    def __init__(self, clock: _Clock, report: Report) -> None:
        self.clock, self._report = clock, report
        self.bound_s, self.open, self._stopped = 0.0, True, False

    def hear(self, best_s: float, bound_s: float, share: float = 0.0) -> bool:
        """A value and a bound; whether somebody still wants to know."""
        self.bound_s = max(self.bound_s, bound_s)
        said = _note(best_s, self.bound_s)
        self._stopped |= not self._report(Progress(best_s, self.bound_s, note=said))
        proven = best_s <= self.bound_s * PROVEN
        self.open = not (self._stopped or proven or self.clock.left_s() <= 0)
        return not self._stopped


class _CallProof(_Account):
    """The best latency, and then all splits by calls."""

    def run(self, search: "CallBranchSearch") -> Ints | None:
        """Slots of classes of the best split, None where there is none (or none was found)."""
        nodes, most = 0, MOST_CALL_NODES if math.isinf(self.clock.left_s()) else math.inf
        while self.open and not search.complete and nodes < most:
            search.go_on(CALL_NODES)
            nodes += CALL_NODES
            self.hear(search.best_s, search.bound_s)
        return search.slot_of_class


class _Proof(_Account):
    """The largest load: raises the bound of a split, and may find better ones on the way."""

    def __init__(
        self, units: Units, known: Ints, known_s: float, clock: _Clock, report: Report
    ) -> None:
        from placement.splits.bounds.loads import throughput_bound_s

        super().__init__(clock, report)
        self.units, self.device_of_unit, self.load_s = units, known, known_s
        self.raise_to(throughput_bound_s(units))

    def raise_to(self, bound_s: float) -> bool:
        """Hear of a bound; whether to go on."""
        self.hear(self.load_s, bound_s)
        return self.open

    def run(self) -> None:
        from placement.splits.bounds.crowd import crowd_bound_s
        from placement.splits.bounds.loads import plain_sums
        from placement.splits.bounds.prices import price_bound_s

        plain = plain_sums(self.units)
        if not self.raise_to(crowd_bound_s(plain, self.load_s)):
            return
        few = self.units.num_units <= MOST_BRANCHING
        if few and not self._branch():
            return
        bound_s = price_bound_s(
            plain, self.bound_s, self.load_s, more=self.raise_to, left_s=self.clock.left_s
        )
        if self.raise_to(bound_s) and self._scarce():
            self._configure(plain)

    def search_on(self, seed: int, executor: Executor) -> None:
        """Anneal again in the time that the proof has left over."""
        from placement.splits.annealing.throughput import best_split

        left_s = self.clock.left_s()
        if math.isinf(left_s) or not self.raise_to(self.bound_s):
            return
        found = best_split(
            self.units,
            self.device_of_unit,
            budget=Budget(left_s, 0),
            seed=seed,
            bound_s=self.bound_s,
            tell=lambda best_s, *_: self._report(Progress(min(best_s, self.load_s), self.bound_s)),
            executor=executor,
        )
        if found is not None and found.load_s < self.load_s:
            self.device_of_unit, self.load_s = found.device_of_unit, found.load_s
            self.raise_to(self.bound_s)

    def _configure(self, plain: Units) -> None:
        """Programs of parts know memory, which rows of units do not."""
        from placement.splits.bounds.configurations import configuration_bound_s

        bound_s = configuration_bound_s(
            plain, self.bound_s, self.load_s, more=self.raise_to, left_s=self.clock.left_s
        )
        self.raise_to(bound_s)

    def _scarce(self) -> bool:
        """Whether an accelerator's memory does not hold all units."""
        return float(self.units.size_bytes.sum()) > self.units.instance.limit_bytes

    def _branch(self) -> bool:
        """Try all splits as far as that goes; whether there is still something to prove."""
        from placement.splits.exact.branch import BranchSearch
        from placement.splits.exact.branch_priced import PricedBranchSearch
        from placement.splits.exact.branching import Branching

        is_plain = self.units.instance.rules.is_plain
        search: Branching = (
            BranchSearch(self.units, self.device_of_unit, self.load_s)
            if is_plain
            else PricedBranchSearch(self.units, self.device_of_unit, self.load_s)
        )
        end_s = (1.0 - BRANCH_SHARE) * self.clock.left_s()
        nodes, more = 0, True
        while more and not search.complete and nodes < MOST_NODES and self.clock.left_s() >= end_s:
            search.go_on(NODES)
            nodes += NODES
            if search.best_s < self.load_s:
                self.device_of_unit, self.load_s = search.best.copy(), search.best_s
            more = self.raise_to(search.bound_s)
        return more


def _note(value_s: float, bound_s: float) -> str:
    if value_s <= bound_s * PROVEN:
        return "proven optimal"
    return f"at most {percent(gap(value_s, max(bound_s, TINY_S)) or 0.0)} above the best"


PLACER = BranchAndBound
