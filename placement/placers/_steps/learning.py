"""Steps of learners: the placement that each batch draws, how likely it was, and the curve.

What is drawn here was written down while `place` ran (`learning/account.py`). Of a batch the best
placement is shown that the policy drew itself, which is seldom the best so far: that one is also
changed without the policy. A policy that cannot tell its chances has drawn so often as the table
says.
"""

import math
from collections.abc import Iterator

import numpy as np

from placement.core.costs import Floats
from placement.core.decoding import listed
from placement.core.formatting import counted, seconds
from placement.core.graph import Ints
from placement.core.objective import Execution
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.learning.account import Seen, Trace
from placement.learning.environment import Environment
from placement.search.step_parts import (
    device_names,
    devices_of,
    drawn_of,
    ended,
    ops_called,
    ops_of_units,
    table,
    unit_called,
    yes_or_no,
)
from placement.search.steps import Cell, Kind, Step, Table
from placement.splits.model.instance import device_columns

QUICK, DRAW, PREDICT, LEARN, ORDERS, ANSWER = range(6)
# Batches that the table shows, the last ones first, and units whose chances it shows.
LAST, MOST_UNITS = 12, 8


def walk(problem: Problem, trace: Trace, answer: Placement) -> Iterator[Step]:
    """What quick methods answered, each batch that was written down, and the end."""
    yield _begun(problem, trace)
    show = _Shown(problem)
    for seen in trace.seen:
        yield show.batch(seen)
    if trace.last is not None:
        if trace.num_batches > len(trace.seen):
            yield show.rest(trace)
        yield show.orders(trace)
    beaten = min((value_s for _, value_s in trace.answers), default=math.inf)
    said = "The best that was found is the answer."
    if not trace.own_s < beaten and trace.answers:
        said = (
            "Nothing was found that takes less time than the best quick method, whose answer it is."
        )
    if trace.last is None:
        said = "No placement that may be was drawn at first, so nothing was learned."
    yield ended(problem, answer, ANSWER, said)


def _begun(problem: Problem, trace: Trace) -> Step:
    unit = problem.unit
    rows = [(name, value_s if math.isfinite(value_s) else None) for name, value_s in trace.answers]
    best = min(range(len(rows)), key=lambda i: trace.answers[i][1], default=-1)
    said = [f"{name} takes {seconds(value_s, unit)}" for name, value_s in trace.answers]
    why = f"Before anything is learned, {listed(said)}." if said else "No quick method is asked."
    columns: dict[str, Kind] = {"method": "text", "predicted": "seconds"}
    return Step(
        line=QUICK,
        why=why,
        devices=(-1,) * problem.num_units,
        tables=(table("Quick methods", columns, rows, (best,)),) if rows else (),
    )


