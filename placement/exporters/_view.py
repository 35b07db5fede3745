"""What the formats with a picture ask of a view of the graph, and what they paint on it.

The studio's canvas makes views (nodes with places, edges with waypoints, frames of open blocks);
whoever exports hands one in, so that the file shows what is on the screen.
"""

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Protocol

from placement.core.machine import Machine

PALETTE = Path(__file__).resolve().parents[2] / "assets" / "canvas" / "palette.json"
Mix = tuple[tuple[int, int], ...]


class Node(Protocol):
    """A visible op or closed block; `x`, `y` are its centre, `group` is -1 for an op."""

    @property
    def id(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def subtitle(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def x(self) -> float: ...
    @property
    def y(self) -> float: ...
    @property
    def width(self) -> float: ...
    @property
    def height(self) -> float: ...
    @property
    def group(self) -> int: ...
    @property
    def num_ops(self) -> int: ...


class Edge(Protocol):
    """Data between two nodes by index; without `way` it is drawn on demand only."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def num_bytes(self) -> int: ...
    @property
    def title(self) -> str: ...
    @property
    def way(self) -> tuple[tuple[float, float], ...] | None: ...


class Box(Protocol):
    """The frame of an open block; `left`, `top` is its corner."""

    @property
    def label(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def left(self) -> float: ...
    @property
    def top(self) -> float: ...
    @property
    def width(self) -> float: ...
    @property
    def height(self) -> float: ...


class View(Protocol):
    """A picture of a graph without devices; `node_of_op[i]` shows op i."""

    @property
    def nodes(self) -> Sequence[Node]: ...
    @property
    def edges(self) -> Sequence[Edge]: ...
    @property
    def boxes(self) -> Sequence[Box]: ...
    @property
    def node_of_op(self) -> Sequence[int]: ...


def mixes(view: View, device_of_op: Sequence[int]) -> list[Mix]:
    """Per node (device, number of ops) pairs, the largest share first, ties by device."""
    counts: list[dict[int, int]] = [{} for _ in view.nodes]
    for node, device in zip(view.node_of_op, device_of_op, strict=True):
        counts[node][device] = counts[node].get(device, 0) + 1
    return [tuple(sorted(row.items(), key=lambda pair: (-pair[1], pair[0]))) for row in counts]


def colours(machine: Machine) -> list[str]:
    """The colour (#rrggbb) of each device, the same as everywhere in the studio."""
    known = _palette()
    return [known[i % len(known)] for i in range(len(machine.devices))]


@cache
def _palette() -> tuple[str, ...]:
    return tuple(json.loads(PALETTE.read_text(encoding="utf-8"))["devices"])


def no_view(view: Callable[[], View] | None) -> str:
    """Why a format with a picture cannot be written, empty if it can."""
    return "" if view is not None else "There is no picture of the graph to export; give a view."
