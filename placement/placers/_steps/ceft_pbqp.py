"""Steps of CEFT and PBQP: the table of the critical path, the reductions of the winning variant.

Queues are unknown to both: the path's bars are where ops would run if devices were always free, and
the program adds up costs. What a queue makes of it shows the last step, which is simulated.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from placement.bounds.ceft import Ceft, Row, ceft, rows
from placement.core.decoding import listed
from placement.core.formatting import counted, seconds
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.timeline import Span
from placement.pbqp.problem import Reduction, reductions
from placement.pbqp.unit_net import UnitNet
from placement.schedule.symmetry import num_changed
from placement.search.step_parts import (
    device_names,
    devices_of,
    ended,
    kernel_called,
    name_of_kernel,
    ops_of_units,
    table,
    unit_called,
)
from placement.search.steps import (
    Cell,
    Kind,
    Question,
    Step,
    Table,
    is_equal,
    ops_of_kernel,
    question,
)

ROW, PATH, POSE, REDUCE, CORE_OR_RN, BACK, KEEP = range(7)
# How strongly an op is drawn that is taken out of the program and has not chosen yet.
REDUCED = 0.2
REASONS = {
    "R0": "{op} has no pair left, so its cheapest device is best whatever the others do.",
    "RI": "{op} has one pair left: for each device of {others} its best answer is added to the cost"
    " there, and nothing is lost.",
    "RII": "{op} has two pairs left: its best answer to each pair of devices of {others} becomes a"
    " matrix between them, and nothing is lost.",
    "core": "No op has less than three pairs: {num} that hang together are searched exactly.",
    "RN": "No op has less than three pairs, and too many hang together: {op} takes what looks best"
    " by itself, which may be wrong.",
    "back": "{op} chooses {device}, now that its neighbours have chosen.",
}


@dataclass(frozen=True, eq=False)
class Tried:
    """A variant of the program, its answer, the seconds that are simulated of it.

    `fits` is whether the answer keeps to memory.
    """

    name: str
    net: UnitNet
    devices: tuple[int, ...]
    value_s: float
    fits: bool


def walk(
    problem: Problem,
    tried: list[Tried],
    chosen: Placement,
    answer: Placement,
    max_expanded: int,
    most: int,
) -> Iterator[Step]:
    """The critical path, the variants, the winner's reductions and choices, and the answer.

    `chosen` is the answer before moves adjusted it. `most` limits the steps of the path's table,
    and those of the program.
    """
    nowhere = (-1,) * problem.num_units
    found = ceft(problem)
    for i, row in enumerate(rows(problem)):
        if i == most:
            break
        yield _of_row(problem, row, nowhere)
    yield _of_path(problem, found, nowhere)
    best = min(tried, key=lambda each: each.value_s)
    placed = devices_of(problem, chosen)
    won = next((each for each in tried if each.devices == placed), best)
    yield _of_variants(problem, tried, won, nowhere)
    solved = _Solved(problem)
    for i, step in enumerate(reductions(won.net.packed(), max_expanded=max_expanded)):
        solved.add(step)
        if i < most:
            yield solved.step(step)
    others = counted(len(tried), "variant")
    said = f"Of the answers of {others} this one is the best when it is simulated."
    if any(each.value_s < won.value_s for each in tried):
        said = f"Of the answers of {others} this one is the best of those that keep to memory."
    if won.devices != placed:
        said = "No answer kept to memory as it was, so ops moved until one did."
    num_moved = num_changed(problem, chosen, answer)
    if num_moved:
        said += f" Moving {counted(num_moved, 'op')} of it makes the simulated step shorter still."
    yield ended(problem, answer, KEEP, said)


def _of_row(problem: Problem, row: Row, devices: tuple[int, ...]) -> Step:
    """A row of the table, with what each entry waits for."""
    names, op = device_names(problem), kernel_called(problem, row.kernel)
    bar, cells = name_of_kernel(problem, row.kernel), list[tuple[Cell, ...]]()
    for d, name in enumerate(names):
        origin = row.origins[d]
        waits = (
            "" if origin is None else f"{kernel_called(problem, origin[0])} on {names[origin[1]]}"
        )
        own_s = float(problem.costs.compute_s[row.kernel, d])
        end_s = float(row.finish_s[d])
        possible = end_s < float("inf")
        figures = (end_s - own_s, own_s, end_s) if possible else (None, None, None)
        cells.append((name, waits or "–", *figures))
    columns: dict[str, Kind] = {"device": "text", "waits for": "text", "ready": "seconds"}
    columns |= {"own time": "seconds", "earliest end": "seconds"}
    least = int(row.finish_s.argmin())
    ends_s = {
        name: end_s
        for name, end_s in zip(names, row.finish_s.tolist(), strict=True)
        if end_s < float("inf")
    }
    least_s = float(row.finish_s[least])
    equal = [name for name, end_s in ends_s.items() if is_equal(end_s, least_s)]
    equally = f"{'both' if len(equal) == 2 else 'all'} " if len(equal) > 1 else ""
    why = (
        f"{op} can end first on {listed(equal)}, {equally}after {seconds(least_s, problem.unit)},"
        " if no device is ever busy."
    )
    text = f"Where can {op} end first, if no device is ever busy?"
    return Step(
        line=ROW,
        why=why,
        devices=devices,
        focus=ops_of_kernel(problem, row.kernel),
        ghosts=tuple(
            Span("compute", bar, name, end_s - float(problem.costs.compute_s[row.kernel, d]), end_s)
            for d, (name, end_s) in enumerate(zip(names, row.finish_s.tolist(), strict=True))
            if name in ends_s
        ),
        tables=(table(f"{op} on each device", columns, cells, (least,)),),
        question=question(text, names[least], ends_s),
    )


def _of_path(problem: Problem, found: Ceft, devices: tuple[int, ...]) -> Step:
    """The critical path where nothing queues, as bars."""
    names = device_names(problem)
    spans = tuple(
        Span(
            "compute",
            name_of_kernel(problem, k),
            names[d],
            float(found.table[k, d] - problem.costs.compute_s[k, d]),
            float(found.table[k, d]),
        )
        for k, d in zip(found.path, found.devices, strict=True)
    )
    ops = [kernel_called(problem, k) for k in found.path]
    rows_of = [(op, span.device, span.end_s) for op, span in zip(ops, spans, strict=True)]
    columns: dict[str, Kind] = {"op": "text", "device": "text", "end": "seconds"}
    return Step(
        line=PATH,
        why=f"The critical path leads through {listed(ops)}: no placement can take less than"
        f" {seconds(found.length_s, problem.unit)}.",
        devices=devices,
        focus=tuple(op for k in found.path for op in ops_of_kernel(problem, k)),
        spans=spans,
        tables=(table("The critical path", columns, rows_of),),
    )


def _of_variants(
    problem: Problem, tried: list[Tried], won: Tried, devices: tuple[int, ...]
) -> Step:
    """All variants with the seconds of their answers; the steps after it solve the winner."""
    columns: dict[str, Kind] = {"variant": "text", "simulated": "seconds"}
    columns["keeps to memory"] = "text"
    rows_of = [(t.name, t.value_s, "yes" if t.fits else "no") for t in tried]
    best = "best" if all(t.fits for t in tried) else "best of those that keep to memory"
    if not won.fits:
        best = "best, though it needs more memory than there is,"
    marked = [i for i, each in enumerate(tried) if each is won]
    return Step(
        line=POSE,
        why="The program adds up times and knows no queues, so it is posed in variants; the one"
        f" whose answer turns out {best} is solved step by step now.",
        devices=devices,
        tables=(table("Variants", columns, rows_of, marked),),
    )


class _Solved:
    """The program as far as it is solved: what has chosen, what is taken out and by which rule."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._devices = [-1] * problem.num_units
        self._opacity = [1.0] * problem.num_units
        self._guessed: list[int] = []
        self._rows: list[tuple[Cell, ...]] = []

    def add(self, step: Reduction) -> None:
        """A node that is taken out waits, faded, until it chooses."""
        op = unit_called(self.problem, step.node)
        if step.kind != "back":
            self._opacity[step.node] = REDUCED
            pairs = float(len(step.neighbours))
            self._rows.append((op, pairs, step.kind, "a guess" if step.kind == "RN" else "exact"))
        if step.kind == "RN":
            self._guessed.append(step.node)
        for unit, device in step.choices:
            self._devices[unit], self._opacity[unit] = device, 1.0

    def step(self, step: Reduction) -> Step:
        """A node of the program that was taken out, or that has chosen."""
        problem = self.problem
        names, op = device_names(problem), unit_called(problem, step.node)
        others = [unit_called(problem, y) for y in step.neighbours]
        chosen = dict(step.choices).get(step.node, -1)
        why = REASONS[step.kind].format(
            op=op,
            others=" and ".join(others),
            num=counted(len(step.choices), "op"),
            device=names[chosen] if chosen >= 0 else "",
        )
        costs_s = zip(names, step.costs, strict=True)
        costs = table(
            f"Costs of {op}",
            {"device": "text", "cost by now": "seconds"},
            [(name, cost if cost < float("inf") else None) for name, cost in costs_s],
            (chosen,) if chosen >= 0 else (),
        )
        focus = set(ops_of_units(problem, [step.node, *(unit for unit, _ in step.choices)]))
        return Step(
            line={"core": CORE_OR_RN, "RN": CORE_OR_RN, "back": BACK}.get(step.kind, REDUCE),
            why=why,
            devices=tuple(self._devices),
            focus=tuple(op.name for op in problem.graph.ops if op.name in focus),
            opacity=tuple(self._opacity),
            guessed=ops_of_units(problem, self._guessed),
            tables=(costs, self._reduced()),
            question=_which(step, op) if step.kind in ("R0", "RI", "RII", "RN") else None,
        )

    def _reduced(self) -> Table:
        """What was taken out so far, the last one first; what RN has fixed is a guess."""
        columns: dict[str, Kind] = {"op": "text", "pairs left": "number", "rule": "text"}
        columns["nothing lost?"] = "text"
        rows = self._rows[::-1]
        found = table("Taken out so far", columns, rows)
        guessed = tuple(i for i, row in enumerate(found.rows) if row[2] == "RN")
        return replace(found, guessed=guessed)


def _which(step: Reduction, op: str) -> Question:
    """How many pairs a node has left decides which rule takes it out."""
    text = f"{op} has {counted(len(step.neighbours), 'pair')} left: which rule takes it out?"
    return Question(text, ("R0", "RI", "RII", "RN"), step.kind)
