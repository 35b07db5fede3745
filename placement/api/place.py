"""The verb `place`: a placer decides, and its placement is simulated."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from placement.core.amounts import in_unit
from placement.core.events import Emit, never, silent, waiting
from placement.core.objective import Execution, Objective
from placement.core.verb_options import PlaceOptions, made
from placement.schedule.simulated import Simulated, simulate

if TYPE_CHECKING:
    from placement.core.model import Model
    from placement.core.placement import Placement
    from placement.core.problem import Problem
    from placement.core.schedule import Schedule
    from placement.core.timeline import Timeline
    from placement.placers.base import Placer, Progress


@dataclass(frozen=True)
class Placed:
    """A placer's answer. `seconds` is the time inside `place()` alone.

    `value` and `lower_bound` are in seconds; `unit` is the one to print them in. `problem` is the
    fingerprint of what was solved: results of different problems must not be mixed. `groups` has
    a number for each op, in the graph's order, where the placer formed groups.
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

    @property
    def num_segments(self) -> int:
        return len(self.schedule.segments)


def place(
    problem: Problem,
    placer: str | PlaceOptions = PlaceOptions.placer,
    *,
    emit: Emit = silent,
    stop: Callable[[], bool] = never,
    predict: Callable[[Problem, Placement], Simulated] = simulate,
    keep: Placement | None = None,
    model: Model | None = None,
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
    caller keeps what it has simulated. With the option `live` the placer measures placements of the
    problem's `model` after it has learned from simulated ones.
    """
    from placement.advice.warming import warm_up
    from placement.api.live import live_of
    from placement.bounds.lower_bound import lower_bound
    from placement.core.violations import violations
    from placement.placers import current_name, placer_class
    from placement.placers.base import build, require_fitting

    given = None if isinstance(placer, str) else placer
    options = made(PlaceOptions, given, named if given else {"placer": placer, **named})
    placer = current_name(options.placer)
    options = replace(options, placer=placer)
    kind = placer_class(placer)
    require_fitting(placer, kind, problem, "choose another placer")
    built = build(kind, options)
    live = live_of(model, problem, options, emit) if options.live else None
    with nullcontext() if live else _alone(kind, problem, emit):
        emit({"event": "progress", "what": "compiling, the first time only", "step": 0, "of": 0})
        warm_up(built, problem)
        heard = _Heard(problem, emit, stop)
        placed_by = built.place if live is None else partial(built.place_live, live=live)
        placement = placed_by(problem, report=heard)
        seconds = heard.seconds()
    predicted = predict(problem, placement)
    if keep is not None and problem.execution is not Execution.CALL:
        own_s, placement = predicted.value, _in_order_of(problem, keep, placement)
        predicted = predict(problem, placement)
        heard.note = _kept_in_words(heard.note, own_s, predicted.value)
    bound = max(lower_bound(problem, placement), heard.bound_s)
    broken = violations(problem, predicted.schedule, placement.calls)
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
        seconds=seconds,
        account=heard.note,
        problem=problem.fingerprint,
        groups=heard.groups,
    )


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
        self._problem, self._emit, self._stop = problem, emit, stop
        self._begun_s = time.perf_counter()
        self.bound_s, self.note = 0.0, ""
        self.groups: tuple[int, ...] | None = None

    def seconds(self) -> float:
        """Since the placer began."""
        return time.perf_counter() - self._begun_s

    def __call__(self, progress: Progress) -> bool:
        self.bound_s = max(self.bound_s, progress.bound_s)
        self.note = progress.note or self.note
        if progress.groups:
            self.groups = progress.groups
        unit = self._problem.unit
        self._emit(
            {
                "event": "progress",
                "step": progress.step,
                "of": progress.of,
                "best": _told(progress.best_s, unit),
                "bound": in_unit(self.bound_s, unit),
                "unit": unit,
                "seconds": self.seconds(),
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


def _alone(kind: type[Placer], problem: Problem, emit: Emit) -> AbstractContextManager[object]:
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
