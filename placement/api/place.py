"""The verb `place`: a placer decides, and its placement is simulated."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from placement.core.amounts import in_unit
from placement.core.decoding import shown
from placement.core.events import Emit, never, silent, waiting
from placement.core.formatting import Drawn
from placement.core.objective import Execution, Objective
from placement.core.verb_options import CLUSTER, LOCAL, PlaceOptions, made
from placement.schedule.simulated import Simulated, TokenRates, simulate

if TYPE_CHECKING:
    from placement.advice.searching import Search
    from placement.api.finals import Finals
    from placement.core.graph import Tokens
    from placement.core.model import Model
    from placement.core.placement import Placement
    from placement.core.problem import Problem
    from placement.core.schedule import Schedule
    from placement.core.timeline import Timeline
    from placement.parallel.executor import Executor
    from placement.placers.base import Finalist, Placer, Progress

COMPILING = "loading the method, which is compiled the first time"


@dataclass(frozen=True)
class Placed(TokenRates, Drawn):
    """A placer's answer. `seconds` is the time inside `place()` alone.

    `value` and `lower_bound` are in seconds; `unit` is the one to print them in. `problem` is the
    fingerprint of what was solved: results of different problems must not be mixed. `groups` has
    a number for each op, in the graph's order, where the placer formed groups. Where placements
    were measured against each other `finals` has them all, and the answer is the fastest.
    `range_s` holds what is measured in nine of ten cases, `tokens` says what a step of generating
    text does, `waits_s` what estimated kernels wait for, `solved` is the problem.
    """

    placer: str
    placement: Placement
    schedule: Schedule
    timeline: Timeline
    objective: Objective
    value: float
    unit: str
    costs: str
    lower_bound: float
    proven_optimal: bool
    violations: tuple[str, ...]
    seconds: float
    account: str = ""
    problem: str = ""
    groups: tuple[int, ...] | None = None
    finals: Finals | None = None
    range_s: tuple[float, float] | None = None
    tokens: Tokens | None = None
    waits_s: Mapping[str, float] | None = None
    solved: Problem | None = field(default=None, repr=False, compare=False)

    @property
    def num_segments(self) -> int:
        return len(self.schedule.segments)

    @property
    def rules(self) -> str | None:
        """How loads were charged, in words; None where they are plain sums."""
        return None if self.solved is None else self.solved.rules.words or None


def place(
    problem: Problem,
    placer: str | PlaceOptions = PlaceOptions.placer,
    *,
    emit: Emit = silent,
    stop: Callable[[], bool] = never,
    predict: Callable[[Problem, Placement], Simulated] = simulate,
    keep: Placement | None = None,
    model: Model | None = None,
    searched: Search | None = None,
    beside: Mapping[str, Placement] = MappingProxyType({}),
    **named: Any,
) -> Placed:
    """Let a placer decide, and say what its placement is predicted to do.

    The placer is named, with its options beside it (`place(problem, "annealing", seed=1)`), or
    stands in a value that holds all of them.

    With `keep` the problem's pins leave only some ops of that placement free: these get the devices
    that the placer finds, and the order stays that of `keep`.

    What the placer needs is compiled before its time starts. One that computes on all cores waits
    for a measurement on this computer to end, and keeps others waiting. `emit` hears progress.
    Once `stop` says so the best so far is the answer. `predict` stands in for `simulate` where a
    caller keeps what it has simulated. With the option `live` placements of the problem's `model`
    are measured in the end: one that learns goes on with them, of any other the finalists race
    against each device alone, the whole CPU (`placement.api.finals`) and the placements that are
    named `beside` them, and the fastest is the answer. With `search_on` a search computes on a
    cluster (`executor_of`); what was `searched` elsewhere is not searched again.
    """
    from placement.api.finals import finals
    from placement.api.live import measurable
    from placement.bounds.lower_bound import lower_bound
    from placement.core.violations import violations
    from placement.costs.roofline import waits_s
    from placement.placers import current_name, placer_class
    from placement.placers.base import require_fitting
    from placement.schedule.reordering import in_sequence

    given = None if isinstance(placer, str) else placer
    options = made(PlaceOptions, given, named if given else {"placer": placer, **named})
    placer = current_name(options.placer)
    options = replace(options, placer=placer)
    kind = placer_class(placer)
    require_fitting(placer, kind, problem, "choose another placer")
    if options.live:
        measurable(model, problem)
    heard = _Heard(problem, emit, stop)
    found: Placement | tuple[Finalist, ...]
    if searched is not None:
        found = heard.take(searched)
    else:
        found = _found(kind, problem, options, heard, model)
    measured, placed_for = None, problem
    if problem.sequences:
        found = _in_sequence(problem, found, heard)
    if isinstance(found, tuple):
        found = (*_finalists_of(problem, beside), *found)
        measured = finals(model, problem, found, options, keep=keep, emit=emit, stop=stop)
        heard.note = ". ".join(filter(None, (heard.note, measured.account)))
        placed_for, placement = measured.winner.problem, measured.winner.placement
        predicted = predict(placed_for, placement)
    else:
        placement, predicted = found, predict(problem, found)
        if keep is not None and problem.execution is not Execution.CALL:
            own_s, placement = predicted.value, _in_order_of(problem, keep, found)
            placement = in_sequence(problem, placement) if problem.sequences else placement
            predicted = predict(problem, placement)
            heard.note = _kept_in_words(heard.note, own_s, predicted.value)
    # What is proven of one machine says nothing about another.
    is_same = placed_for is problem
    bound = max(lower_bound(problem, placement), heard.bound_s) if is_same else 0.0
    broken = violations(placed_for, predicted.schedule, placement.calls)
    return Placed(
        placer=placer,
        placement=placement,
        schedule=predicted.schedule,
        timeline=predicted.timeline,
        objective=problem.objective,
        value=predicted.value,
        unit=predicted.unit,
        costs=problem.costs.origin,
        lower_bound=bound,
        proven_optimal=not broken and predicted.value <= bound * (1 + 1e-9) < math.inf,
        violations=broken,
        seconds=heard.ended_s,
        account=heard.note,
        problem=placed_for.fingerprint,
        groups=heard.groups,
        finals=measured,
        range_s=predicted.range_s,
        tokens=problem.graph.tokens,
        waits_s=waits_s(placed_for, placement),
        solved=placed_for,
    )


def _finalists_of(problem: Problem, beside: Mapping[str, Placement]) -> Iterator[Finalist]:
    """Placements that somebody wants measured, too; one that breaks a rule is refused."""
    from placement.core.violations import violations
    from placement.placers.base import Finalist

    for name, placement in beside.items():
        broken = violations(problem, simulate(problem, placement).schedule, placement.calls)
        if broken:
            raise ValueError(f"The placement {shown(name)} cannot be measured: {broken[0]}")
        yield Finalist(name, placement)


def executor_of(search_on: str, problem: Problem, lost: Callable[[str], object]) -> Executor:
    """Who carries out a search: this computer, or the hosts of a cluster, ready for it.

    The cluster where it is asked for, or where the devices are those of one that this process was
    connected to. `lost` hears a sentence where hosts leave. A ValueError says where there is no
    cluster.
    """
    from placement.parallel.executor import HERE
    from profiling import backends

    is_theirs = not search_on and bool(backends.elsewhere(problem.machine.devices))
    if search_on == LOCAL or not (search_on or is_theirs):
        return HERE
    address = problem.machine.name if is_theirs else search_on
    address = address if address.startswith(f"{CLUSTER}://") else ""
    return backends.usable(CLUSTER).executor(address, lost, asked=not is_theirs) or HERE


def _found(
    kind: type[Placer],
    problem: Problem,
    options: PlaceOptions,
    heard: _Heard,
    model: Model | None,
) -> Placement | tuple[Finalist, ...]:
    """What a placer answers, or those of whom measuring has to choose, once it is compiled."""
    from placement.advice.warming import warm_up, warming
    from placement.api.live import live_of
    from placement.placers.base import build

    where = options.search_on if kind.all_cores else LOCAL
    executor = executor_of(where, problem, heard.lose)
    built = build(kind, options, executor)
    live = None
    if options.live and built.learns_live:
        live = live_of(model, problem, options, heard.emit)
    with nullcontext() if live else alone(type(built), problem, heard.emit):
        heard.emit({"event": "progress", "what": COMPILING, "step": 0, "of": 0})
        warm_up(built, problem)
        executor.prepare(warming(kind, options, problem))
        with heard.at_work():
            if live is not None:
                return built.place_live(problem, live, report=heard)
            return built.finalists(problem, heard) if options.live else built.place(problem, heard)


def _in_sequence(
    problem: Problem, found: Placement | tuple[Finalist, ...], heard: _Heard
) -> Placement | tuple[Finalist, ...]:
    """What a placer found, with the sequences that the problem pins; finalists each their own."""
    from placement.schedule.reordering import in_sequence

    if not isinstance(found, tuple):
        held = in_sequence(problem, found)
        if held is not found:
            heard.note = sequenced_in_words(heard.note)
        return held
    return tuple(replace(f, placement=in_sequence(problem, f.placement)) for f in found)


def sequenced_in_words(note: str) -> str:
    """A method's account of an answer that was put into the order that is pinned."""
    return f"{note}; then with the order that is pinned" if note else ""


