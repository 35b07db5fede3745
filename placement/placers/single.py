"""Best single device: everything on the one device that finishes first.

The baseline that every other placement has to beat.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from placement.core.formatting import counted, seconds
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.placers.base import Placer, Progress, Report, Step, quiet, setting
from placement.schedule.segments import make_schedule
from placement.search.feasible import missing_bytes, require_memory
from placement.search.step_parts import device_names, drawn, ended, table, yes_or_no
from placement.search.steps import Cell, Kind
from placement.simulator.alike import alone_alike
from placement.simulator.evaluator import Evaluator
from placement.simulator.throughput import value_s


@dataclass(frozen=True, kw_only=True)
class Single(Placer):
    summary = "Everything on the one device that finishes first (or on the device you name)"
    objectives = tuple(Objective)
    executions = tuple(Execution)
    quick_up_to = 1_000_000
    pseudo_code = (
        "for each device, or the one that was named:",
        "    put everything there, but what it may not run where that is fastest; predict the step",
        "answer the fastest of these that fits into memory",
    )

    device: str = setting("", "Name of the device to use; empty tries each and takes the best")

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        d, value_s = self.best(problem)
        report(Progress(best_s=value_s, step=1, of=1))
        return everything_on(problem, d)

    def best(self, problem: Problem) -> tuple[int, float]:
        """The device that finishes first of those that hold everything, and its seconds; a
        ValueError says what the fastest of all lacks where none does."""
        values = self._values_s(problem)
        fastest_first = sorted(values, key=lambda d: (values[d], d))
        for d in fastest_first:
            if not missing_bytes(problem, everything_on(problem, d)).any():
                return d, values[d]
        require_memory(problem, everything_on(problem, fastest_first[0]))
        raise AssertionError("one that has no room is refused")

    def steps(self, problem: Problem, most: int, report: Report = quiet) -> Iterator[Step]:
        answer, names = self.place(problem), device_names(problem)
        values, best_s = self._values_s(problem), math.inf
        rows: list[tuple[Cell, ...]] = []
        columns: dict[str, Kind] = {"all on": "text", "predicted": "seconds", "fits": "text"}
        for d, all_s in list(values.items())[:most]:
            fits = not missing_bytes(problem, everything_on(problem, d)).any()
            rows.append((names[d], all_s, "yes" if fits else "no"))
            why = f"With everything on {names[d]} a step takes {seconds(all_s, problem.unit)}"
            is_better, best_s = fits and all_s < best_s, min(best_s, all_s if fits else best_s)
            text = f"Is everything on {names[d]} better than what was tried before?"
            yield Step(
                line=1,
                why=f"{why}." if fits else f"{why}, but its memory does not hold it.",
                devices=tuple(units_on(problem, d).tolist()),
                spans=drawn(problem, units_on(problem, d)),
                tables=(table("Devices so far", columns, rows, (len(rows) - 1,)),),
                question=yes_or_no(text, is_better) if len(rows) > 1 else None,
            )
        if len(values) > most:
            why = f"The other {counted(len(values) - most, 'device')} went the same way."
            yield Step(line=1, why=why, devices=(-1,) * problem.num_units)
        yield ended(problem, answer, 2, "This is the fastest of those that fit into memory.")

    def _values_s(self, problem: Problem) -> dict[int, float]:
        """Seconds of the objective by device, with everything on it."""
        if self.device:
            problem.machine.device(self.device)
        names = device_names(problem)
        asked = [d for d, name in enumerate(names) if self.device in ("", name)]
        alike = _alike(problem) if len(asked) > 1 else np.arange(len(names))
        of_class: dict[int, float] = {}
        for d in asked:
            if (c := int(alike[d])) not in of_class:
                of_class[c] = _value_s(problem, d)
        return {d: of_class[int(alike[d])] for d in asked}


def _alike(problem: Problem) -> Ints:
    """A number for each device (D,), equal for those of which all are worth the same alone.

    What a device may not run is on others, and those differ from all.
    """
    if problem.execution is Execution.CALL:
        return np.arange(problem.num_devices)
    apart = _elsewhere(problem)[~problem.allowed.all(axis=1)]
    return alone_alike(problem, apart.tolist()).of_device


def _value_s(problem: Problem, d: int) -> float:
    """Seconds of the objective with everything on one device, cut wherever it has to cross."""
    if problem.execution is Execution.CALL:
        return value_s(problem, make_schedule(problem, everything_on(problem, d)))
    order = np.arange(len(problem.kernels.ops))
    return Evaluator(problem, order, trials=False).value_s(units_on(problem, d))


def everything_on(problem: Problem, d: int) -> Placement:
    """All ops on device d, as far as it may run them."""
    return problem.placement_of(units_on(problem, d))


def units_on(problem: Problem, d: int) -> Ints:
    """All units on device d; those that it may not run (pins, support) on their fastest device."""
    return np.where(problem.allowed[:, d], d, _elsewhere(problem))


def _elsewhere(problem: Problem) -> Ints:
    """The fastest device of each unit (U,)."""
    fastest: Ints = np.where(problem.allowed, problem.unit_s, np.inf).argmin(axis=1)
    return fastest


PLACER = Single
