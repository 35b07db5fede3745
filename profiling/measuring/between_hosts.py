"""What crosses between hosts in a step, beside what messages between them take alone.

The threads that carry values share the cores with the lanes, so both are slower together. The
model's own kernels cross between some pairs of hosts and say how many times as long it takes.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from placement.core.machine import Device, Link, Machine
from profiling import backends
from profiling.backends.base import Compiled
from profiling.measuring.crossings import sending_ratio

# Hosts of a cluster are much alike, and each pair takes seconds: so many say what crossing between
# any costs; what is beyond these limits was disturbed.
MOST_PAIRS, RATIOS = 3, (0.5, 8.0)


def pairs_of(machine: Machine) -> list[tuple[Device, Device]]:
    """Processors of other hosts, two by two, that say what crossing between hosts costs."""
    return list(itertools.islice(itertools.pairwise(_processors(machine).values()), MOST_PAIRS))


def between_hosts(
    linked: Machine,
    compiled: Compiled,
    feeds: Mapping[str, Any],
    timeout_s: float,
    tell: Callable[[str], object],
) -> Machine:
    """The machine whose links between hosts cost what they do in a step: as many times what
    messages alone take as on average between some pairs of them.
    """
    links = {(link.src, link.dst): link for link in linked.links}
    ratios = []
    for a, b in pairs_of(linked):
        tell(f"values between {a.host} and {b.host}")
        both = [links[way] for way in ((a.name, b.name), (b.name, a.name)) if way in links]
        # Each of them runs the whole model, too.
        if len(both) == 2 and holds(a, compiled) and holds(b, compiled):
            latency_s = sum(link.latency_s for link in both) / 2
            s_per_byte = sum(1 / link.bytes_per_s for link in both) / 2
            found = sending_ratio(compiled, (a, b), feeds, timeout_s, (latency_s, s_per_byte))
            ratios += [] if found is None else [found]
    if not ratios:
        return linked
    ratio = float(np.exp(np.mean(np.log(np.clip(ratios, *RATIOS)))))
    processors = {host: device.name for host, device in _processors(linked).items()}

    def as_sent(link: Link) -> Link:
        """What processors send each other takes longer; what is copied before or after does not."""
        hosts = [linked.device(name).host for name in (link.src, link.dst)]
        sent = links.get((processors.get(hosts[0], ""), processors.get(hosts[1], "")))
        if sent is None:
            return link
        latency_s = link.latency_s + (ratio - 1) * sent.latency_s
        s_per_byte = 1 / link.bytes_per_s + (ratio - 1) / sent.bytes_per_s
        return replace(link, latency_s=latency_s, bytes_per_s=1 / s_per_byte)

    return replace(linked, links=tuple(map(as_sent, linked.links)))


def holds(device: Device, compiled: Compiled) -> bool:
    """Whether its memory can hold the weights."""
    return device.memory_bytes is None or compiled.kernels.param_bytes <= device.memory_bytes


def _processors(machine: Machine) -> dict[str, Device]:
    """The first processor of every other host."""
    away = backends.elsewhere(machine.devices)
    first: dict[str, Device] = {}
    for device in machine.devices:
        if device.on_host and device.name in away:
            first.setdefault(device.host, device)
    return first
