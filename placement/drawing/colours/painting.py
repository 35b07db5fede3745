"""Colours of a view: a short text per edit, whatever the size of the graph."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from placement.core.machine import MAX_DEVICES, Machine
from placement.drawing.colours.palette import device_colour
from placement.drawing.layout.scopes import members_of
from placement.drawing.views import View

CODE = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
# Devices beyond those have ideographs, which follow one another (see `codeOf` in colours.js).
FURTHER = 0x4E00
MIXED, NONE = "*", "."


@dataclass(frozen=True)
class Paint:
    """One character per visible node: its device, `*` for several, `.` for none.

    `mixes[node index]` lists (device, number of ops) of the mixed nodes, the largest share first;
    `counts[d]` is the number of ops on device d over the whole graph.
    """

    view: str
    colours: str
    mixes: Mapping[int, tuple[tuple[int, int], ...]]
    counts: tuple[int, ...]


def code_of(number: int) -> str:
    """The character of a device, or of another class."""
    return CODE[number] if number < len(CODE) else chr(FURTHER + number)


def paint(view: View, device_of_op: Sequence[int] | NDArray[np.int64], num_devices: int) -> Paint:
    """Colours of all nodes of a view, given a device index for each op (-1: not placed)."""
    table = counts_by_node(view, device_of_op, num_devices)
    colours, mixes = [], {}
    for number, row in enumerate(table):
        used = np.flatnonzero(row)
        if len(used) == 1:
            colours.append(NONE if used[0] == num_devices else code_of(int(used[0])))
        else:
            colours.append(MIXED)
            shares = [(-1 if d == num_devices else int(d), int(row[d])) for d in used]
            mixes[number] = tuple(sorted(shares, key=lambda s: (-s[1], s[0])))
    counts = tuple(int(n) for n in table[:, :num_devices].sum(axis=0))
    return Paint(view.hash, "".join(colours), mixes, counts)


def counts_by_node(
    view: View, class_of_op: Sequence[int] | NDArray[np.int64], num_classes: int
) -> NDArray[np.int64]:
    """Ops by (visible node, device or other class); the last column counts those without (-1)."""
    classes = np.asarray(class_of_op, dtype=np.int64)
    if classes.shape != (len(view.node_of_op),):
        raise ValueError(
            f"The view shows {len(view.node_of_op)} ops, but {classes.size} devices were given;"
            " give one per op."
        )
    if not 0 <= num_classes <= MAX_DEVICES:
        raise ValueError(f"{num_classes} devices cannot be told apart; use at most {MAX_DEVICES}.")
    if classes.size and not -1 <= classes.min() <= classes.max() < num_classes:
        raise ValueError(f"A device index lies outside -1 to {num_classes - 1}; correct it.")
    table = np.zeros((len(view.nodes), num_classes + 1), dtype=np.int64)
    np.add.at(table, (np.asarray(view.node_of_op, dtype=np.int64), classes), 1)
    return table


def selection_marks(view: View, selection: Iterable[str]) -> str:
    """One character per visible node: 0 not selected, 1 in part, 2 fully."""
    chosen = set(selection)
    if not chosen:
        return "0" * len(view.nodes)
    counts = [0] * len(view.nodes)
    for name, node in zip(view.op_names, view.node_of_op, strict=True):
        counts[node] += name in chosen
    return "".join(
        "0" if not count else "2" if count == node.num_ops else "1"
        for count, node in zip(counts, view.nodes, strict=True)
    )


def opacity_marks(view: View, opacity_of_op: Sequence[float] | NDArray[np.float64]) -> str:
    """One digit per visible node, 9 where all of it is drawn fully; empty where everything is."""
    given = np.asarray(opacity_of_op, dtype=np.float64)
    if not given.size or bool((given >= 1.0).all()):
        return ""
    sums = np.bincount(view.node_of_op, weights=given, minlength=len(view.nodes))
    num = np.bincount(view.node_of_op, minlength=len(view.nodes))
    digits = np.rint(9.0 * np.clip(sums / np.maximum(num, 1), 0.0, 1.0)).astype(np.int64)
    return "".join(map(str, digits.tolist()))


def ops_of(view: View, node_ids: Iterable[str]) -> list[str]:
    """Names of the ops that these node ids stand for, in declared order.

    A group stands for all its ops, open or closed, so an edit made while another view was on the
    screen is understood too. Ids that the graph does not have are left out.
    """
    return [view.op_names[i] for i in members_of(view.tree, node_ids)]


Mix = tuple[tuple[int, int], ...]


def mixes(view: View, device_of_op: Sequence[int]) -> list[Mix]:
    """Per node (device, number of ops) pairs, the largest share first, ties by device."""
    counts: list[dict[int, int]] = [{} for _ in view.nodes]
    for node, device in zip(view.node_of_op, device_of_op, strict=True):
        counts[node][device] = counts[node].get(device, 0) + 1
    return [tuple(sorted(row.items(), key=lambda pair: (-pair[1], pair[0]))) for row in counts]


def colours(machine: Machine) -> list[str]:
    """The colour (#rrggbb) of each device, the same as everywhere in the studio."""
    return [device_colour(i) for i in range(len(machine.devices))]


def no_view(view: Callable[[], View] | None) -> str:
    """Why a format with a picture cannot be written, empty if it can."""
    return "" if view is not None else "There is no picture of the graph to export; give a view."
