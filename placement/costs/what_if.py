"""What if the machine were another: the same problem with faster, slower or smaller parts.

Everything under such conditions is computed; nothing of it can be measured.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placement.core.amounts import MOST
from placement.core.decoding import decode, shown
from placement.core.machine import Device, Link, Machine, Rate
from placement.core.problem import Problem
from placement.core.verb_options import option
from placement.costs.offload import with_same_offload, without_offload

# The ends of a link: sender, receiver.
Ends = tuple[str, str]


@dataclass(frozen=True)
class Conditions:
    """Factors on a machine: 2 is twice as much, 0.5 half as much; what is not named stays.

    `speed` by device: at half speed it takes twice as long for all that it computes and for each
    call. `bandwidth` and `latency` are of all links: with bandwidth 2 a byte takes half as long,
    with latency 2 the delay before the first one is twice as long. `link_bandwidth` and
    `link_latency` are of single links, by (sender, receiver), and take the place of the factor of
    all links there. `memory_bytes` by device is its limit, None for no limit.
    """

    speed: Mapping[str, float] = option(
        {},
        "factor on the speed of a device: at 0.5 it takes twice as long for all that it computes",
        flag="--speed",
        metavar="DEVICE=FACTOR",
        label="Speed",
    )
    bandwidth: float = option(
        1.0,
        "factor on the bytes per second of links: with 2 a tensor is sent in half the time",
        flag="--bandwidth",
        metavar="F",
        label="Bandwidth",
    )
    latency: float = option(
        1.0,
        "factor on the time before the first byte of a tensor arrives over a link",
        flag="--latency",
        metavar="F",
        label="Delay",
    )
    memory_bytes: Mapping[str, int | None] = option(
        {},
        "the most that weights and tensors may take on a device, or none",
        flag="--memory",
        metavar="DEVICE=BYTES",
        label="Memory",
    )
    link_bandwidth: Mapping[Ends, float] = option(
        {},
        "factor on the bandwidth of one link, in place of that of all links",
        flag="--link-bandwidth",
        metavar="SRC,DST=F",
    )
    link_latency: Mapping[Ends, float] = option(
        {},
        "factor on the latency of one link, in place of that of all links",
        flag="--link-latency",
        metavar="SRC,DST=F",
    )

    def __post_init__(self) -> None:
        factors = {f"speed of {shown(name)}": value for name, value in self.speed.items()}
        factors |= {"bandwidth of links": self.bandwidth, "latency of links": self.latency}
        for word in ("bandwidth", "latency"):
            for (src, dst), value in getattr(self, f"link_{word}").items():
                factors[f"{word} of the link {src!r} to {dst!r}"] = value
        for what, value in factors.items():
            if not 1 / MOST <= value <= MOST:
                raise ValueError(f"The factor on the {what} is {value!s:.20}; use more than zero.")
        for name, limit in self.memory_bytes.items():
            if limit is not None and not 0 <= limit <= MOST:
                raise ValueError(
                    f"The memory limit of {shown(name)} is {limit!s:.20}; use a number of"
                    " bytes, or none."
                )
        for name in ("speed", "memory_bytes", "link_bandwidth", "link_latency"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    @property
    def own_links(self) -> tuple[Ends, ...]:
        """Links with a factor of their own, in the order in which they were named."""
        return tuple(dict.fromkeys((*self.link_bandwidth, *self.link_latency)))

    def to_json(self) -> dict[str, Any]:
        return self.rows.to_json()

    @property
    def rows(self) -> "ConditionRows":
        """The same as JSON lists it."""
        links = tuple(
            _LinkRow(*ends, self.link_bandwidth.get(ends), self.link_latency.get(ends))
            for ends in self.own_links
        )
        return ConditionRows(self.speed, self.bandwidth, self.latency, self.memory_bytes, links)


UNCHANGED = Conditions()


@dataclass(frozen=True)
class _LinkRow:
    """The factors of one link, as JSON lists them."""

    src: str
    dst: str
    bandwidth: float | None = None
    latency: float | None = None


@dataclass(frozen=True)
class ConditionRows:
    """Conditions as JSON lists them: links in rows, for its objects have texts as keys."""

    speed: Mapping[str, float] = field(default_factory=dict)
    bandwidth: float = 1.0
    latency: float = 1.0
    memory_bytes: Mapping[str, int | None] = field(default_factory=dict)
    links: tuple[_LinkRow, ...] = ()

    def __post_init__(self) -> None:
        self.conditions()

    def conditions(self) -> Conditions:
        bandwidth, latency = (
            {(r.src, r.dst): f for r in self.links if (f := getattr(r, key)) is not None}
            for key in ("bandwidth", "latency")
        )
        return Conditions(
            self.speed, self.bandwidth, self.latency, self.memory_bytes, bandwidth, latency
        )

    def to_json(self) -> dict[str, Any]:
        rows = ({k: v for k, v in vars(link).items() if v is not None} for link in self.links)
        maps = {"speed": dict(self.speed), "memory_bytes": dict(self.memory_bytes)}
        return {**vars(self), **maps, "links": list(rows)}


def conditions_from_json(content: Any) -> Conditions:
    """Conditions from their JSON object; a ValueError where the object is not understood."""
    try:
        return decode(content, ConditionRows, remedy="set them anew").conditions()
    except ValueError as error:
        raise ValueError(f"The what-if conditions are not understood: {error}") from None


def changes(machine: Machine, conditions: Conditions) -> Conditions:
    """The conditions without those that leave the machine as it is.

    A ValueError names a device or a link that the machine does not have.
    """
    for name in (*conditions.speed, *conditions.memory_bytes):
        machine.device(name)
    _require_links(machine, conditions.own_links)
    return Conditions(
        {name: factor for name, factor in conditions.speed.items() if factor != 1.0},
        conditions.bandwidth,
        conditions.latency,
        {
            name: limit
            for name, limit in conditions.memory_bytes.items()
            if limit != machine.device(name).memory_bytes
        },
        {e: f for e, f in conditions.link_bandwidth.items() if f != conditions.bandwidth},
        {e: f for e, f in conditions.link_latency.items() if f != conditions.latency},
    )


def _require_links(machine: Machine, wanted: Iterable[Ends]) -> None:
    known = {(link.src, link.dst) for link in machine.links}
    for src, dst in wanted:
        for name in (src, dst):
            machine.device(name)
        if (src, dst) not in known:
            raise ValueError(
                f"Machine {machine.name!r} has no link from {src!r} to {dst!r}; name one that it"
                " has (the verb machine lists them)."
            )


def what_if(problem: Problem, conditions: Conditions) -> Problem:
    """The problem on the machine under these conditions; itself where they change nothing.

    Times that were measured are so no more. Unsupported pairs stay unsupported, and how much
    devices slow each other by sharing memory stays as it is.
    """
    if problem.offloads:
        # Streaming has to be worked out anew: links and accelerators are what it is made of.
        anew = with_same_offload(what_if(without_offload(problem), conditions), problem)
        return dataclasses.replace(anew, pins=problem.pins)
    wanted = changes(problem.machine, conditions)
    if wanted == UNCHANGED:
        return problem
    costs = problem.costs
    slower = np.array([1.0 / wanted.speed.get(d.name, 1.0) for d in problem.machine.devices])
    faster = _of_pairs(problem.machine, wanted.bandwidth, wanted.link_bandwidth)
    later = _of_pairs(problem.machine, wanted.latency, wanted.link_latency)
    same_times = not wanted.speed and bool((faster == 1.0).all() and (later == 1.0).all())
    measured = costs.origin == "measured"
    changed = dataclasses.replace(
        costs,
        compute_s=costs.compute_s * slower,
        call_s=costs.call_s * slower,
        latency_s=costs.latency_s * later,
        s_per_byte=costs.s_per_byte / faster,
        origin="given" if measured and not same_times else costs.origin,
    )
    return dataclasses.replace(problem, machine=_machine(problem.machine, wanted), costs=changed)


def _of_pairs(machine: Machine, usual: float, own: Mapping[Ends, float]) -> NDArray[np.float64]:
    """A factor for each pair of devices, (D, D): row the sender, column the receiver."""
    factors = np.full((len(machine.devices),) * 2, usual)
    for (src, dst), factor in own.items():
        factors[machine.index[src], machine.index[dst]] = factor
    return factors


def _machine(machine: Machine, wanted: Conditions) -> Machine:
    return dataclasses.replace(
        machine,
        name=f"{machine.name}, what if",
        devices=tuple(_device(d, wanted) for d in machine.devices),
        links=tuple(_link(link, wanted) for link in machine.links),
    )


def _device(device: Device, wanted: Conditions) -> Device:
    factor = wanted.speed.get(device.name, 1.0)
    return dataclasses.replace(
        device,
        memory_bytes=wanted.memory_bytes.get(device.name, device.memory_bytes),
        flops_per_s=min(MOST, device.flops_per_s * factor),
        memory_bytes_per_s=min(MOST, device.memory_bytes_per_s * factor),
        rates=tuple(Rate(r.dtype, min(MOST, r.flops_per_s * factor)) for r in device.rates),
    )


def _link(link: Link, wanted: Conditions) -> Link:
    ends = (link.src, link.dst)
    latency = wanted.link_latency.get(ends, wanted.latency)
    bandwidth = wanted.link_bandwidth.get(ends, wanted.bandwidth)
    return dataclasses.replace(
        link,
        latency_s=min(MOST, link.latency_s * latency),
        bytes_per_s=min(MOST, max(2 / MOST, link.bytes_per_s * bandwidth)),
    )
