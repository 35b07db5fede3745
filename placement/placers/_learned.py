"""The shared course of learners and their controls, from a problem to a placement.

The problem becomes an environment at some level of coarseness; a method finds the best placement
that it can there within its budget; that one is refined to the problem's own units, in an order of
its own; the best of it and of cheap placers' answers (the candidates) is the result. The time limit
covers all of it.
"""

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from placement.core.formatting import counted
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.learning.account import Heard, Trace, account_of, groups_of
from placement.learning.budget import Budget, default_evaluations
from placement.learning.environment import Environment, coarser
from placement.learning.live import Live, learn_live
from placement.learning.simulated import simulated
from placement.learning.training import Learned, Tell, at_random
from placement.learning.workload import workload
from placement.parallel.executor import HERE, Executor
from placement.placers.base import Placer, Progress, Report, Step, quiet
from placement.search.chain import Chain, Start, start_of
from placement.search.coarsening import Blocks, blocks, levels_of
from placement.search.feasible import final_s, require_room_for_weights, within_memory
from placement.search.improvement import default_moves, improve
from placement.search.progress import in_words

# From an environment, a budget and an incumbent (or none) to what was found, telling of points.
Find = Callable[[Environment, Budget, Tell, Ints | None], Learned]
Level = Callable[[Environment], Environment]

# Placements drawn to see whether any of them is possible.
NUM_DRAWN = 128
# Orders that are tried for what was found, as long as each is better than the last.
MOST_ORDERS = 8
# What is done after the search takes as long as this many final values: as found, in other orders,
# improved.
NUM_ENDS = 5
KICK = 3


@dataclass(frozen=True, kw_only=True)
class Learner(Placer):
    """A placer by samples of placements, simulated and, where asked for, measured in the end."""

    objectives = tuple(Objective)
    executions = tuple(Execution)
    all_cores: ClassVar[bool] = True
    learns_live: ClassVar[bool] = True
    followed_with: ClassVar[Mapping[str, int]] = MappingProxyType({"max_iterations": 40})

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        return self._found(problem, None, report, Trace())

    def place_live(self, problem: Problem, live: Live, report: Report = quiet) -> Placement:
        return self._found(problem, live, report, Trace())

    def steps(self, problem: Problem, most: int, report: Report = quiet) -> Iterator[Step]:
        from placement.placers._steps.learning import walk

        trace = Trace(most)

        def heard(progress: Progress) -> bool:
            return report(trace.in_batches(progress))

        return walk(problem, trace, self._found(problem, None, heard, trace))

    @abstractmethod
    def _found(
        self, problem: Problem, live: Live | None, report: Report, trace: Trace
    ) -> Placement:
        """What all do: `searched` as this placer's own study says."""


def lines(draws: str, learns: str) -> tuple[str, ...]:
    """The pseudo-code of a learner, who draws placements and learns from them in its own way."""
    return (
        "quick methods answer first; the best of them stands beside what is found",
        draws,
        "predict the step of each, and of changes of the best placement so far",
        learns,
        "in the end try other orders of the ops for the best one",
        "answer the best of all",
    )


@dataclass(frozen=True, kw_only=True)
class Study:
    """How a learner goes through a problem: what it finds placements by, from which seed, on which
    level (that of chains by default), and for how long.

    `max_evaluations` 0 leaves the number to the time limit, or else to the problem's size. A share
    `search` of the budget goes to local search from what was found. The `candidates`, placers by
    comma, answer first. What can be done side by side goes to the `executor`.
    """

    find: Find
    seed: int
    max_evaluations: int
    time_limit_s: float | None
    candidates: str
    level: Level | None = None
    search: float = 0.0
    executor: Executor = HERE


