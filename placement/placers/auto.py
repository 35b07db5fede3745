"""Automatic: cheap placers at once, then search on all cores until time is up, with a proven bound.

A portfolio (Gomes and Selman, "Algorithm portfolios", Artificial Intelligence 126, 2001): whatever
is cheap on a graph of this size is tried first, and the best is improved by annealing and by local
search side by side.
"""

import importlib.util
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from placement.bounds.lower_bound import lower_bound
from placement.core.formatting import counted
from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.placers.base import Finalist, Placer, Progress, Report, quiet, setting
from placement.schedule.segments import make_schedule
from placement.schedule.symmetry import num_changed
from placement.search import windows
from placement.search.chain import Chain, start_of
from placement.search.coarsening import blocks
from placement.search.feasible import final_s
from placement.search.improvement import improve
from placement.search.progress import gap_in_words, in_words

# The share of the time limit for cheap placers, of which these many are tried in any case, and for
# each of those that can end early: what they find in more time a search finds sooner.
FIRST_SHARE, AT_LEAST, EACH_SHARE = 0.4, 2, 0.1
# Time kept for turning the search's ends into schedules, by how long one took before.
LAST_TIMES = 2.5
# The best few ends of a search are turned into merged schedules; with more kernels the best alone.
COMPARE_FEW_UP_TO, FEW = 5_000, 2
# Graphs with more kernels are searched by windows: whole simulations leave time for few moves.
WINDOWS_FROM = 20_000
# Annealing starts warm, because it starts from something good.
HOT, COLD, KICK = 0.02, 1e-5, 3
# Finalists are predicted to take at most so much more than the best; the second search takes links
# to be slower by a factor.
MOST_FINALISTS, WORTH, WARY = 8, 1.3, 4.0


@dataclass(frozen=True)
class _Found:
    """A placement, who found it and its value in seconds, infinite where memory forbids it.

    `compare_s` is the time that it took to find the value.
    """

    name: str
    placement: Placement
    value_s: float
    compare_s: float


def _compared(name: str, problem: Problem, placement: Placement) -> _Found:
    begun_s = time.perf_counter()
    value_s = final_s(problem, placement)
    return _Found(name, placement, value_s, time.perf_counter() - begun_s)


