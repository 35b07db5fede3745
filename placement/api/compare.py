"""The verb `compare`: several placers on one problem, a row each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from placement.api.place import alone, executor_of, place
from placement.api.results.placing import CompareRow
from placement.api.run import run, stream
from placement.core.events import Emit, never, silent
from placement.core.formatting import Drawn
from placement.core.objective import Objective
from placement.core.verb_options import LOCAL, CompareOptions, made
from placement.parallel.calls import Call
from placement.parallel.executor import HERE, Executor, Job, Stop

if TYPE_CHECKING:
    from placement.advice.searching import Search
    from placement.core.model import Model
    from placement.core.placement import Placement
    from placement.core.problem import Problem


class Board(Drawn, tuple[CompareRow, ...]):
    """The rows of a comparison; in a notebook a table, the best first."""

    devices: tuple[str, ...]

    def __new__(cls, rows: Iterable[CompareRow], devices: Iterable[str]) -> Board:
        made = super().__new__(cls, rows)
        made.devices = tuple(devices)
        return made

    def __getnewargs__(self) -> tuple[tuple[CompareRow, ...], tuple[str, ...]]:
        return tuple(self), self.devices


def compare(
    model: Model,
    problem: Problem,
    placers: Sequence[str] | CompareOptions,
    *,
    emit: Emit = silent,
    stop: Callable[[], bool] = never,
    **named: Any,
) -> Board:
    """One row per placer: predicted value, bound and gap in the problem's unit, seconds, and the
    measured median if `live`.

    The placers are named, with the options beside them (`compare(model, problem, ["heft"],
    live=True)`), or stand in a value that holds all of them.
    `gap` is value / bound - 1, None without a bound; `violations` says what a placement breaks,
    `outputs_match` is None where nothing was compared. A placer that finds nothing, or whose
    library is missing, has an `error` and no value; one whose placement could not be run has both.
    `emit` hears every row with its placement as soon as there is one, so that whoever stops the
    comparison keeps what was found. Once `stop` says so the placer at work gives its best so far,
    and no other is tried.
    """
    from placement.placers import current_name, placer_class
    from placement.placers.base import require_fitting

    given = placers if isinstance(placers, CompareOptions) else None
    options = made(CompareOptions, given, named if given else {"placers": placers, **named})
    for name in options.placers:
        require_fitting(name, placer_class(name), problem, "leave it out")
    names = [current_name(name) for name in options.placers]
    executor = executor_of(options.search_on, problem, partial(_tell_loss, emit))
    course = _Course(model, problem, names, options, emit, stop)
    if executor is HERE:
        for number in range(len(names)):
            course.take(number, None)
            if stop():
                break
    else:
        course.search(executor)
    if all(row.value is None for row in course.rows):
        raise ValueError(course.rows[0].error)
    return Board(course.rows, (device.name for device in problem.machine.devices))


class _Course:
    """A comparison on its way: rows by the number of their placer."""

    def __init__(
        self,
        model: Model,
        problem: Problem,
        names: Sequence[str],
        options: CompareOptions,
        emit: Emit,
        stop: Callable[[], bool],
    ) -> None:
        self._model, self._problem, self._names, self._emit = model, problem, names, emit
        # Whoever searches elsewhere has been asked, and what is searched here is searched here.
        self._options, self._stop = dataclasses.replace(options, search_on=LOCAL), stop
        self._rows: dict[int, CompareRow] = {}

    @property
    def rows(self) -> list[CompareRow]:
        return [self._rows[number] for number in sorted(self._rows)]

    def take(self, number: int, searched: Search | str | None) -> None:
        """The row of a placer, from what it found elsewhere or is still to find."""
        name = self._names[number]
        heard = _Numbered(self._emit, name, number, len(self._names))
        heard({"event": "progress", "what": ""})
        row = _row(self._model, self._problem, name, self._options, heard, self._stop, searched)
        self._emit({"event": "row", **row.to_json()})
        self._rows[number] = replace(row, placement=None)

    def search(self, executor: Executor) -> None:
        """Have each placer search on a host, those that compute on all cores on one of their own;
        what is measured is measured once all have."""
        from placement.advice.searching import search
        from placement.placers import placer_class

        kinds = [placer_class(name) for name in self._names]
        live = self._options.live
        found: dict[int, Search | str] = {}
        jobs = [
            Job(
                here=partial(self._take_here, number),
                away=partial(Call, search, (self._problem,), (self._options.of(name),)),
                back=partial(found.__setitem__ if live else self.take, number),
                whole=kind.all_cores,
            )
            for number, (name, kind) in enumerate(zip(self._names, kinds, strict=True))
        ]
        busy = next((kind for kind in kinds if kind.all_cores), kinds[0])
        with alone(busy, self._problem, self._emit):
            executor.each(jobs, lambda: not self._stop())
        for number, searched in sorted(found.items()):
            if not self._stop():
                self.take(number, searched)

    def _take_here(self, number: int, stop: Stop) -> None:
        from profiling.measuring.lock import held_already

        # By a thread of the one that holds the lock.
        with held_already():
            if not stop():
                self.take(number, None)


def _tell_loss(emit: Emit, message: str) -> None:
    emit({"event": "lost", "message": message, "devices": []})


def _row(
    model: Model,
    problem: Problem,
    name: str,
    options: CompareOptions,
    emit: Emit,
    stop: Callable[[], bool],
    searched: Search | str | None,
) -> CompareRow:
    from placement.api.answers import of_compared

    if isinstance(searched, str):
        return CompareRow(placer=name, value=None, unit=problem.unit, error=searched)
    try:
        placed = place(problem, options.of(name), emit=emit, stop=stop, searched=searched)
    except ValueError as error:
        return CompareRow(placer=name, value=None, unit=problem.unit, error=str(error))
    row = of_compared(placed)
    if options.live and not stop():
        # What was found counts, and so do the other placers, where this one cannot be run.
        try:
            measured_s, match = _live(model, problem, placed.placement, options.seed, emit)
            row = replace(row, measured_s=measured_s, outputs_match=match)
        except (ValueError, RuntimeError) as error:
            row = replace(row, error=f"It was not measured: {error}")
    return row


def _live(
    model: Model, problem: Problem, placement: Placement, seed: int, emit: Emit
) -> tuple[float, bool | None]:
    """Measured seconds of the objective, and whether the outputs are right."""
    if problem.objective is Objective.THROUGHPUT:
        _, streamed = stream(model, problem, placement, seed=seed, emit=emit)
        return 1.0 / streamed.samples_per_s, streamed.run.outputs_match
    _, measured = run(model, problem, placement, seed=seed, emit=emit)
    return measured.median_s, measured.outputs_match


class _Numbered:
    """A listener to one placer of several: its progress counts as that of the whole comparison."""

    def __init__(self, emit: Emit, name: str, number: int, of: int) -> None:
        self._emit, self._name, self._number, self._of = emit, name, number, of

    def __call__(self, event: dict[str, Any]) -> object:
        if event["event"] != "progress":
            return self._emit(event)
        doing = str(event.get("what") or "")
        what = f"{self._number + 1} of {self._of}, {self._name}" + (f": {doing}" if doing else "")
        return self._emit({**event, "what": what, "step": self._number, "of": self._of})
