"""The machine that a cluster is: the CPU of each host in lanes, then the accelerators of all."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from placement.core.machine import Device, Link, Machine
from profiling.backends._ray.hosts import STUDIO, Facts, accelerators_of
from profiling.backends.base import NOMINAL
from profiling.devices.cores import split

# Latency in s and bytes/s of links inside a host and between hosts.
_WITHIN = (30e-6, 20e9)
_BETWEEN = (5e-4, 1e9)
_NOTE = "Link figures between hosts are nominal until a model is measured there."


def machine_of(name: str, facts: Mapping[str, Facts], lanes: int = 1) -> Machine:
    """The machine of hosts (by name) of the same versions, each as so many lanes where it has as
    many cores."""
    devices = tuple(
        _lane(host, number, cores, told, _num_beside(told, facts))
        for host, told in facts.items()
        for number, cores in enumerate(
            split(tuple(range(told.num_cores)), min(lanes, told.num_cores))
        )
    )
    devices += tuple(
        replace(device, name=f"{host}/{device.name}", runtime="ray")
        for host, device in accelerators_of(facts)
    )
    links = tuple(
        Link(a.name, b.name, *_WITHIN)
        if a.host == b.host
        # A computer has one network card, until it is measured to have more or to share it.
        else Link(a.name, b.name, *_BETWEEN, card=a.host)
        for a in devices
        for b in devices
        if a is not b
    )
    versions = next(iter(facts.values())).versions
    libraries = tuple(row for row in versions if row[0] != STUDIO)
    return Machine(name, devices, links, libraries, _NOTE)


def _num_beside(told: Facts, facts: Mapping[str, Facts]) -> int:
    """How many hosts are on the computer of one, itself included."""
    return sum(
        each is told or bool(each.boot and each.boot == told.boot) for each in facts.values()
    )


def _lane(host: str, number: int, cores: Sequence[int], facts: Facts, num_beside: int) -> Device:
    """Some cores of a host, with their share of what so many hosts on one computer have."""
    flops_per_s, memory_bytes_per_s = NOMINAL["cpu"]
    return Device(
        name=f"{host}/cpu:{number}",
        kind="cpu",
        runtime="ray",
        provider="cpu",
        memory_bytes=facts.memory_bytes * len(cores) // (facts.num_cores * num_beside),
        cores=len(cores),
        flops_per_s=flops_per_s * len(cores),
        memory_bytes_per_s=memory_bytes_per_s * len(cores),
        label=facts.label,
    )
