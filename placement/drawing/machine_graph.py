"""A machine as a graph for the eye: devices by host, and links that are alike as one line.

Every two devices may have a link each way, which nobody can read as lines. So links lie in rails:
those between the processors of a host, between these and its accelerators, among its accelerators,
and one between hosts. A rail of a side holds what is about as fast and hangs together, so a machine
whose accelerators have fast links in pairs shows the pairs.

Where times to move tensors are stated without links, as in workload files, all devices share one
memory: they are one host, or the processors and the clusters that accelerators are in.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placement.core import formatting
from placement.core.machine import Device, Link, Machine
from placement.drawing.colours.palette import device_colour

Pair = tuple[int, int]
# Where rails lie: above the processors of a host, below them, below the accelerators, outside.
HOST, CROSS, ACCELERATORS, BETWEEN = "host", "cross", "accelerators", "between"
# What is measured scatters by about as much, so links of this ratio are alike.
ALIKE = 1.3
# Of the links to processors, those that are as good as the best one: to lanes of one processor.
BEST = 1.05
MOST_LEVELS = 3


@dataclass(frozen=True)
class Rail:
    """Links drawn as one line between the devices with these numbers; the fastest come first."""

    side: str
    links: tuple[Link, ...]
    ends: tuple[int, ...]

    @property
    def key(self) -> str:
        """What tells it from all others of a machine: no link is in two rails."""
        return f"{self.links[0].src}->{self.links[0].dst}"

    @property
    def text(self) -> str:
        """How fast its links are, and how long they take to begin."""
        rates = [link.bytes_per_s for link in self.links]
        delays_s = [link.latency_s for link in self.links]
        fast = _range(formatting.bandwidth, rates)
        return f"{fast}, {_range(formatting.seconds, delays_s)}"


@dataclass(frozen=True)
class Host:
    """Processors that share a memory and the accelerators that are closest to them, by number.

    Or a cluster of accelerators, or the processors beside such.
    """

    name: str
    processors: tuple[int, ...]
    accelerators: tuple[int, ...]
    rails: tuple[Rail, ...]


@dataclass(frozen=True)
class MachineGraph:
    """Devices, their hosts in the order of their first devices, and the rail between hosts."""

    machine: Machine
    hosts: tuple[Host, ...]
    between: tuple[Rail, ...]

    @property
    def rails(self) -> dict[str, Rail]:
        """All rails by key."""
        inside = (rail for host in self.hosts for rail in host.rails)
        return {rail.key: rail for rail in (*inside, *self.between)}

    @property
    def version(self) -> str:
        """What tells this drawing from others."""
        return self.machine.content[:16]

    def to_data(self, selected: str = "") -> dict[str, Any]:
        """What the browser draws; `selected` is a device's name or a rail's key."""
        return {
            "version": self.version,
            "devices": [_device(d, i) for i, d in enumerate(self.machine.devices)],
            "hosts": [
                {
                    "name": host.name,
                    "processors": host.processors,
                    "accelerators": host.accelerators,
                    "rails": [_rail(rail) for rail in host.rails],
                }
                for host in self.hosts
            ],
            "between": [_rail(rail) for rail in self.between],
            "selected": selected,
        }


def machine_graph(machine: Machine, clusters: Sequence[int] | None = None) -> MachineGraph:
    """The picture of a machine.

    Where times to move tensors are stated otherwise, there are no links, and `clusters` has the
    cluster of each device, -1 for those on the host.
    """
    if clusters is not None:
        return MachineGraph(machine, _clustered(machine, clusters), ())
    host_of = np.array(_hosts(machine), dtype=np.int64)
    members: dict[int, list[int]] = {}
    for i, host in enumerate(host_of.tolist()):
        members.setdefault(host, []).append(i)
    src, dst = machine.link_ends.T
    is_inside = host_of[src] == host_of[dst]
    sides: dict[tuple[int, str], list[Link]] = {}
    for number in np.flatnonzero(is_inside).tolist():
        link, ends = machine.links[number], machine.link_ends[number].tolist()
        on_host = sum(machine.devices[end].on_host for end in ends)
        side = (ACCELERATORS, CROSS, HOST)[on_host]
        sides.setdefault((int(host_of[ends[0]]), side), []).append(link)
    hosts = tuple(
        Host(
            f"Host {number}" if len(members) > 1 else "",
            tuple(i for i in inside if machine.devices[i].on_host),
            tuple(i for i in inside if not machine.devices[i].on_host),
            tuple(
                rail
                for side in (HOST, CROSS, ACCELERATORS)
                for rail in _rails(machine, side, sides.get((host, side), ()))
            ),
        )
        for number, (host, inside) in enumerate(members.items(), 1)
    )
    outside = np.flatnonzero(~is_inside)
    ends = np.unique(machine.link_ends[outside]).tolist()
    links = tuple(machine.links[number] for number in outside.tolist())
    between = (Rail(BETWEEN, links, tuple(ends)),) if links else ()
    return MachineGraph(machine, hosts, between)


def _clustered(machine: Machine, clusters: Sequence[int]) -> tuple[Host, ...]:
    """Processors and the clusters of accelerators; one cluster is on the host with them."""
    processors = tuple(i for i, device in enumerate(machine.devices) if device.on_host)
    members: dict[int, list[int]] = {}
    for i, device in enumerate(machine.devices):
        if not device.on_host:
            members.setdefault(clusters[i], []).append(i)
    inside = [tuple(members[cluster]) for cluster in sorted(members)]
    if len(inside) < 2:
        return (Host("", processors, inside[0] if inside else (), ()),)
    host = (Host("Host", processors, (), ()),) if processors else ()
    return (*host, *(Host(f"Cluster {n}", (), each, ()) for n, each in enumerate(inside, 1)))


class _Sets:
    """Numbers that are joined into sets, each named by its least."""

    def __init__(self, num: int) -> None:
        self._parent = list(range(num))

    def find(self, i: int) -> int:
        while self._parent[i] != i:
            i = self._parent[i]
        return i

    def join(self, i: int, j: int) -> None:
        a, b = sorted((self.find(i), self.find(j)))
        self._parent[b] = a


def _hosts(machine: Machine) -> list[int]:
    """Of each device the least number among those on its host.

    Nothing in a file says what stands in one case. A device is taken to be where those are that it
    has the best links to: an accelerator to processors, whatever is then alone to any.
    """
    sets, devices = _Sets(len(machine.devices)), machine.devices
    for i, device in enumerate(devices):
        for name in filter(None, (device.memory, device.engine, device.streams_from)):
            sets.join(i, machine.index[name])
    rate_to = np.zeros((len(devices), len(devices)))
    src, dst = machine.link_ends.T
    rate_to[src, dst] = machine.link_figures[:, 1]
    on_host = np.array([device.on_host for device in devices], dtype=np.bool_)
    for i in np.flatnonzero(~on_host).tolist():
        _join_best(sets, i, np.where(on_host, rate_to[i], 0.0))
    size = Counter(sets.find(i) for i in range(len(devices)))
    for i in range(len(devices)):
        if size[sets.find(i)] == 1:
            _join_best(sets, i, rate_to[i])
    return [sets.find(i) for i in range(len(devices))]


def _join_best(sets: _Sets, device: int, rate_to: NDArray[np.float64]) -> None:
    """Join a device with all that its links, of so many bytes per second (D,), reach about as fast
    as any; 0 is no link."""
    best = (rate_to > 0.0) & (rate_to * BEST >= rate_to.max())
    for other in np.flatnonzero(best).tolist():
        sets.join(device, other)


def _rails(machine: Machine, side: str, links: Sequence[Link]) -> list[Rail]:
    """Links of a side by how fast they are and what they connect, the fastest first."""
    found = []
    for level in _levels(machine, links):
        sets = _Sets(len(machine.devices))
        for link in level:
            sets.join(machine.index[link.src], machine.index[link.dst])
        connected: dict[int, list[Link]] = {}
        for link in level:
            connected.setdefault(sets.find(machine.index[link.src]), []).append(link)
        for _, own in sorted(connected.items()):
            ends = sorted({machine.index[end] for link in own for end in (link.src, link.dst)})
            found.append(Rail(side, tuple(own), tuple(ends)))
    return found


def _levels(machine: Machine, links: Iterable[Link]) -> list[list[Link]]:
    """Links by how fast a pair of devices is joined, both ways together; few levels in all."""
    pairs: dict[Pair, list[Link]] = {}
    for link in links:
        a, b = sorted((machine.index[link.src], machine.index[link.dst]))
        pairs.setdefault((a, b), []).append(link)
    rated = sorted(
        (-math.fsum(math.log(link.bytes_per_s) for link in both) / len(both), pair)
        for pair, both in pairs.items()
    )
    alike = math.log(ALIKE)
    while True:
        levels: list[list[Link]] = []
        before = -math.inf
        for rate, pair in rated:
            if rate - before > alike:
                levels.append([])
            levels[-1] += pairs[pair]
            before = rate
        if len(levels) <= MOST_LEVELS:
            return levels
        alike *= 2


def _device(device: Device, number: int) -> dict[str, Any]:
    rate = f"{formatting.flops(device.flops_per_s)}/s" if device.flops_per_s else ""
    return {
        "name": device.name,
        "colour": device_colour(number),
        "memory": memory_in_words(device),
        "rate": rate,
        "about": device.label or device.kind,
    }


def _rail(rail: Rail) -> dict[str, Any]:
    return {
        "key": rail.key,
        "side": rail.side,
        "ends": rail.ends,
        "text": rail.text,
        "num": len(rail.links),
        "width": _width(rail),
    }


def _range(told: Callable[[float], str], values: Sequence[float]) -> str:
    """One amount, or the least and the most."""
    least, most = told(min(values)), told(max(values))
    return least if least == most else f"{least} to {most}"


def _width(rail: Rail) -> float:
    """How thick a rail is drawn: more by one for ten times the bytes per second."""
    fastest = max(link.bytes_per_s for link in rail.links)
    return round(min(7.0, max(1.5, math.log10(fastest) - 6.5)), 1)


def memory_in_words(device: Device) -> str:
    """How much memory a device has, or whose."""
    if device.streams_from:
        return f"weights in {device.streams_from}"
    if device.memory:
        return f"memory of {device.memory}"
    return formatting.num_bytes(device.memory_bytes)