def _in_order_of(problem: Problem, keep: Placement, found: Placement) -> Placement:
    """What a method found for some ops of a placement, as an edit of that placement."""
    from placement.constraints.fusion import mended
    from placement.schedule.order import moved

    return moved(problem, mended(problem, keep), found.device_of)


def _kept_in_words(note: str, own_s: float, value_s: float) -> str:
    """A method's account of its value, and the value in the order that was kept."""
    from placement.search.progress import in_words

    if not note or math.isclose(own_s, value_s, rel_tol=1e-9):
        return note
    return f"{note}; {in_words(value_s)} in the order of the placement that was kept"


class _Heard:
    """The report that a placer gets: passes its progress on and keeps the proven bound and the
    account and groups."""

    def __init__(self, problem: Problem, emit: Emit, stop: Callable[[], bool]) -> None:
        self._problem, self.emit, self._stop = problem, emit, stop
        self._begun_s = time.perf_counter()
        self.bound_s, self.note, self.ended_s = 0.0, "", 0.0
        self.groups: tuple[int, ...] | None = None
        self._losses: list[str] = []

    def take(self, searched: Search) -> Placement:
        """What was searched elsewhere, and is known of that."""
        self.bound_s, self.note = searched.bound_s, searched.account
        self.ended_s, self.groups = searched.seconds, searched.groups or None
        return searched.placement

    def lose(self, message: str) -> None:
        """Hear that a search has lost hosts."""
        self._losses.append(message)
        self.emit({"event": "lost", "message": message, "devices": []})

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """What is done inside is the placer's time."""
        self._begun_s = time.perf_counter()
        yield
        self.ended_s = self._seconds()
        self.note = " ".join([f"{self.note}.", *self._losses] if self._losses else [self.note])

    def _seconds(self) -> float:
        return time.perf_counter() - self._begun_s

    def __call__(self, progress: Progress) -> bool:
        self.bound_s = max(self.bound_s, progress.bound_s)
        self.note = progress.note or self.note
        if progress.groups:
            self.groups = progress.groups
        unit = self._problem.unit
        self.emit(
            {
                "event": "progress",
                "step": progress.step,
                "of": progress.of,
                "best": _told(progress.best_s, unit),
                "bound": in_unit(self.bound_s, unit),
                "unit": unit,
                "seconds": self._seconds(),
                "note": progress.note,
                **_learned(progress, unit),
            }
        )
        return not self._stop()


def _learned(progress: Progress, unit: str) -> dict[str, Any]:
    """What only searches by samples tell."""
    if not progress.evaluations:
        return {}
    return {
        "evaluations": progress.evaluations,
        "mean": _told(progress.mean_s, unit),
        "entropy": progress.entropy,
    }


def _told(value_s: float, unit: str) -> float | None:
    return in_unit(value_s, unit) if math.isfinite(value_s) else None


def alone(kind: type[Placer], problem: Problem, emit: Emit) -> AbstractContextManager[object]:
    """A context in which nothing is measured on this computer, for placers that use all of it."""
    if not kind.all_cores:
        return nullcontext()
    from profiling.measuring.lock import measuring

    return measuring(f"placing {problem.graph.name}", waiting(emit))


def list_placers() -> list[dict[str, Any]]:
    """Every placer with its summary, paper and settings."""
    from placement.placers import names, placer_class
    from placement.placers.base import describe

    return [describe(name, placer_class(name)) for name in names()]
