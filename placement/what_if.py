"""What if the machine were another: the same problem with faster, slower or smaller parts.

Everything under such conditions is computed; nothing of it can be measured.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from placement.core.machine import MOST, Device, Link, Machine
from placement.core.problem import Problem


@dataclass(frozen=True)
class Conditions:
    """Factors on a machine: 2 is twice as much, 0.5 half as much; what is not named stays.

    `speed` by device: at half speed it takes twice as long for all that it computes and for each
    call. `bandwidth` and `latency` are of all links: with bandwidth 2 a byte takes half as long,
    with latency 2 the delay before the first one is twice as long. `memory_bytes` by device is its
    limit, None for no limit.
    """

    speed: Mapping[str, float] = field(default_factory=dict)
    bandwidth: float = 1.0
    latency: float = 1.0
    memory_bytes: Mapping[str, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        factors = {f"speed of {name!r}": value for name, value in self.speed.items()}
        factors |= {"bandwidth of links": self.bandwidth, "latency of links": self.latency}
        for what, value in factors.items():
            if not 1 / MOST <= value <= MOST:
                raise ValueError(f"The factor on the {what} is {value}; use more than zero.")
        for name, limit in self.memory_bytes.items():
            if limit is not None and not 0 <= limit <= MOST:
                raise ValueError(
                    f"The memory limit of {name!r} is {limit}; use a number of bytes, or none."
                )
        object.__setattr__(self, "speed", MappingProxyType(dict(self.speed)))
        object.__setattr__(self, "memory_bytes", MappingProxyType(dict(self.memory_bytes)))

    def to_json(self) -> dict[str, Any]:
        return {
            "speed": dict(self.speed),
            "bandwidth": self.bandwidth,
            "latency": self.latency,
            "memory_bytes": dict(self.memory_bytes),
        }


UNCHANGED = Conditions()


def conditions_from_json(content: Any) -> Conditions:
    """Conditions from their JSON object; a ValueError where the object is not understood."""
    try:
        speed = {str(name): float(value) for name, value in content.get("speed", {}).items()}
        bandwidth, latency = (float(content.get(key, 1.0)) for key in ("bandwidth", "latency"))
        limits = {
            str(name): None if limit is None else int(limit)
            for name, limit in content.get("memory_bytes", {}).items()
        }
    except (AttributeError, TypeError, ValueError, OverflowError):
        raise ValueError("The what-if conditions are not understood; set them anew.") from None
    return Conditions(speed, bandwidth, latency, limits)


def changes(machine: Machine, conditions: Conditions) -> Conditions:
    """The conditions without those that leave the machine as it is.

    A ValueError names a device that the machine does not have.
    """
    for name in (*conditions.speed, *conditions.memory_bytes):
        machine.device(name)
    return Conditions(
        {name: factor for name, factor in conditions.speed.items() if factor != 1.0},
        conditions.bandwidth,
        conditions.latency,
        {
            name: limit
            for name, limit in conditions.memory_bytes.items()
            if limit != machine.device(name).memory_bytes
        },
    )


def what_if(problem: Problem, conditions: Conditions) -> Problem:
    """The problem on the machine under these conditions; itself where they change nothing.

    Times that were measured are so no more. Unsupported pairs stay unsupported, and how much
    devices slow each other by sharing memory stays as it is.
    """
    wanted = changes(problem.machine, conditions)
    if wanted == UNCHANGED:
        return problem
    costs = problem.costs
    slower = np.array([1.0 / wanted.speed.get(d.name, 1.0) for d in problem.machine.devices])
    same_times = not wanted.speed and wanted.bandwidth == wanted.latency == 1.0
    measured = costs.origin == "measured"
    changed = dataclasses.replace(
        costs,
        compute_s=costs.compute_s * slower,
        call_s=costs.call_s * slower,
        latency_s=costs.latency_s * wanted.latency,
        s_per_byte=costs.s_per_byte / wanted.bandwidth,
        origin="given" if measured and not same_times else costs.origin,
    )
    return dataclasses.replace(problem, machine=_machine(problem.machine, wanted), costs=changed)


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
    )


def _link(link: Link, wanted: Conditions) -> Link:
    return dataclasses.replace(
        link,
        latency_s=min(MOST, link.latency_s * wanted.latency),
        bytes_per_s=min(MOST, max(2 / MOST, link.bytes_per_s * wanted.bandwidth)),
    )