@dataclass(frozen=True, kw_only=True)
class Auto(Placer):
    summary = (
        "Cheap methods at once, then search on all cores; says how far from the best it can be"
    )
    paper = "Gomes, Selman: Algorithm portfolios, Artificial Intelligence 126, 2001"
    objectives = tuple(Objective)
    executions = tuple(Execution)
    no_steps = "it runs other methods side by side, and most of those show theirs"
    all_cores: ClassVar[bool] = True

    max_iterations: int = setting(
        0, "Moves of each search; 0 takes as many as a few seconds allow, by the graph's size"
    )

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        limit_s = math.inf if self.time_limit_s is None else self.time_limit_s
        return self._candidates(problem, report, limit_s)[0].placement

    def finalists(self, problem: Problem, report: Report = quiet) -> tuple[Finalist, ...]:
        """The bests of two searches, one of them for slower links, and of the cheap placers.

        A prediction errs most where much is handed over, so what hands over less stands beside it.
        """
        limit_s = math.inf if self.time_limit_s is None else self.time_limit_s / 2
        found = self._candidates(problem, report, limit_s)
        if problem.num_devices > 1:
            costs = replace(problem.costs, latency_s=WARY * problem.costs.latency_s)
            # Values of another problem are nobody's progress.
            others = self._candidates(
                replace(problem, costs=costs), lambda progress: report(Progress()), limit_s
            )
            found += [_compared(f"{f.name}, wary of sending", problem, f.placement) for f in others]
        return tuple(Finalist(f.name, f.placement) for f in _chosen(problem, found))

    def _candidates(self, problem: Problem, report: Report, limit_s: float) -> list[_Found]:
        """Everything that was found within memory, the best first; ValueError if nothing was."""
        begun_s = time.perf_counter()
        watch = _Watch(report, lower_bound(problem))
        found, refusal = self._first(problem, watch, lambda: time.perf_counter() - begun_s, limit_s)
        spent_s = time.perf_counter() - begun_s
        # Some time is lost now and then to what else the computer does; it says nothing of others.
        compare_s = statistics.median(f.compare_s for f in found) if found else 0.0
        left_s = limit_s - spent_s - LAST_TIMES * compare_s
        improved: list[_Found] = []
        if (watch.can_improve or not found) and left_s > 0:
            search = self._split if problem.execution is Execution.CALL else self._search
            try:
                improved = search(problem, found, watch, left_s)
            except ValueError as error:
                # It knows better than a cheap placer whether anything fits at all.
                refusal = error
        ranked = sorted([*found, *improved], key=lambda f: f.value_s)
        if not ranked or math.isinf(ranked[0].value_s):
            raise refusal or ValueError(
                "No placement within all limits was found; give the devices more memory, remove"
                " pins or search longer."
            )
        best = ranked[0]
        watch.conclude(problem, min(found, key=lambda f: f.value_s, default=best), best)
        return [f for f in ranked if math.isfinite(f.value_s)]

    def _first(
        self, problem: Problem, watch: "_Watch", clock: Callable[[], float], limit_s: float
    ) -> tuple[list[_Found], ValueError | None]:
        """What the cheap placers find within their share of the time, and why the first of those
        that find nothing does not."""
        from placement.placers import placer_class

        found: list[_Found] = []
        refusal: ValueError | None = None
        slowest_s = 0.0
        for name in quick_placers(problem):
            before_s = clock()
            late = len(found) >= AT_LEAST and before_s + slowest_s > FIRST_SHARE * limit_s
            if found and (late or not watch.going_on):
                break
            turn = _Turn(watch, clock, before_s + EACH_SHARE * limit_s)
            try:
                placement = _start(placer_class(name)(seed=self.seed), problem, turn)
            except ValueError as error:
                refusal = refusal or error
                continue
            found.append(_compared(name, problem, placement))
            watch.hear(found[-1].value_s, name)
            # One that was told to end says nothing of how long the next may take.
            slowest_s = max(slowest_s, 0.0 if turn.is_over else clock() - before_s)
        if not found and problem.execution is not Execution.CALL:
            raise refusal or ValueError("No cheap placer works for this problem; choose another.")
        return found, refusal

    def _search(
        self, problem: Problem, found: Sequence[_Found], watch: "_Watch", left_s: float
    ) -> list[_Found]:
        """Annealing and local search from the best placements, side by side."""
        if len(problem.kernels.ops) > WINDOWS_FROM and windows.fits(problem):
            return self._along(problem, found, watch, left_s)
        begun_s = time.perf_counter()
        num_chains = self._num_chains(left_s)
        ranked = sorted(found, key=lambda f: f.value_s)[: num_chains // 2]
        moved_together = blocks(problem)
        chains = []
        for i in range(num_chains):
            start = start_of(problem, ranked[i // 2 % len(ranked)].placement)
            settings = {"kick": KICK} if i % 2 else {"hot": HOT, "cold": COLD}
            chains.append(Chain(problem, start, moved_together, seed=self.seed + i, **settings))

        left_s -= time.perf_counter() - begun_s
        improve(
            problem,
            chains,
            watch.pass_on,
            max_iterations=self.max_iterations,
            time_limit_s=None if math.isinf(left_s) else max(0.0, left_s),
            together=True,
            executor=self.executor,
        )
        chains.sort(key=lambda chain: chain.best_s)
        few = chains[: FEW if len(problem.kernels.ops) <= COMPARE_FEW_UP_TO else 1]
        return [_compared("search", problem, chain.placement) for chain in few]

    def _along(
        self, problem: Problem, found: Sequence[_Found], watch: "_Watch", left_s: float
    ) -> list[_Found]:
        """The best placement improved window by window along its order, in parts side by side."""
        begun_s = time.perf_counter()
        start = start_of(problem, min(found, key=lambda f: f.value_s).placement)
        left_s -= time.perf_counter() - begun_s
        devices = windows.improve_along(
            problem,
            start,
            watch.pass_on,
            seed=self.seed,
            num_parts=self._num_chains(left_s),
            max_iterations=self.max_iterations,
            time_limit_s=max(0.0, left_s),
            executor=self.executor,
        )
        placement = problem.placement_of(devices, start.order.tolist())
        return [_compared("search", problem, placement)]

    def _num_chains(self, left_s: float) -> int:
        """Without a time limit the answer must not depend on the computer."""
        return 2 if math.isinf(left_s) or self.max_iterations else max(2, self.executor.num_lanes)

    def _split(
        self, problem: Problem, found: Sequence[_Found], watch: "_Watch", left_s: float
    ) -> list[_Found]:
        """Annealing of splits or calls, and then a proof of how near to the best they are."""
        from placement.placers import placer_class

        settings: dict[str, Any] = {
            "max_iterations": self.max_iterations,
            "executor": self.executor,
        }
        if not math.isinf(left_s):
            settings |= {"time_limit_s": left_s}
        placer = placer_class("branch_and_bound")(seed=self.seed, **settings)
        # It tells by the clock how far it is: to end it there because the bound is met would make
        # the answer depend on the computer. It ends by itself where it has a proof.
        tell = watch.follow if math.isinf(left_s) else watch.pass_on
        return [_compared("search", problem, placer.place(problem, tell))]


def _chosen(problem: Problem, found: Sequence[_Found]) -> list[_Found]:
    """A few of those that are predicted to be good and differ: the best ones, and whatever nobody
    beats who has as few segments."""
    ranked: list[_Found] = []
    for candidate in sorted(found, key=lambda f: f.value_s):
        good = candidate.value_s <= WORTH * min(f.value_s for f in found)
        if good and all(num_changed(problem, f.placement, candidate.placement) for f in ranked):
            ranked.append(candidate)
    front, fewest = list[_Found](), math.inf
    for candidate in ranked:
        num_segments = len(make_schedule(problem, candidate.placement).segments)
        if num_segments < fewest:
            front.append(candidate)
            fewest = num_segments
    first = [*front, *(f for f in ranked if f not in front)][:MOST_FINALISTS]
    return sorted(first, key=lambda f: f.value_s)


def quick_placers(problem: Problem) -> list[str]:
    """Placers that are cheap for a problem of this kind and size, the cheapest few first."""
    from placement.placers import names, placer_class

    quick = [
        name
        for name in names()
        for kind in [placer_class(name)]
        if kind.is_quick(problem)
        and problem.execution in kind.executions
        and (problem.objective in kind.objectives or _starts_pipelines(problem, kind))
        and all(importlib.util.find_spec(need) for need in kind.needs)
    ]
    first: tuple[str, ...] = ("heft", "single", "greedy_fill", "linear_dp")
    if problem.execution is not Execution.CALL:
        # CEFT with PBQP finds what fits where memory is short; the last one takes seconds on a
        # model of thousands of kernels.
        first = ("heft", "single", "ceft_pbqp", "linear_dp", "ideals_dp")
        if len(problem.kernels.ops) > WINDOWS_FROM:
            first = ("heft", "peft", "single")
    return sorted(
        quick, key=lambda name: (first.index(name) if name in first else len(first), name)
    )


def _starts_pipelines(problem: Problem, kind: type[Placer]) -> bool:
    """Whether a placer for latency may be asked for a start, because moves lead on from there."""
    return problem.execution is not Execution.CALL and Objective.LATENCY in kind.objectives


def _start(placer: Placer, problem: Problem, turn: "_Turn") -> Placement:
    """What a cheap placer finds; any placement may be a start, also one for another objective."""
    if problem.objective in placer.objectives:
        return placer.place(problem, turn.hear)
    # A bound is of the problem that it was proven for.
    other = replace(problem, objective=placer.objectives[0])
    return placer.place(other, lambda progress: turn.hear(Progress()))


class _Watch:
    """Keeps the best value and bound heard so far, and tells them on with an account."""

    def __init__(self, report: Report, bound_s: float) -> None:
        self._report, self.bound_s = report, bound_s
        self.best_s, self.going_on = math.inf, True
        self._leader = ""

    @property
    def can_improve(self) -> bool:
        """Whether nobody said stop and the bound is not met."""
        return self.going_on and self.best_s > self.bound_s * (1 + 1e-9)

    def hear(self, value_s: float, name: str) -> bool:
        """A value that was found; whether to go on."""
        if value_s < self.best_s * (1 - 1e-12):
            self.best_s, self._leader = value_s, name
        return self._tell(f"{self._leader} {in_words(self.best_s)}")

    def pass_on(self, progress: Progress) -> bool:
        """Progress of a search, which may have bounds of its own."""
        self.bound_s = max(self.bound_s, progress.bound_s)
        return self.hear(progress.best_s, "search")

    def follow(self, progress: Progress) -> bool:
        """The same, but nothing ends for a bound that is met."""
        self.pass_on(progress)
        return self.going_on

    def conclude(self, problem: Problem, first: _Found, best: _Found) -> None:
        """Tell how the answer came about."""
        self.best_s = best.value_s
        account = f"{first.name} {in_words(first.value_s)}"
        if best is not first:
            moved = counted(num_changed(problem, first.placement, best.placement), "op")
            saved = in_words(first.value_s - best.value_s)
            account += f", search saves {saved} by moving {moved}: {in_words(best.value_s)}"
        self._tell(account)

    def _tell(self, account: str) -> bool:
        note = f"{account}, {gap_in_words(self.best_s, self.bound_s)}"
        going_on = self._report(Progress(best_s=self.best_s, bound_s=self.bound_s, note=note))
        self.going_on = self.going_on and going_on
        return self.can_improve


class _Turn:
    """A cheap placer's turn: it is asked to end once the clock says `ends_s` or nobody waits."""

    def __init__(self, watch: _Watch, clock: Callable[[], float], ends_s: float) -> None:
        self._watch, self._clock, self._ends_s = watch, clock, ends_s
        self.is_over = False

    def hear(self, progress: Progress) -> bool:
        """Progress of a method whose values are heard of at its end; only its bound counts."""
        self._watch.bound_s = max(self._watch.bound_s, progress.bound_s)
        self.is_over = self._clock() >= self._ends_s
        return self._watch.going_on and not self.is_over


PLACER = Auto
