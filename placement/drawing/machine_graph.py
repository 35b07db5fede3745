"""A machine as a graph for the eye: devices by host, and links that are alike as one line.

Every two devices may have a link each way, which nobody can read as lines. So links lie in rails:
those between the processors of a host, between these and its accelerators, among its accelerators,
and one between hosts. A rail of a side holds what is about as fast and hangs together, so a machine
whose accelerators have fast links in pairs shows the pairs.

Where times to move tensors are stated without links, as in workload files, all devices share one
memory: they are one host, or the processors and the clusters that accelerators are in.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from placement.core import formatting
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.machine import Device, Link, Machine
from placement.drawing.colours.palette import device_colour

# Where rails lie: above the processors of a host, below them, below the accelerators, outside.
SIDES = HOST, CROSS, ACCELERATORS = "host", "cross", "accelerators"
BETWEEN = "between"
# What is measured scatters by about as much, so links of this ratio are alike.
ALIKE = 1.3
# Of the links to processors, those that are as good as the best one: to lanes of one processor.
BEST = 1.05
MOST_LEVELS = 3


@dataclass(frozen=True, eq=False)
class Rail:
    """Links (N,) drawn as one line between devices, both by number; the fastest links come first.

    `least` and `most` are of the latencies of all its links and of their bytes per second.
    """

    side: str
    machine: Machine
    numbers: Ints
    ends: tuple[int, ...]
    least: tuple[float, float]
    most: tuple[float, float]

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """The links themselves, of which there may be thousands."""
        return tuple(self.machine.links[number] for number in self.numbers.tolist())

    @property
    def key(self) -> str:
        """What tells it from all others of a machine: no link is in two rails."""
        first = self.machine.links[int(self.numbers[0])]
        return f"{first.src}->{first.dst}"

    @property
    def text(self) -> str:
        """How fast its links are, and how long they take to begin."""
        (least_s, slowest), (most_s, fastest) = self.least, self.most
        fast = _range(formatting.bandwidth, slowest, fastest)
        return f"{fast}, {_range(formatting.seconds, least_s, most_s)}"


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
    host_of = _hosts(machine)
    members: dict[int, list[int]] = {}
    for i, host in enumerate(host_of.tolist()):
        members.setdefault(host, []).append(i)
    on_host = np.array([device.on_host for device in machine.devices], dtype=np.int64)
    of_ends = host_of[machine.link_ends]
    is_inside = of_ends[:, 0] == of_ends[:, 1]
    inside, outside = np.flatnonzero(is_inside), np.flatnonzero(~is_inside)
    num_processors = on_host[machine.link_ends[inside]].sum(axis=1)
    side = of_ends[inside, 0] * len(SIDES) + len(SIDES) - 1 - num_processors
    rails: dict[int, list[Rail]] = {}
    for at, rail in _rails(machine, *_lines(machine, inside, side)):
        rails.setdefault(at // len(SIDES), []).append(rail)
    hosts = tuple(
        Host(
            f"Host {number}" if len(members) > 1 else "",
            tuple(i for i in inside if on_host[i]),
            tuple(i for i in inside if not on_host[i]),
            tuple(rails.get(host, ())),
        )
        for number, (host, inside) in enumerate(members.items(), 1)
    )
    return MachineGraph(machine, hosts, _between(machine, outside))


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

    def join(self, i: int, others: Iterable[int]) -> None:
        for j in others:
            a, b = sorted((self.find(i), self.find(j)))
            self._parent[b] = a

    @property
    def found(self) -> Ints:
        """The set of each number."""
        return np.array([self.find(i) for i in range(len(self._parent))], dtype=np.int64)


def _hosts(machine: Machine) -> Ints:
    """Of each device (D,) the least number among those on its host.

    Nothing in a file says what stands in one case. A device is taken to be where those are that it
    has the best links to: an accelerator to processors, whatever is then alone to any.
    """
    devices, num = machine.devices, len(machine.devices)
    sets = _Sets(num)
    for i, device in enumerate(devices):
        others = filter(None, (device.memory, device.engine, device.streams_from))
        sets.join(i, map(machine.index.__getitem__, others))
    rate_to = np.zeros((num, num))
    rate_to[tuple(machine.link_ends.T)] = machine.link_figures[:, 1]
    on_host = np.array([device.on_host for device in devices], dtype=np.bool_)
    accelerators = np.flatnonzero(~on_host)
    to_processors = _best(np.where(on_host, rate_to[accelerators], 0.0))
    for i, best in zip(accelerators.tolist(), to_processors, strict=True):
        sets.join(i, best)
    size = np.bincount(sets.found).tolist()
    for i in range(num):
        if size[sets.find(i)] == 1:
            sets.join(i, _best(rate_to[i : i + 1])[0])
    return sets.found


def _best(rate_to: Floats) -> list[list[int]]:
    """Of some devices each (N,) those that its links, of so many bytes per second (N, D), reach
    about as fast as any; 0 is no link."""
    best = (rate_to > 0.0) & (rate_to * BEST >= rate_to.max(axis=1, keepdims=True))
    return [np.flatnonzero(reached).tolist() for reached in best]


def _lines(machine: Machine, links: Ints, side: Ints) -> tuple[Ints, Ints, Ints]:
    """Some links (N,) in the order of the lines that they are drawn as, with the line and the side
    of each; the fastest lines of a side come first.

    A line has links of one level of a side that connect its devices. Levels are by how fast a pair
    of devices is joined, both ways together, and few in all.
    """
    num, ends = len(machine.devices), machine.link_ends[links]
    pair, first, of_link = np.unique(
        ends.min(axis=1) * num + ends.max(axis=1), return_index=True, return_inverse=True
    )
    rates = machine.link_figures[links, 1].tolist()
    log = {rate: math.log(rate) for rate in set(rates)}
    falling = -np.bincount(of_link, [log[rate] for rate in rates]) / np.bincount(of_link)
    order = np.lexsort((pair, falling, side[first]))
    level = _levels(falling[order], side[first][order])
    a, b = (level * num + end for end in np.divmod(pair[order], num))
    line = _connected(a, b, (int(level.max(initial=0)) + 1) * num)[a]
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    at = place[of_link]
    drawn = np.lexsort((links, at, line[at]))
    return links[drawn], line[at][drawn], side[drawn]


def _levels(falling: Floats, side: Ints) -> Ints:
    """The level of each pair (P,), by side and there by falling rates, whose logarithms are given.

    Levels of a side begin where rates are no longer alike; where they are many, more is alike.
    """
    is_new = np.diff(side, prepend=-1) > 0
    gap = np.diff(falling, prepend=0.0)
    alike = np.full(side.max(initial=0) + 1, math.log(ALIKE))
    while True:
        begins = is_new | (gap > alike[side])
        has_many = np.bincount(side, begins) > MOST_LEVELS
        if not has_many.any():
            return np.cumsum(begins) - 1
        alike[: has_many.size][has_many] *= 2


def _connected(a: Ints, b: Ints, num: int) -> Ints:
    """The least number (num,) that each one is connected to by pairs of a and b."""
    least = np.arange(num)
    while (least[a] != least[b]).any():
        both = np.minimum(least[a], least[b])
        np.minimum.at(least, a, both)
        np.minimum.at(least, b, both)
        least = least[least]
    return least


def _rails(machine: Machine, links: Ints, line: Ints, side: Ints) -> list[tuple[int, Rail]]:
    """The rail of each line that some links (N,) are drawn as, beside the number of its side."""
    is_new = np.diff(line, prepend=-1) > 0
    begins, number = np.flatnonzero(is_new), np.cumsum(is_new) - 1
    if not begins.size:
        return []
    is_end = np.zeros((begins.size, len(machine.devices)), dtype=np.bool_)
    for ends in machine.link_ends[links].T:
        is_end[number, ends] = True
    figures = machine.link_figures[links]
    least, most = (f.reduceat(figures, begins).tolist() for f in (np.minimum, np.maximum))
    sides = side[begins].tolist()
    return [
        (at, Rail(SIDES[at % len(SIDES)], machine, own, tuple(np.flatnonzero(there).tolist()), *of))
        for at, own, there, *of in zip(
            sides, np.split(links, begins[1:]), is_end, least, most, strict=True
        )
    ]


def _between(machine: Machine, links: Ints) -> tuple[Rail, ...]:
    """All links between hosts are one rail."""
    nothing = np.zeros(links.size, dtype=np.int64)
    return tuple(
        replace(rail, side=BETWEEN) for _, rail in _rails(machine, links, nothing, nothing)
    )


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
        "num": rail.numbers.size,
        "width": _width(rail),
    }


def _range(told: Callable[[float], str], least: float, most: float) -> str:
    """One amount, or the least and the most."""
    first, last = told(least), told(most)
    return first if first == last else f"{first} to {last}"


def _width(rail: Rail) -> float:
    """How thick a rail is drawn: more by one for ten times the bytes per second."""
    fastest = rail.most[1]
    return round(min(7.0, max(1.5, math.log10(fastest) - 6.5)), 1)


def memory_in_words(device: Device) -> str:
    """How much memory a device has, or whose."""
    if device.streams_from:
        return f"weights in {device.streams_from}"
    if device.memory:
        return f"memory of {device.memory}"
    return formatting.num_bytes(device.memory_bytes)
