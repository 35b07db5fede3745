"""What of a network carries to other graphs and machines, and where it stands in a file.

A network made for one problem has inputs and outputs for that problem's kinds of op, its devices,
and the groups that prefer them. In a file these have places of their own: a kind by a hash of its
name, a device by its rank in speed, the fastest first, and a group by the device that it prefers at
first. Zeros stand for what a file does not know: such inputs count for nothing, such outputs begin
as without a policy. What belongs to single units is not carried.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from placement.core.graph import Ints
from placement.learning.environment import Environment

if TYPE_CHECKING:
    from torch import Tensor

Numbers = NDArray[np.float32]

# Places in a file for kinds of op, for devices, and for groups that prefer the same device.
NUM_KINDS, NUM_DEVICES, NUM_ALIKE = 32, 16, 20
LAYOUT = {"kinds": NUM_KINDS, "devices": NUM_DEVICES, "groups": NUM_ALIKE}
# What a unit counts on a device that may not hold it, as often as on the slowest that may.
NOWHERE = 10.0


@dataclass(frozen=True, eq=False)
class Axis:
    """For each index along an axis of a parameter its place in the file, one of `size`, or -1."""

    place: Ints
    size: int


@dataclass(frozen=True, eq=False)
class Carried:
    """Parameters of a network by name, and the axes of those whose shape depends on the problem.

    An axis None is the same in the file. `devices` is the axis of the devices wherever one is.
    """

    parameters: Mapping[str, Tensor]
    axes: Mapping[str, tuple[Axis | None, ...]]
    devices: Axis

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """What the arrays of a file have to be."""
        return {
            name: tuple(
                own if axis is None else axis.size
                for own, axis in zip(parameter.shape, self._axes(name), strict=True)
            )
            for name, parameter in self.parameters.items()
        }

    def begin(self, arrays: Mapping[str, Numbers]) -> int:
        """Take over what a file holds; how many devices it does not know."""
        import torch

        num_new = 0
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                first, *_ = axes = self._axes(name) or (None,)
                found = _looked_up(arrays[name], axes)
                if first is not None:
                    is_new = ~found.reshape(len(found), -1).any(axis=1)
                    found[is_new] = parameter.numpy()[is_new]
                    if first is self.devices:
                        num_new = max(num_new, int(is_new.sum()))
                parameter.copy_(torch.from_numpy(found))
        return num_new

    def arrays(self, before: Mapping[str, Numbers] | None = None) -> dict[str, Numbers]:
        """What goes to a file; `before` is the file from which the network began, if from any."""
        found = {}
        for name, shape in self.shapes.items():
            array = np.zeros(shape, dtype=np.float32) if before is None else before[name].copy()
            value, places = self.parameters[name].detach().numpy().astype(np.float64), []
            for number, axis in enumerate(self._axes(name)):
                place = np.arange(shape[number]) if axis is None else axis.place
                value, place = _averaged(value, number, place)
                places.append(place)
            if places:
                array[np.ix_(*places)] = value
            else:
                array[()] = value
            found[name] = array
        return found

    def _axes(self, name: str) -> tuple[Axis | None, ...]:
        return self.axes.get(name, (None,) * self.parameters[name].dim())


def plain(num: int, *, is_told: bool = True) -> Axis:
    """Inputs that mean the same everywhere; those that a network is not told keep their places."""
    return Axis(np.arange(num if is_told else 0), num)


def kinds(names: Sequence[str]) -> Axis:
    """Kinds of op; one without a name has no place."""
    place = [zlib.crc32(name.encode()) % NUM_KINDS if name else -1 for name in names]
    return Axis(np.array(place, dtype=np.int64), NUM_KINDS)


def devices(environment: Environment) -> Axis:
    """Devices by the seconds that all units take on each, the fastest first, then by number."""
    may = environment.allowed & np.isfinite(environment.unit_s)
    slowest_s = np.where(may, environment.unit_s, 0.0).max(axis=1, keepdims=True, initial=0.0)
    total_s = np.where(may, environment.unit_s, NOWHERE * slowest_s).sum(axis=0)
    rank = np.empty(environment.num_devices, dtype=np.int64)
    rank[np.argsort(total_s, kind="stable")] = np.arange(rank.size)
    return Axis(np.where(rank < NUM_DEVICES, rank, -1), NUM_DEVICES)


def groups(num: int, preferred: Axis) -> Axis:
    """Groups of which number g prefers device g modulo the number of devices at first."""
    alike, device = np.divmod(np.arange(num), len(preferred.place))
    rank = preferred.place[device]
    known = (rank >= 0) & (alike < NUM_ALIKE)
    return Axis(np.where(known, alike * preferred.size + rank, -1), NUM_ALIKE * preferred.size)


def joined(*axes: Axis) -> Axis:
    """One axis after another."""
    places, size = [], 0
    for axis in axes:
        places.append(np.where(axis.place >= 0, axis.place + size, -1))
        size += axis.size
    return Axis(np.concatenate(places), size)


def _looked_up(array: Numbers, axes: Sequence[Axis | None]) -> Numbers:
    """What a file's array says of a network's indices, zeros where it says nothing."""
    found = array.copy()
    for number, axis in enumerate(axes):
        if axis is not None:
            found = np.moveaxis(np.take(found, np.maximum(axis.place, 0), axis=number), number, 0)
            found[axis.place < 0] = 0.0
            found = np.moveaxis(found, 0, number)
    return np.array(found, order="C")


def _averaged(value: NDArray[Any], number: int, place: Ints) -> tuple[NDArray[Any], Ints]:
    """Means over indices of an axis that share a place, and the places, each once."""
    rows = np.moveaxis(value, number, 0)[place >= 0]
    known, which = np.unique(place[place >= 0], return_inverse=True)
    sums = np.zeros((known.size, *rows.shape[1:]))
    np.add.at(sums, which, rows)
    counts = np.bincount(which, minlength=known.size).reshape(-1, *[1] * (rows.ndim - 1))
    return np.moveaxis(sums / counts, 0, number), known