class _Shown:
    """The batches so far, and how they are told."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._names = device_names(problem)
        self._rows: list[tuple[Cell, ...]] = []
        self._best_s = math.inf
        self._last: Step | None = None

    def _time(self, value_s: float) -> str:
        return seconds(value_s, self.problem.unit)

    def batch(self, seen: Seen) -> Step:
        """The best placement that was drawn, as strongly as its devices are likely."""
        point, problem = seen.point, self.problem
        placement = seen.environment.placement_of(seen.devices)
        devices = devices_of(problem, placement)
        is_better = point.best_s < self._best_s * (1 - 1e-12)
        is_first, before_s = not self._rows, self._best_s
        self._add(seen)
        likely = _of_units(problem, seen.environment, seen.chances, seen.devices)
        why = self._why(seen, is_better and not is_first, before_s)
        text = "Does this batch find a placement that takes less time than all before?"
        step = Step(
            line=PREDICT if is_better else LEARN,
            why=why,
            devices=devices,
            focus=self._changed(devices),
            spans=drawn_of(problem, placement),
            opacity=likely,
            tables=(self._curve(), self._chances(seen)),
            question=None if is_first else yes_or_no(text, is_better),
        )
        self._last = step
        return step

    def _why(self, seen: Seen, is_better: bool, before_s: float) -> str:
        drawn = counted(seen.num_drawn, "placement")
        of = f"of {drawn} that were drawn the best takes {self._time(seen.value_s)}"
        if not math.isfinite(seen.value_s):
            of = f"of {drawn} that were drawn none may be"
        level = counted(seen.environment.num_units, "group")
        said = f"With {level} to place, {of}"
        if is_better:
            best = f"{self._time(seen.point.best_s)}"
            if math.isfinite(before_s):
                best = f"{best} instead of {self._time(before_s)}"
            return f"{said}; the best so far takes {best}."
        return f"{said}; the best so far takes {self._time(seen.point.best_s)}."

    def _add(self, seen: Seen) -> None:
        point = seen.point
        self._best_s = min(self._best_s, point.best_s)
        self._rows.append(
            (
                float(len(self._rows) + 1),
                float(seen.environment.num_units),
                _if_any(seen.value_s),
                _if_any(point.mean_s),
                _if_any(point.best_s),
                float(np.mean(seen.chances.max(axis=1))) if seen.chances.size else None,
            )
        )

    def _changed(self, devices: tuple[int, ...]) -> tuple[str, ...]:
        """The ops that are elsewhere than in the batch before."""
        if self._last is None:
            return ()
        pairs = zip(devices, self._last.devices, strict=True)
        return ops_of_units(self.problem, [u for u, (d, before) in enumerate(pairs) if d != before])

    def _curve(self) -> Table:
        columns: dict[str, Kind] = {"batch": "number", "groups": "number", "drawn": "seconds"}
        columns |= {"mean drawn": "seconds", "best so far": "seconds", "how sure": "share"}
        return table("Batches, the last one first", columns, self._rows[::-1][:LAST], (0,))

    def _chances(self, seen: Seen) -> Table:
        """The chances of those groups that are least sure where to go."""
        environment = seen.environment
        columns = _columns(self.problem, environment)
        sure = seen.chances.max(axis=1)
        free = np.flatnonzero(environment.allowed.sum(axis=1) > 1)
        units = free[np.argsort(sure[free], kind="stable")][:MOST_UNITS].tolist()
        rows: list[tuple[Cell, ...]] = [
            (
                _group_called(self.problem, environment, u),
                self._names[columns[int(seen.devices[u])]],
                *(float(chance) for chance in seen.chances[u]),
            )
            for u in units
        ]
        heads: dict[str, Kind] = {"group": "text", "drawn": "text"}
        heads |= {f"P({self._names[d]})": "share" for d in columns}
        exact = "Chances of" if seen.is_exact else "How often it drew"
        return table(f"{exact} the least sure", heads, rows)

    def rest(self, trace: Trace) -> Step:
        """One step for the batches beyond those that were written down."""
        assert trace.last is not None and self._last is not None
        num = counted(trace.num_batches - len(trace.seen), "batch", "batches")
        best = self._time(trace.last.best_s)
        why = f"The other {num} went the same way; the best takes {best} now."
        return Step(line=LEARN, why=why, devices=self._last.devices, tables=(self._curve(),))

    def orders(self, trace: Trace) -> Step:
        """What was made of the best placement: ops in other orders, perhaps some moves."""
        assert self._last is not None
        found, own = self._time(trace.found_s), self._time(trace.own_s)
        why = f"In {counted(trace.num_batches, 'batch', 'batches')} the best that was found"
        if not math.isfinite(trace.own_s):
            why += " does not keep to memory."
        elif trace.own_s < trace.found_s and math.isfinite(trace.found_s):
            why += f" takes {found}, and with its ops in another order {own}."
        else:
            why += f" takes {own}, and no other order of its ops takes less."
        answers = [*trace.answers, ("what was found", trace.own_s)]
        rows = [(name, _if_any(value_s)) for name, value_s in answers]
        best = min(range(len(rows)), key=lambda i: answers[i][1])
        columns: dict[str, Kind] = {"method": "text", "predicted": "seconds"}
        result = table("What was found beside quick methods", columns, rows, (best,))
        return Step(line=ORDERS, why=why, devices=self._last.devices, tables=(result,))


def _if_any(value_s: float) -> float | None:
    return value_s if math.isfinite(value_s) else None


def _columns(problem: Problem, environment: Environment) -> list[int]:
    """The machine's device behind each column of an environment."""
    if problem.execution is Execution.CALL:
        return list(device_columns(problem).all[: environment.num_devices])
    return list(range(environment.num_devices))


def _of_units(
    problem: Problem, environment: Environment, chances: Floats, devices: Ints
) -> tuple[float, ...]:
    """The chance of each of the problem's units (U,) to be where the environment's unit is."""
    chosen = chances[np.arange(len(devices)), devices]
    found = np.ones(problem.num_units)
    found[problem.unit_of_kernel] = chosen[environment.unit_of_kernel]
    return tuple(np.clip(found, 0.0, 1.0).tolist())


def _group_called(problem: Problem, environment: Environment, group: int) -> str:
    """What people call a group: its first block of ops, and how many there are besides."""
    kernels = np.flatnonzero(environment.unit_of_kernel == group)
    units = np.unique(problem.unit_of_kernel[kernels]).tolist()
    ops = ops_of_units(problem, units)
    if not ops:
        return unit_called(problem, units[0]) if units else f"group {group + 1}"
    more = f" and {len(ops) - 1} more" if len(ops) > 1 else ""
    return f"{ops_called(problem, ops[:1])}{more}"
