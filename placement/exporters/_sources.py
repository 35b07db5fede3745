"""Costs and calls of source ops, where the prediction speaks of the kernels of one runtime.

A file for another computer cannot hold this computer's kernels: it holds the ops of the model, each
with its share of the time of the kernels that do its work.
"""

import dataclasses
from collections.abc import Iterator

import numpy as np

from placement.constraints.fusion import mended
from placement.core.graph import Graph
from placement.core.placement import Placement
from placement.core.problem import Problem, own_kernels
from placement.core.schedule import Schedule, Segment
from placement.costs.op_times import op_seconds
from placement.schedule.segments import make_schedule


def on_sources(problem: Problem) -> Problem:
    """The same problem with every op its own kernel."""
    graph = problem.graph
    costs = dataclasses.replace(
        problem.costs,
        compute_s=op_seconds(problem),
        spread=None,
        workspace_bytes=np.zeros(len(graph.ops), dtype=np.int64),
    )
    own = own_kernels(graph)
    return dataclasses.replace(problem, costs=costs, kernels=graph, sources=own, pins=())


def source_schedule(problem: Problem, placement: Placement) -> Schedule:
    """Calls of source ops: cut at crossings, merged while the predicted step gets no longer."""
    own = problem if _is_own(problem) else on_sources(problem)
    return make_schedule(own, mended(own, placement))


def schedule_of_ops(problem: Problem, schedule: Schedule) -> Schedule:
    """A schedule of kernels as one of the ops that they run, in their order."""
    graph, index = problem.graph, problem.kernels.index

    def ops(segment: Segment) -> Iterator[str]:
        for kernel in segment.kernels:
            for i in problem.sources[index[kernel]]:
                yield graph.ops[i].name

    return Schedule(tuple(Segment(s.device, tuple(ops(s))) for s in schedule.segments))


def _is_own(problem: Problem) -> bool:
    return problem.kernels is problem.graph and problem.sources == own_kernels(problem.graph)


def kernel_of_op(problem: Problem) -> dict[int, int]:
    """For every source op that a kernel works for, the last such kernel."""
    return {i: kernel for kernel, ops in enumerate(problem.sources) for i in ops}


def output_bytes(graph: Graph) -> dict[str, int]:
    """Bytes that each op writes, by name."""
    found: dict[str, int] = {}
    for tensor in graph.tensors:
        if tensor.producer is not None:
            found[tensor.producer] = found.get(tensor.producer, 0) + tensor.num_bytes
    return found