def searched(
    problem: Problem, study: Study, live: Live | None, report: Report, trace: Trace
) -> Placement:
    """The best of what a learner finds in its study and of the candidates.

    With `live` placements near the best one are measured in the end, beyond the budget. The `trace`
    hears of it all.
    """
    begun_s = time.perf_counter()
    seed, search, max_evaluations = study.seed, study.search, study.max_evaluations
    environment = (study.level or chained)(environment_of(problem, study.executor))
    best = _Best(problem)
    answered = []
    for name, placement in _answers(problem, study.candidates):
        value_s = best.hear(placement)
        trace.answered(name, value_s)
        answered.append(name)
    environment.values_s(at_random(environment, 1, np.random.default_rng(seed)))
    drawing_s = time.perf_counter()
    first, is_drawn = _first(environment, seed)
    # The search looks at the clock between batches, so that the last one may come too late.
    batch_s = time.perf_counter() - drawing_s
    if first is None:
        return best.placement
    left_s = None
    if study.time_limit_s is None:
        max_evaluations = max_evaluations or default_evaluations(problem)
    else:
        best.try_out(environment.placement_of(first))
        kept_s = batch_s + NUM_ENDS * best.longest_s
        left_s = max(0.0, study.time_limit_s - (time.perf_counter() - begun_s) - kept_s)
    heard = Heard(report, left_s is not None, trace)
    budget = Budget(
        None if left_s is None else left_s * (1.0 - search),
        math.ceil(max_evaluations * (1.0 - search)),
    )
    learned = study.find(environment, budget, heard.tell, None if is_drawn else first)
    found = (learned.environment or environment).placement_of(learned.devices)
    offered_s = best.value_s
    own_s = found_s = best.hear(found)
    if problem.execution is not Execution.CALL:
        until_s = None
        if study.time_limit_s is not None:
            # The last turn of a search tries orders, whose number nothing but their gain limits.
            until_s = begun_s + study.time_limit_s - NUM_ENDS * best.longest_s
        for refined in _refined(problem, found, heard, seed, search, until_s):
            own_s = min(own_s, best.hear(refined))
    trace.end(found_s, own_s)
    account = account_of(learned, own_s, offered_s, answered)
    groups = groups_of(problem, learned)
    heard.conclude(learned, min(own_s, offered_s), account, groups)
    if live is None or not heard.is_going_on:
        return best.placement
    return _measured(environment, learned, best.placement, live, report, seed, account)


def environment_of(problem: Problem, executor: Executor = HERE) -> Environment:
    """The finest environment of a problem; ValueError where an op fits on no device."""
    if problem.execution is Execution.CALL:
        return workload(problem, executor)
    require_room_for_weights(problem)
    return simulated(problem, executor=executor)


def itself(environment: Environment) -> Environment:
    """The level of the units as they are."""
    return environment


def chained(environment: Environment) -> Environment:
    """The level of a graph's chains; a workload's units have no others."""
    if environment.problem.execution is Execution.CALL:
        return environment
    from placement.search.coarsening_compiled import find_chains

    edges = environment.edges
    return coarser(environment, find_chains(environment.num_units, edges.source, edges.target))


def at_most(num_units: int) -> Level:
    """The finest level of no more units than this, or the coarsest there is."""

    def level(environment: Environment) -> Environment:
        found = environment
        for cluster in clusters(environment):
            if found.num_units <= num_units:
                break
            found = coarser(environment, cluster)
        return found

    return level


def clusters(environment: Environment) -> list[Ints]:
    """Clusters (U,) of the units, the finest level first: chains, then by what flows between."""
    work_s = np.where(environment.allowed, environment.unit_s, np.inf).min(axis=1)
    edges = environment.edges
    found = levels_of(edges.source, edges.target, edges.num_bytes, work_s, environment.num_devices)
    return found or [np.arange(environment.num_units)]


def _answers(problem: Problem, candidates: str) -> Iterator[tuple[str, Placement]]:
    """Of the placers named, as far as they know such problems and find anything."""
    from placement.placers import placer_class

    for name in filter(None, (part.strip() for part in candidates.split(","))):
        kind = placer_class(name)
        if problem.execution not in kind.executions:
            continue
        known = problem.objective in kind.objectives
        try:
            asked = problem if known else replace(problem, objective=Objective.LATENCY)
            yield name, kind().place(asked)
        except ValueError:
            continue


def _first(environment: Environment, seed: int) -> tuple[Ints | None, bool]:
    """A possible placement (U,), if one is found, and whether one was just drawn."""
    drawn = at_random(environment, NUM_DRAWN, np.random.default_rng(seed))
    for rows, is_drawn in ((drawn, True), (_gathered(environment), False)):
        value_s = environment.values_s(rows)
        best = int(value_s.argmin())
        if np.isfinite(value_s[best]):
            return rows[best], is_drawn
    return None, False


