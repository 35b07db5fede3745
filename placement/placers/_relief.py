"""Units leave devices that hold too many bytes, those first that make the program least dearer.

Weights that are cast or transposed make values as large as themselves, which are best read where
they are made. So units without bytes go with the one at their dearest edge, and others follow later
where that makes the program cheaper.
"""

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.problem import Problem
from placement.pbqp.unit_net import UnitNet
from placement.search.feasible import limit_bytes, unit_bytes

# What follows must gain this share at least: sums of the same seconds differ by rounding.
_LEAST_GAIN = 1e-9


def relieved(
    problem: Problem, net: UnitNet, devices: tuple[int, ...], share: float
) -> tuple[int, ...]:
    """Devices of units after one unit after another has left what holds more than a share of its
    limit: the one that makes the program the least dearer by byte, for a device with room."""
    size, room = unit_bytes(problem), share * limit_bytes(problem)
    chosen = np.array(devices)
    leader = leaders(net, size, chosen)
    program = _Program(_led(net, leader), chosen.copy())
    room -= np.bincount(chosen, size, room.size)
    while room.min() < 0.0:
        full = int(room.argmin())
        units = np.flatnonzero((program.chosen == full) & (size > 0.0))
        seconds = program.seconds[units]
        may = np.isfinite(seconds) & (size[units, None] <= room)
        if not may.any():
            break
        more_s = seconds - seconds[:, full][:, None]
        by_byte = np.where(may, more_s / size[units, None], np.inf)
        row, target = divmod(int(by_byte.argmin()), room.size)
        unit = int(units[row])
        room[full] += size[unit]
        room[target] -= size[unit]
        program.move(unit, target)
        program.follow(unit, size)
    return tuple(program.chosen[leader].tolist())


def leaders(net: UnitNet, size: Floats, chosen: Ints) -> Ints:
    """The unit that each unit (U,) goes with: itself, or for one without bytes the one at its
    dearest edge, if that has bytes and is on the same device."""
    leader, edges = np.arange(len(chosen)), _edges_of(net)
    mean_s = net.edge_s.mean(axis=(1, 2)) if len(net.edge_s) else np.zeros(0)
    for unit in np.flatnonzero(size == 0.0).tolist():
        if edges[unit]:
            dearest = max(edges[unit], key=lambda edge: (mean_s[edge], -edge))
            other = int(net.ends[dearest].sum()) - unit
            if size[other] > 0.0 and chosen[other] == chosen[unit]:
                leader[unit] = other
    return leader


def _led(net: UnitNet, leader: Ints) -> UnitNet:
    """The program of leaders, who cost what all that go with them cost; the others cost nothing."""
    node_s, ends = np.zeros_like(net.node_s), leader[net.ends]
    np.add.at(node_s, leader, net.node_s)
    inside = ends[:, 0] == ends[:, 1]
    np.add.at(node_s, ends[inside, 0], net.edge_s[inside].diagonal(axis1=1, axis2=2))
    return net._replace(node_s=node_s, ends=ends[~inside], edge_s=net.edge_s[~inside])


def _edges_of(net: UnitNet) -> list[list[int]]:
    """The edges at each unit."""
    found: list[list[int]] = [[] for _ in net.node_s]
    for edge, (first, second) in enumerate(net.ends.tolist()):
        found[first].append(edge)
        found[second].append(edge)
    return found


class _Program:
    """What each unit costs on each device (U, D) while the others stay, kept up with moves."""

    def __init__(self, net: UnitNet, chosen: Ints) -> None:
        self.net, self.chosen, self._edges = net, chosen, _edges_of(net)
        self.seconds = net.node_s.copy()
        for unit, device in enumerate(chosen.tolist()):
            self._charge(unit, device, 1.0)

    def move(self, unit: int, device: int) -> None:
        self._charge(unit, int(self.chosen[unit]), -1.0)
        self._charge(unit, device, 1.0)
        self.chosen[unit] = device

    def follow(self, unit: int, size: Floats) -> None:
        """Move neighbours without bytes, and theirs, to where they are cheapest now."""
        moved = [unit]
        while moved:
            for other in self._neighbours(moved.pop()):
                best = int(self.seconds[other].argmin())
                now_s = self.seconds[other, self.chosen[other]]
                if size[other] == 0.0 and self.seconds[other, best] < (1.0 - _LEAST_GAIN) * now_s:
                    self.move(other, best)
                    moved.append(other)

    def _neighbours(self, unit: int) -> list[int]:
        return [int(self.net.ends[edge].sum()) - unit for edge in self._edges[unit]]

    def _charge(self, unit: int, device: int, sign: float) -> None:
        """Add what a unit on a device costs its neighbours on each of theirs; away for -1."""
        for edge in self._edges[unit]:
            first, second = self.net.ends[edge]
            if first == unit:
                self.seconds[second] += sign * self.net.edge_s[edge, device]
            else:
                self.seconds[first] += sign * self.net.edge_s[edge, :, device]
