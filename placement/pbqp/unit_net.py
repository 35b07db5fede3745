"""A placement problem as a PBQP: units are nodes, devices alternatives, transfers edges."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.problem import Problem
from placement.pbqp.problem import Packed
from placement.simulator.flat import Flat, flatten


class UnitNet(NamedTuple):
    """`node_s` (U, D): seconds of each unit on each device, infinite where it may not or cannot be.

    Edge e joins units `ends[e]` (E, 2) and costs `edge_s[e]` (E, D, D), by the devices of both.
    """

    node_s: Floats
    ends: Ints
    edge_s: Floats

    def packed(self) -> Packed:
        num_units, num_devices = self.node_s.shape
        return Packed(
            cost_ptr=np.arange(num_units + 1, dtype=np.int64) * num_devices,
            costs=np.ascontiguousarray(self.node_s).ravel(),
            ends=self.ends,
            matrix_ptr=np.arange(len(self.ends) + 1, dtype=np.int64) * num_devices**2,
            matrices=np.ascontiguousarray(self.edge_s).ravel(),
        )


def unit_net(problem: Problem) -> UnitNet:
    """Compute, calls and the ways from and to the host on nodes, transfers between units on edges.

    A tensor read by several units counts once for each, as an edge knows two units only; a crossing
    counts the call that it starts. A device too small for a unit's weights is forbidden to it.
    """
    flat = flatten(problem)
    resident = problem.kernels.arrays.resident_bytes
    weights = np.bincount(flat.unit_of_kernel, resident, problem.num_units)
    node_s = np.where(problem.allowed, problem.unit_s, np.inf) + _host_s(flat, problem.num_units)
    node_s[weights[:, None] > flat.limit_bytes] = np.inf
    if flat.each_pays:
        node_s += np.outer(np.diff(flat.kernel_ptr), flat.call_s)
    ends, num_tensors, num_bytes = _traffic(flat, problem.num_units)
    edge_s = num_tensors[:, None, None] * flat.move_s + num_bytes[:, None, None] * flat.s_per_byte
    if not flat.each_pays:
        edge_s += flat.call_s
    diagonal = np.arange(problem.num_devices)
    edge_s[:, diagonal, diagonal] = 0.0
    return UnitNet(node_s, ends, edge_s)


def rivals(problem: Problem, table: Floats, reach: int) -> UnitNet:
    """Pairs of units that would run at the same time, and what it costs if they share a device.

    `table` is CEFT's. Kernels run from their earliest start for their least time; those that
    depend on each other never overlap. A kernel meets at most the next `reach` that start. Sharing
    device d costs the shorter of both times there, by the share of it that overlaps. Nodes are
    free.
    """
    unit, compute_s = problem.unit_of_kernel, problem.costs.compute_s
    possible = np.isfinite(table)
    start = np.where(possible, table - np.where(possible, compute_s, 0.0), np.inf).min(axis=1)
    least = np.where(possible, compute_s, np.inf).min(axis=1)
    order = np.argsort(start, kind="stable")
    first, second = _meetings(order, start, start + least, reach)
    apart = unit[first] != unit[second]
    first, second = first[apart], second[apart]
    both = np.minimum(start[first] + least[first], start[second] + least[second]) - start[second]
    shorter = np.minimum(least[first], least[second])
    share = np.divide(both, shorter, out=np.zeros_like(both), where=shorter > 0.0)
    cost = share[:, None] * _finite(np.minimum(compute_s[first], compute_s[second]))
    edge_s = cost[:, :, None] * np.eye(problem.num_devices)
    nothing = np.zeros((problem.num_units, problem.num_devices))
    return UnitNet(nothing, np.stack([unit[first], unit[second]], axis=1), edge_s)


def _finite(seconds: Floats) -> Floats:
    return np.where(np.isfinite(seconds), seconds, 0.0)


def _meetings(order: Ints, start: Floats, end: Floats, reach: int) -> tuple[Ints, Ints]:
    """Pairs of kernels that overlap in time, the earlier first."""
    firsts, seconds = [order[:0]], [order[:0]]
    for step in range(1, min(reach, len(order) - 1) + 1):
        first, second = order[:-step], order[step:]
        meet = start[second] < end[first]
        firsts.append(first[meet])
        seconds.append(second[meet])
    return np.concatenate(firsts), np.concatenate(seconds)


def _readers(flat: Flat, num_units: int) -> tuple[Ints, Ints]:
    """(tensor, unit that reads it) pairs, each once, by tensor."""
    tensor = np.repeat(np.arange(flat.producer.size), np.diff(flat.consumer_ptr))
    pairs = np.unique(tensor * num_units + flat.unit_of_kernel[flat.consumers])
    return pairs // num_units, pairs % num_units


def _traffic(flat: Flat, num_units: int) -> tuple[Ints, Floats, Floats]:
    """Ends (E, 2) of the unit pairs with traffic, its tensors and its bytes (E,)."""
    tensor, reader = _readers(flat, num_units)
    made = flat.producer[tensor] >= 0
    tensor, reader = tensor[made], reader[made]
    maker = flat.unit_of_kernel[flat.producer[tensor]]
    crosses = maker != reader
    keys, pair = np.unique(maker[crosses] * num_units + reader[crosses], return_inverse=True)
    num_bytes = np.bincount(pair, flat.tensor_bytes[tensor[crosses]], keys.size)
    ends = np.stack([keys // num_units, keys % num_units], axis=1)
    num_tensors = np.bincount(pair, minlength=keys.size).astype(np.float64)
    return ends, num_tensors, np.asarray(num_bytes, dtype=np.float64)


def _host_s(flat: Flat, num_units: int) -> Floats:
    """(U, D) seconds of a unit's model inputs from the host and of its outputs to it."""
    seconds = np.zeros((num_units, flat.call_s.size))
    if flat.host < 0:
        return seconds
    tensor, reader = _readers(flat, num_units)
    given = flat.producer[tensor] < 0
    _add_ways(seconds, flat, reader[given], tensor[given], flat.move_s[flat.host], incoming=True)
    out = np.flatnonzero(flat.is_output & (flat.producer >= 0))
    makers = flat.unit_of_kernel[flat.producer[out]]
    _add_ways(seconds, flat, makers, out, flat.move_s[:, flat.host], incoming=False)
    seconds[:, flat.on_host] = 0.0
    return seconds


