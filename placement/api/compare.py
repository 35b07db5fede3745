"""The verb `compare`: several placers on one problem, a row each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from placement.api.place import place
from placement.api.results.placing import CompareRow
from placement.api.run import run, stream
from placement.core.events import Emit, never, silent
from placement.core.formatting import Drawn
from placement.core.objective import Objective
from placement.core.verb_options import CompareOptions, made

if TYPE_CHECKING:
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
    rows = []
    for number, name in enumerate(names):
        heard = _Numbered(emit, name, number, len(names))
        heard({"event": "progress", "what": ""})
        row = _row(model, problem, name, options, heard, stop)
        emit({"event": "row", **row.to_json()})
        rows.append(replace(row, placement=None))
        if stop():
            break
    if all(row.value is None for row in rows):
        raise ValueError(rows[0].error)
    return Board(rows, (device.name for device in problem.machine.devices))


def _row(
    model: Model,
    problem: Problem,
    name: str,
    options: CompareOptions,
    emit: Emit,
    stop: Callable[[], bool],
) -> CompareRow:
    from placement.api.answers import of_compared

    try:
        placed = place(problem, options.of(name), emit=emit, stop=stop)
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
