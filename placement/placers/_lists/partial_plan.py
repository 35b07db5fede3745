"""What the steps of all list schedulers show: the plan so far, ranks, and what devices offer.

The state of a list scheduler is its lanes, so calling its compiled loop for a part of its order and
looking at the lanes before and after is the method itself, step by step. What is compared in a step
is what the loop has written down there when it chose. The loops that go by the earliest finish are
asked in `finish_steps.py`, those that go by the earliest start in `start_steps.py`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placement.core.formatting import counted, percent, seconds
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.timeline import Span
from placement.placers._lists.lists import Priorities, placement_from
from placement.search.feasible import within_memory
from placement.search.step_parts import (
    device_names,
    ended,
    kernel_called,
    name_of_kernel,
    table,
)
from placement.search.steps import Cell, Kind, Question, Step, Table, question
from placement.simulator.flat import Flat

if TYPE_CHECKING:
    from placement.placers._lists.lanes_compiled import Lanes

# Ops that a question offers.
MOST_CHOICES = 6


class Plan:
    """What is in the lanes of a list scheduler, as the spans of a partial timeline."""

    def __init__(self, problem: Problem, flat: Flat, lanes: "Lanes") -> None:
        self.problem, self.flat, self.lanes = problem, flat, lanes
        self.names = device_names(problem)
        self.spans: list[Span] = []
        self._sent = lanes.arrival_s >= 0

    @property
    def devices(self) -> tuple[int, ...]:
        return tuple(self.lanes.device_of_unit.tolist())

    def note(self, kernels: Sequence[int]) -> None:
        """Add the spans of kernels that were scheduled just now, and of what was sent to them."""
        lanes, flat = self.lanes, self.flat
        sent = lanes.arrival_s >= 0
        for t, d in np.argwhere(sent & ~self._sent).tolist():
            p = int(flat.producer[t])
            src = int(lanes.device[p]) if p >= 0 else flat.host
            takes_s = float(flat.move_s[src, d] + flat.tensor_bytes[t] * flat.s_per_byte[src, d])
            tensor, end_s = self.problem.kernels.tensors[t], float(lanes.arrival_s[t, d])
            link = f"{self.names[src]}->{self.names[d]}"
            start_s = max(0.0, end_s - takes_s)
            size = tensor.num_bytes
            self.spans.append(Span("transfer", tensor.name, link, start_s, end_s, num_bytes=size))
        self._sent = sent
        for k in kernels:
            name, device = name_of_kernel(self.problem, k), self.names[int(lanes.device[k])]
            start_s, end_s = float(lanes.start_s[k]), float(lanes.end_s[k])
            self.spans.append(Span("compute", name, device, start_s, end_s))

    def begun(self, line: int, why: str, *tables: Table, asked: Question | None = None) -> Step:
        """The step before anything is placed."""
        return Step(line=line, why=why, devices=self.devices, tables=tables, question=asked)

    def rest(self, line: int, kernels: Sequence[int]) -> Step:
        """One step for all that is left beyond the number of steps that were asked for."""
        self.note(kernels)
        why = f"The other {counted(len(kernels), 'op')} went the same way, one after another."
        return Step(line=line, why=why, devices=self.devices, spans=tuple(self.spans))

    def ended(self, placement: Placement, line: int) -> Step:
        """The last step: the plan as a placement, mended where it did not fit into memory."""
        own = placement_from(self.problem, self.lanes)
        end_s = max((span.end_s for span in self.spans), default=0.0)
        said = f"All ops are placed; in this plan the last one ends after {self.time(end_s)}."
        if own != placement:
            pairs = own.device_of.items()
            moved = sum(placement.device_of[op] != device for op, device in pairs)
            said = f"The plan did not fit into memory, so {counted(moved, 'op')} moved elsewhere."
        return ended(self.problem, placement, line, said)

    def time(self, value_s: float) -> str:
        return seconds(value_s, self.problem.unit)


class Offer(NamedTuple):
    """What the loop has found for a kernel on a device that may take it, in seconds."""

    device: int
    ready_s: float
    start_s: float
    finish_s: float
    sum_s: float


def ranked(plan: Plan, priorities: Priorities, why: str, rank: str, line: int = 0) -> Step:
    """The first step of a method that goes by ranks: all of them, in the order of its queue.

    `why` says it of the first "{op}".
    """
    order = priorities.order.tolist()
    names = [kernel_called(plan.problem, k) for k in order]
    said = why.format(op=names[0]) if names else "There is no op to place."
    rows = [(n, float(priorities.ranks_s[k])) for n, k in zip(names, order, strict=True)]
    # Falling ranks; what waits for another op cannot come first, though it may rank as high.
    waits = {k for readers in plan.problem.kernels.successors for k in readers}
    worth = {
        kernel_called(plan.problem, k): 1.0 if k in waits else -float(priorities.ranks_s[k])
        for k in sorted(order[:MOST_CHOICES], reverse=True)
    }
    choices = dict(reversed(worth.items()))
    asked = question("Which op comes first?", names[0], choices) if names else None
    ranks = table("Ranks", {"op": "text", rank: "seconds"}, rows)
    return plan.begun(line, said, ranks, asked=asked)


def table_of_devices(plan: Plan, op: str, d: int, offers: list[Offer], left: str) -> Table:
    """A row for each device; `left` is the name of what is left, empty where nothing is."""
    columns: dict[str, Kind] = {"device": "text", "ready": "seconds", "start": "seconds"}
    columns["finish"] = "seconds"
    if left:
        columns |= {left: "seconds", "sum": "seconds"}
    by_device = {offer.device: offer for offer in offers}
    rows: list[tuple[Cell, ...]] = []
    for e, name in enumerate(plan.names):
        offer = by_device.get(e)
        cells: Sequence[Cell] = [None] * (len(columns) - 1)
        if offer is not None:
            cells = [*offer[1:4], offer.sum_s - offer.finish_s, offer.sum_s][: len(cells)]
        rows.append((name, *cells))
    return table(f"{op} on each device", columns, rows, (d,))


def placement_and_scale(
    problem: Problem, attempt: Callable[[float], Placement], scales: Sequence[float]
) -> tuple[Placement, float]:
    """What `place` answers, and the share of memory with which its last plan was made."""
    tried: list[float] = []

    def noted(scale: float) -> Placement:
        tried.append(scale)
        return attempt(scale)

    return within_memory(problem, noted, scales), tried[-1]


def with_scale(steps: Sequence[Step], scale: float) -> Iterator[Step]:
    """The first steps, of which one says so if plans with all of the memory did not fit."""
    for i, step in enumerate(steps):
        if i == 0 and scale < 1:
            said = (
                f" Plans with more did not fit, so devices count with {percent(scale)} of memory."
            )
            step = replace(step, why=step.why + said)
        yield step