def _add_ways(
    seconds: Floats, flat: Flat, units: Ints, tensors: Ints, latency_s: Floats, *, incoming: bool
) -> None:
    per_byte = flat.s_per_byte[flat.host] if incoming else flat.s_per_byte[:, flat.host]
    np.add.at(seconds, units, latency_s + np.outer(flat.tensor_bytes[tensors], per_byte))


def joined(net: UnitNet, other: UnitNet, factor: float) -> UnitNet:
    """The sum of a net and a multiple of another over the same units."""
    if factor == 0.0:
        return net
    return UnitNet(
        net.node_s + factor * other.node_s,
        np.concatenate([net.ends, other.ends]),
        np.concatenate([net.edge_s, factor * other.edge_s]),
    )


def weighted(net: UnitNet, chosen: NDArray[np.bool_], factor: float) -> UnitNet:
    """The net with the costs of the chosen units, and of edges between them, multiplied."""
    inside = chosen[net.ends].all(axis=1)
    return net._replace(
        node_s=net.node_s * np.where(chosen, factor, 1.0)[:, None],
        edge_s=net.edge_s * np.where(inside, factor, 1.0)[:, None, None],
    )


def fixed(net: UnitNet, device_of_unit: Ints) -> UnitNet:
    """The net with units fixed to a device (-1: free), where they can be there."""
    units = np.flatnonzero(device_of_unit >= 0)
    units = units[np.isfinite(net.node_s[units, device_of_unit[units]])]
    node_s = net.node_s.copy()
    node_s[units] = np.inf
    node_s[units, device_of_unit[units]] = net.node_s[units, device_of_unit[units]]
    return net._replace(node_s=node_s)


def priced(net: UnitNet, prices: Floats) -> UnitNet:
    """The net with a device's seconds multiplied by its price (D,); an edge pays at both ends."""
    return net._replace(
        node_s=net.node_s * prices,
        edge_s=net.edge_s * (prices[:, None] + prices[None, :]),
    )
