"""What is marked on the edges of a view: changes of device, and the steps of the critical path.

Both look inside closed blocks too.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placement.core.graph import Graph, Ints
from placement.drawing.edge_paths import queue_way
from placement.drawing.memo import remembered
from placement.drawing.views import View
from placement.simulator.path_steps import PathSteps


def crossings(view: View, graph: Graph, device_of_op: Sequence[int] | Ints) -> str:
    """One character per edge: 0 nothing of it changes device, 1 a part does, 2 all of it.

    What is not placed yet (-1) changes nothing.
    """
    starts, ends, edge = _pairs((view, graph))
    device = np.asarray(device_of_op, dtype=np.int64)
    src, dst = device[starts], device[ends]
    crosses = (src != dst) & (src >= 0) & (dst >= 0)
    total = np.bincount(edge, minlength=len(view.edges))
    crossing = np.bincount(edge, weights=crosses, minlength=len(view.edges))
    codes = np.where(crossing == 0, "0", np.where(crossing == total, "2", "1"))
    return "".join(codes.tolist())


@dataclass(frozen=True)
class QueueLine:
    """A wait of the critical path from one node (index) to another: no edge, no data goes there."""

    start: int
    end: int
    title: str
    way: str
    arrow: str


@dataclass(frozen=True)
class PathLines:
    """One character per edge, 1 where the critical path runs along it, and the path's queues."""

    edges: str
    queues: tuple[QueueLine, ...]


def path_lines(view: View, steps: PathSteps) -> PathLines:
    """The critical path between the visible nodes of a view."""
    shown = steps.between(view.node_of_op)
    codes = ("01"[(edge.start, edge.end) in shown.edges] for edge in view.edges)
    queues = tuple(
        QueueLine(
            queue.before,
            queue.after,
            queue.title,
            *queue_way(view.nodes[queue.before], view.nodes[queue.after]),
        )
        for queue in shown.queues
    )
    return PathLines("".join(codes), queues)


@remembered(24, key=lambda shown: shown[0].hash)
def _pairs(shown: tuple[View, Graph]) -> tuple[Ints, Ints, Ints]:
    """Makers, readers and edges of all data between different nodes, as indices."""
    view, graph = shown
    index, node_of = graph.index, view.node_of_op
    edges = {(edge.start, edge.end): i for i, edge in enumerate(view.edges)}
    found = []
    for tensor in graph.tensors:
        if tensor.producer is None:
            continue
        maker = index[tensor.producer]
        for name in tensor.consumers:
            reader = index[name]
            edge = edges.get((node_of[maker], node_of[reader]))
            if edge is not None:
                found.append((maker, reader, edge))
    pairs = np.array(found, dtype=np.int64).reshape(-1, 3)
    return pairs[:, 0], pairs[:, 1], pairs[:, 2]
