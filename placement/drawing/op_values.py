"""What every op has beside its device: seconds, bytes, type, slack; arrays in declared order.

The graph is coloured by these and the table lists them.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.schedule.simulated import Simulated
from placement.simulator.critical_path import slack_s

# Borders between the steps of slack, as shares of the step time.
LITTLE_SLACK, MUCH_SLACK = 0.1, 0.5
ON_PATH, CLOSE, LOOSE, FREE = range(4)


def device_indices(problem: Problem, placement: Placement) -> Ints:
    """Device index of each op."""
    index, device_of = problem.machine.index, placement.device_of
    return np.array([index[device_of[op.name]] for op in problem.graph.ops], dtype=np.int64)


def num_bytes(problem: Problem) -> Floats:
    """Weights of each op and the tensors that it writes, together.

    Problem files state one size for each op, which has all of it inside.
    """
    graph = problem.graph
    total = np.array([op.param_bytes for op in graph.ops], dtype=np.float64)
    if problem.memory_model == "sum":
        return total
    for tensor in graph.tensors:
        if tensor.producer is not None:
            total[graph.index[tensor.producer]] += tensor.num_bytes
    return total


def kinds(names: Sequence[str], most: int) -> tuple[Ints, list[str]]:
    """The class of each op by its type, and the types: the commonest, `most` of them.

    Ops of other types are of the class after the last. Equally common types stay in their order.
    """
    counted = Counter(names)
    first = list(dict.fromkeys(names))
    common = sorted(first, key=lambda kind: -counted[kind])[:most]
    number = {kind: i for i, kind in enumerate(common)}
    return np.array([number.get(n, len(common)) for n in names], dtype=np.int64), common


def slack_classes(problem: Problem, predicted: Simulated) -> Ints:
    """ON_PATH for ops of the critical path, else CLOSE, LOOSE or FREE by slack; -1 costs nothing.

    Slack is how much later a segment could end without a longer step.
    """
    spans, step_s = predicted.timeline.spans, predicted.timeline.step_s
    of_segment: dict[int, float] = {}
    for span, slack in zip(spans, slack_s(spans, step_s), strict=True):
        if span.kind == "compute":
            of_segment[span.segment] = min(slack, of_segment.get(span.segment, np.inf))
    critical = {s.segment for s in predicted.critical_path if s.kind == "compute"}
    segment_of = predicted.schedule.segment_of
    found = np.full(len(problem.graph.ops), np.inf)
    for kernel, sources in zip(problem.kernels.ops, problem.sources, strict=True):
        segment = segment_of[kernel.name]
        slack = -1.0 if segment in critical else of_segment.get(segment, np.inf)
        for i in sources:
            found[i] = min(found[i], slack)
    classes = np.searchsorted([0.0, LITTLE_SLACK * step_s, MUCH_SLACK * step_s], found, "right")
    return np.where(np.isinf(found), -1, classes)


def differences(here: Ints, there: Ints, most: int) -> tuple[Ints, list[tuple[int, int]]]:
    """Class of each op by where two placements put it, and the moves that the classes mean.

    Class 0: the same device in both; then one for each (device here, device there), the commonest
    first, at most `most`; all other moves are of the class after the last.
    """
    moved = np.flatnonzero(here != there)
    pairs = Counter((int(here[i]), int(there[i])) for i in moved)
    common = sorted(pairs, key=lambda p: (-pairs[p], p))[:most]
    number = {pair: i for i, pair in enumerate(common, 1)}
    classes = np.zeros(len(here), dtype=np.int64)
    for i in moved:
        classes[i] = number.get((int(here[i]), int(there[i])), len(common) + 1)
    return classes, common
