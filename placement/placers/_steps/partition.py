"""Steps of partitioners: the weights that they get, the parts that they give, what comes of them.

The libraries tell nothing of what they do in between: which blocks they merge and split on their
levels stays theirs. What is known is shown, a cut into ever more parts after another.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain

import numpy as np

from placement.core.formatting import counted, num_bytes, seconds
from placement.core.problem import Problem
from placement.placers._partition import Cut, Partition, UnitGraph, best_of, rounds, unit_graph
from placement.search.step_parts import (
    cut_bytes,
    device_names,
    devices_of,
    drawn,
    drawn_of,
    ended,
    ops_of_units,
    table,
    unit_called,
    units_at_cut,
    yes_or_no,
)
from placement.search.steps import Cell, Kind, Step, Table

WEIGH, NEXT, DIVIDE, RULES, ANSWER = range(5)


def walk(
    problem: Problem, library: str, partitions: Mapping[str, Partition], most: int
) -> Iterator[Step]:
    """The weights, each cut and the placement that it becomes, and the best of them."""
    graph = unit_graph(problem)
    show, num, num_more = _Shown(problem, library, graph), 0, 0
    yield show.weights()
    for cut in chain.from_iterable(rounds(problem, graph, partitions)):
        show.add(cut)
        if num >= most:
            num_more += 1
            continue
        for step in show.of_cut(cut):
            num += 1
            yield step
    if num_more:
        yield show.rest(num_more)
    answer = best_of(show.cuts)
    said = f"Of {counted(len(show.cuts), 'division')} this one is predicted to be the best."
    if len(show.cuts) == 1:
        said = "There is no other division to compare."
    yield replace(ended(problem, answer, ANSWER, said), tables=(show.table(),))


class _Shown:
    """The cuts so far, and how they are told."""

    def __init__(self, problem: Problem, library: str, graph: UnitGraph) -> None:
        self.problem, self.library, self.graph = problem, library, graph
        self.names = device_names(problem)
        self.cuts: list[Cut] = []
        self._rows: list[tuple[Cell, ...]] = []
        self._best_before_s = np.inf

    def add(self, cut: Cut) -> None:
        self._best_before_s = min((each.value_s for each in self.cuts), default=np.inf)
        self.cuts.append(cut)
        value_s = cut.value_s if cut.placement is not None else None
        size = cut_bytes(self.problem, cut.part)
        self._rows.append((float(len(cut.used)), cut.by or "–", size, value_s))

    def time(self, value_s: float) -> str:
        return seconds(value_s, self.problem.unit)

    def weights(self) -> Step:
        """What the library gets: shares of the whole work, and of all that can be sent."""
        graph, problem = self.graph, self.problem
        heaviest = np.argsort(-graph.weight, kind="stable").tolist()
        work = float(graph.weight.sum())
        units: list[tuple[Cell, ...]] = [
            (unit_called(problem, u), float(graph.weight[u]) / work) for u in heaviest
        ]
        first = np.repeat(np.arange(problem.num_units), np.diff(graph.ptr))
        once = np.flatnonzero(first < graph.neighbour)
        by_weight = once[np.argsort(-graph.edge_weight[once], kind="stable")]
        sent = float(graph.edge_weight[once].sum())
        pairs: list[tuple[Cell, ...]] = [
            (
                unit_called(problem, int(first[e])),
                unit_called(problem, int(graph.neighbour[e])),
                float(graph.edge_weight[e]) / sent,
            )
            for e in by_weight.tolist()
        ]
        heavy = unit_called(problem, heaviest[0]) if heaviest else "none"
        why = (
            f"{self.library} gets {counted(len(heaviest), 'block')} of ops that stay together and"
            f" {counted(len(pairs), 'pair')} with weights, no directions and no memory;"
            f" {heavy} is the heaviest."
        )
        return Step(
            line=WEIGH,
            why=why,
            devices=(-1,) * problem.num_units,
            tables=(
                table("Weights of ops", {"op": "text", "of all work": "share"}, units),
                table(
                    "Weights of pairs", {"op": "text", "and": "text", "of all sent": "share"}, pairs
                ),
            ),
        )

    def of_cut(self, cut: Cut) -> Iterator[Step]:
        """The parts as they come back, and the placement that becomes of them."""
        if len(cut.used) > 1:
            yield self._parts(cut)
        yield self._placed(cut)

    def _parts(self, cut: Cut) -> Step:
        problem = self.problem
        size = cut_bytes(problem, cut.part)
        weight = np.bincount(cut.part, self.graph.weight, len(cut.used)) / self.graph.weight.sum()
        rows = [
            (
                self.names[device],
                float(cut.shares[p]),
                float(weight[p]),
                float(len(ops_of_units(problem, np.flatnonzero(cut.part == p).tolist()))),
            )
            for p, device in enumerate(cut.used.tolist())
        ]
        columns: dict[str, Kind] = {"part for": "text", "share by speed": "share"}
        columns |= {"share of the work": "share", "ops": "number"}
        how = f", {cut.by}" if cut.by else ""
        at_cut = units_at_cut(problem, cut.part)
        why = (
            f"{self.library} divides the graph into {counted(len(cut.used), 'part')}{how}:"
            f" {num_bytes(size)} pass between parts, at {counted(len(at_cut), 'block')} of ops."
        )
        return Step(
            line=DIVIDE,
            why=why,
            devices=tuple(cut.devices.tolist()),
            focus=ops_of_units(problem, at_cut),
            spans=drawn(problem, cut.devices) if self._may_run(cut) else (),
            tables=(table("Parts", columns, rows), self.table()),
        )

    def _may_run(self, cut: Cut) -> bool:
        units = np.arange(self.problem.num_units)
        return bool(self.problem.allowed[units, cut.devices].all())

    def _placed(self, cut: Cut) -> Step:
        """What rules and memory leave of the parts, beside all that was tried before."""
        problem, count = self.problem, counted(len(cut.used), "device")
        if cut.placement is None:
            why = f"With {count} the rules and memory allow no such division: {cut.refusal}"
            if not why.endswith("."):
                why += "."
            devices = tuple(cut.devices.tolist())
            return Step(line=RULES, why=why, devices=devices, tables=(self.table(),))
        devices = devices_of(problem, cut.placement)
        moved = np.flatnonzero(np.array(devices) != cut.devices).tolist()
        ops = ops_of_units(problem, moved)
        is_better = cut.value_s < self._best_before_s
        one = f"All on {self.names[int(cut.used[0])]}" if len(cut.used) == 1 else "This division"
        why = f"{one} is predicted to take {self.time(cut.value_s)}"
        if ops:
            why = (
                f"{counted(len(ops), 'op')} may not run where {self.library} has put them, or find"
                f" no room: with them elsewhere it is predicted to take {self.time(cut.value_s)}"
            )
        if len(self.cuts) > 1:
            why += ", the best so far" if is_better else ", no better than before"
        text = f"Does a part on each of {count} take less time than the best so far?"
        return Step(
            line=RULES,
            why=f"{why}.",
            devices=devices,
            focus=ops,
            spans=drawn_of(problem, cut.placement),
            tables=(self.table(),),
            question=yes_or_no(text, is_better) if len(self.cuts) > 1 else None,
        )

    def table(self) -> Table:
        """All cuts so far, of which the best is marked."""
        best = min(range(len(self.cuts)), key=lambda i: self.cuts[i].value_s)
        columns: dict[str, Kind] = {"parts": "number", "how": "text"}
        columns |= {"cut": "bytes", "predicted": "seconds"}
        return table("Divisions so far", columns, self._rows, (best,))

    def rest(self, num: int) -> Step:
        """One step for the cuts beyond those that were asked for."""
        why = f"The other {counted(num, 'division')} went the same way."
        devices = tuple(self.cuts[-1].devices.tolist())
        return Step(line=RULES, why=why, devices=devices, tables=(self.table(),))