def _gathered(environment: Environment) -> Ints:
    """Placements (N, U): all on one device where it may be, and the largest where most room is."""
    fastest = np.where(environment.allowed, environment.unit_s, np.inf).argmin(axis=1)
    rows = [np.where(environment.allowed[:, d], d, fastest) for d in range(environment.num_devices)]
    room, packed = environment.limit_bytes.copy(), fastest.copy()
    for unit in np.argsort(-environment.size_bytes, kind="stable").tolist():
        packed[unit] = np.where(environment.allowed[unit], room, -np.inf).argmax()
        room[packed[unit]] -= environment.size_bytes[unit]
    return np.stack([*rows, packed])


def _refined(
    problem: Problem,
    found: Placement,
    heard: Heard,
    seed: int,
    search: float,
    until_s: float | None,
) -> Iterator[Placement]:
    """The placement in an order of its own, and what local search makes of it until then."""
    try:
        start = start_of(problem, within_memory(problem, lambda _: found, scales=(1.0,)))
    except ValueError:
        return
    none = np.zeros(0, dtype=np.int64)
    chain = Chain(problem, start, Blocks(np.zeros(1, dtype=np.int64), none), seed=seed)
    turn_s = 0.0
    for _ in range(MOST_ORDERS):
        before_s, begun_s = chain.best_s, time.perf_counter()
        chain.turn()
        turn_s = time.perf_counter() - begun_s
        if not chain.best_s < before_s:
            break
    yield chain.placement
    if search and heard.is_going_on:
        start = Start(chain.best, chain.best_order)
        chain = Chain(problem, start, blocks(problem), seed=seed, kick=KICK)
        improve(
            problem,
            [chain],
            heard.report,
            max_iterations=0 if until_s is not None else math.ceil(search * default_moves(problem)),
            time_limit_s=None
            if until_s is None
            else max(0.0, until_s - turn_s - time.perf_counter()),
        )
        yield chain.placement


def _measured(
    environment: Environment,
    learned: Learned,
    start: Placement,
    live: Live,
    report: Report,
    seed: int,
    account: str,
) -> Placement:
    """The best of placements near one that was found, by their measured steps."""
    problem = environment.problem
    begun = start_of(problem, start)

    def tell(best_s: float, number: int) -> bool:
        note = f"measured: {in_words(best_s)} after {counted(number, 'placement')}"
        return report(Progress(step=number, of=live.num_placements, note=note))

    found = learn_live(
        environment,
        begun.devices,
        live,
        trained=learned.trained,
        placement_of=lambda units: problem.placement_of(units, begun.order.tolist()),
        seed=seed,
        tell=tell,
    )
    tried = counted(found.num_placements, "measured placement")
    better = found.value_s < found.start_s
    account += f". Then {in_words(found.value_s)} measured, the best of {tried}"
    if better:
        account += f"; the prediction's best took {in_words(found.start_s)}"
    else:
        account += ", none faster than the prediction's best"
    report(Progress(step=live.num_placements, of=live.num_placements, note=account))
    return found.placement


class _Best:
    """The best placement of those heard by their final values, the first of equals."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._placement: Placement | None = None
        self.value_s = math.inf
        self._took_s: list[float] = []

    @property
    def longest_s(self) -> float:
        """Seconds to find the final value of a placement; the first time, what is compiled is
        loaded, which says nothing about the next."""
        return max(self._took_s[1:], default=0.0)

    def try_out(self, placement: Placement) -> None:
        """Value a placement only to see how long that takes."""
        while len(self._took_s) < 2:
            self._final_s(placement)

    def hear(self, placement: Placement) -> float:
        """The final seconds of a placement."""
        value_s = self._final_s(placement)
        if value_s < self.value_s:
            self.value_s, self._placement = value_s, placement
        return value_s

    def _final_s(self, placement: Placement) -> float:
        begun_s = time.perf_counter()
        value_s = final_s(self._problem, placement)
        self._took_s.append(time.perf_counter() - begun_s)
        return value_s

    @property
    def placement(self) -> Placement:
        if self._placement is None:
            raise ValueError(
                "No placement within all limits was found; give the devices more memory, remove"
                " pins or search longer."
            )
        return self._placement
