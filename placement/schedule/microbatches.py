"""Pipeline-parallel training: one step over micro-batches, by the schedules GPipe and 1F1B.

GPipe runs every forward pass before the first backward pass, so each stage keeps the activations of
all micro-batches (Huang et al., "GPipe: Efficient training of giant neural networks using pipeline
parallelism", NeurIPS 2019). One forward, one backward (1F1B) takes turns as soon as it can, so that
stage i of p keeps at most p - i (Narayanan et al., "Memory-efficient pipeline-parallel DNN
training", ICML 2021). Where all stages are equal both take equally long.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from placement.core.graph import Graph
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.core.timeline import Span, Timeline
from placement.simulator.throughput import loads_s

SCHEDULES = ("gpipe", "1f1b")
FORWARD, BACKWARD, UPDATE = "forward", "backward", "update"
# A pass of one micro-batch: its direction and its number.
Pass = tuple[str, int]


@dataclass(frozen=True)
class Stage:
    """One device's part of the network: seconds per micro-batch, sends and receives included.

    `update_s` comes once per step, after the last backward pass.
    """

    device: str
    forward_s: float
    backward_s: float
    update_s: float = 0.0

    def __post_init__(self) -> None:
        for name in ("forward_s", "backward_s", "update_s"):
            seconds = getattr(self, name)
            if not 0.0 <= seconds < np.inf:
                raise ValueError(f"Stage {self.device!r} has {name} = {seconds}; use zero or more.")


@dataclass(frozen=True)
class Microbatched:
    """A training step over micro-batches.

    `bubble_share` is the part of all devices' time in which they have nothing to do; `in_flight[i]`
    the most micro-batches whose activations stage i keeps at once.
    """

    timeline: Timeline
    bubble_share: float
    in_flight: tuple[int, ...]

    @property
    def step_s(self) -> float:
        return self.timeline.step_s


def microbatched(stages: Sequence[Stage], num_microbatches: int, schedule: str) -> Microbatched:
    """The predicted timeline of one training step.

    A forward pass waits for that of the stage before, a backward pass for that of the stage behind;
    the last stage turns round by itself.

    >>> stages = [Stage("a", 1.0, 2.0), Stage("b", 1.0, 2.0)]
    >>> microbatched(stages, 4, "1f1b").step_s
    15.0
    """
    if not stages or num_microbatches < 1:
        raise ValueError(
            f"A step needs at least one stage and one micro-batch, not {len(stages)} and"
            f" {num_microbatches}."
        )
    if schedule not in SCHEDULES:
        raise ValueError(f"There is no schedule {schedule!r}; use one of {', '.join(SCHEDULES)}.")
    orders = [passes(schedule, i, len(stages), num_microbatches) for i in range(len(stages))]
    spans = _spans(stages, orders)
    step_s = max(span.end_s for span in spans)
    work_s = sum(span.duration_s for span in spans)
    return Microbatched(
        Timeline(spans, step_s, "predicted"),
        1.0 - work_s / (len(stages) * step_s) if step_s else 0.0,
        tuple(map(most_in_flight, orders)),
    )


def passes(schedule: str, stage: int, num_stages: int, num_microbatches: int) -> tuple[Pass, ...]:
    """What a stage runs, in order.

    Under 1F1B it runs ahead by one forward pass for each stage behind it, then takes turns.
    """
    ahead = num_microbatches if schedule == "gpipe" else num_stages - stage - 1
    ahead = min(ahead, num_microbatches)
    order: list[Pass] = [(FORWARD, m) for m in range(ahead)]
    for m in range(ahead, num_microbatches):
        order += [(FORWARD, m), (BACKWARD, m - ahead)]
    order += [(BACKWARD, m) for m in range(num_microbatches - ahead, num_microbatches)]
    return tuple(order)


def most_in_flight(order: Sequence[Pass]) -> int:
    """The most micro-batches that have been forward and not yet backward."""
    kept = np.cumsum([1 if direction == FORWARD else -1 for direction, _ in order])
    return int(kept.max())


def stages_of(problem: Problem, schedule: Schedule) -> tuple[Stage, ...]:
    """The stages of a training graph, in the order in which the schedule first runs its devices.

    The problem's times are those of one micro-batch. Each device's load is divided by phase, a
    tensor belonging to the phase that makes it; together they are the load of `throughput.loads_s`
    but for contention. Raises ValueError for a graph without backward ops.
    """
    phases = {op.phase for op in problem.kernels.ops}
    if BACKWARD not in phases:
        raise ValueError(
            f"{problem.graph.name!r} has no backward ops; micro-batches are for training graphs."
        )
    loads = {
        phase: loads_s(_only(problem, phase), schedule) for phase in (FORWARD, BACKWARD, UPDATE)
    }
    return tuple(
        Stage(device, *(loads[phase][device] for phase in (FORWARD, BACKWARD, UPDATE)))
        for device in dict.fromkeys(segment.device for segment in schedule.segments)
    )


def _only(problem: Problem, phase: str) -> Problem:
    """The problem in which nothing but one phase takes time; calls belong to the forward phase."""
    kernels, costs = problem.kernels, problem.costs
    phase_of = {op.name: op.phase for op in kernels.ops}
    tensors = tuple(
        t for t in kernels.tensors if phase == (phase_of[t.producer] if t.producer else FORWARD)
    )
    of_phase = np.array([op.phase == phase for op in kernels.ops])
    return replace(
        problem,
        kernels=Graph(kernels.name, kernels.ops, tensors),
        costs=replace(
            costs,
            compute_s=np.where(of_phase[:, None], costs.compute_s, 0.0),
            call_s=costs.call_s if phase == FORWARD else np.zeros_like(costs.call_s),
            contention=0.0,
        ),
    )


def _spans(stages: Sequence[Stage], orders: Sequence[Sequence[Pass]]) -> tuple[Span, ...]:
    """Every pass as soon as its stage is free and its neighbour is done, by turns over the stages;
    after its last pass each stage updates its weights."""
    found: list[Span] = []
    done: dict[tuple[int, Pass], int] = {}
    last: list[int | None] = [None] * len(stages)

    def run(stage: int, name: str, seconds: float, needs: int | None) -> int:
        before = tuple(i for i in dict.fromkeys((last[stage], needs)) if i is not None)
        start_s = max((found[i].end_s for i in before), default=0.0)
        times = (start_s, start_s + seconds)
        found.append(Span("compute", name, stages[stage].device, *times, stage, after=before))
        last[stage] = len(found) - 1
        return len(found) - 1

    waiting = [list(order) for order in orders]
    while any(waiting):
        for i, stage in enumerate(stages):
            needed = _needed(i, waiting[i][0], len(stages)) if waiting[i] else None
            while waiting[i] and (needed is None or needed in done):
                direction, m = waiting[i].pop(0)
                seconds = stage.forward_s if direction == FORWARD else stage.backward_s
                needs = None if needed is None else done[needed]
                done[i, (direction, m)] = run(i, f"{direction} {m}", seconds, needs)
                needed = _needed(i, waiting[i][0], len(stages)) if waiting[i] else None
    for i, stage in enumerate(stages):
        if stage.update_s:
            run(i, UPDATE, stage.update_s, None)
    return tuple(found)


def _needed(stage: int, what: Pass, num_stages: int) -> tuple[int, Pass] | None:
    """The stage and pass that must be over first, if any."""
    direction, m = what
    if direction == FORWARD:
        return (stage - 1, what) if stage else None
    return (stage + 1, what) if stage < num_stages - 1 else (stage, (FORWARD, m))
