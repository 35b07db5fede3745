"""What crosses between hosts in a step, beside what messages between them take alone.

The threads that carry values share the cores with the lanes, so both are slower together. The
model's own kernels cross between some pairs of hosts and say how many times as long it takes.
"""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from placement.core.machine import Device, Link, Machine
from placement.core.schedule import Schedule, Segment
from profiling import backends
from profiling.backends.base import Compiled
from profiling.devices.lanes import Lane
from profiling.measuring.crossings import sending
from profiling.measuring.reference import release

# Hosts of a cluster are much alike, and each pair takes seconds: so many say what crossing between
# any costs; what is beyond these limits was disturbed.
MOST_PAIRS, RATIOS = 3, (0.5, 8.0)
# Seconds for which hosts compute alone, and together; steps beside which the other did so for a
# larger share than that say how much slower they are, by the percentile of quiet ones. Less than
# the least is nothing, for there may be many hosts.
ALONE_S, FEWEST_STEPS, BESIDE, UNDISTURBED, LEAST_CONTENTION = 0.5, 5, 0.5, 25, 0.03
Stretch = tuple[float, float]


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
    messages alone take as on average between some pairs of them, of which a share is the sender's.
    """
    links = {(link.src, link.dst): link for link in linked.links}
    ratios, shares = list[float](), list[float]()
    for a, b in pairs_of(linked):
        tell(f"values between {a.host} and {b.host}")
        both = [links[way] for way in ((a.name, b.name), (b.name, a.name)) if way in links]
        # Each of them runs the whole model, too.
        if len(both) == 2 and holds(a, compiled) and holds(b, compiled):
            latency_s = sum(link.latency_s for link in both) / 2
            s_per_byte = sum(1 / link.bytes_per_s for link in both) / 2
            found = sending(compiled, (a, b), feeds, timeout_s, (latency_s, s_per_byte))
            if found is not None:
                ratios.append(found.ratio)
                shares.append(found.share)
    if not ratios:
        return linked
    ratio = float(np.exp(np.mean(np.log(np.clip(ratios, *RATIOS)))))
    share = float(np.mean(shares))
    processors = {host: device.name for host, device in _processors(linked).items()}

    def as_sent(link: Link) -> Link:
        """What processors send each other takes longer; what is copied before or after does not."""
        hosts = [linked.device(name).host for name in (link.src, link.dst)]
        sent = links.get((processors.get(hosts[0], ""), processors.get(hosts[1], "")))
        if sent is None:
            return link
        latency_s = link.latency_s + (ratio - 1) * sent.latency_s
        s_per_byte = 1 / link.bytes_per_s + (ratio - 1) / sent.bytes_per_s
        # What is copied before or after holds nobody up.
        part = share * min(1.0, ratio * sent.latency_s / latency_s) if latency_s > 0 else 0.0
        overhead = float(f"{part:.4g}") if linked.device(link.src).on_host else 0.0
        return replace(
            link, latency_s=latency_s, bytes_per_s=1 / s_per_byte, send_overhead=overhead
        )

    return replace(linked, links=tuple(map(as_sent, linked.links)))


def contention_between(
    compiled: Compiled, linked: Machine, feeds: Mapping[str, Any], timeout_s: float
) -> float:
    """How much slower processors of two hosts compute at the same time, 0.1 for a tenth.

    More than nothing where both hosts are on one computer. Costs know one figure for every two
    devices, so it is nothing where hosts have several processors each, for those of other
    computers would seem to slow each other too.
    """
    processors, away = _processors(linked), backends.elsewhere(linked.devices)
    num_lanes = sum(device.on_host and device.name in away for device in linked.devices)
    pair, names = list(processors.values())[:2], tuple(op.name for op in compiled.kernels.ops)
    each_one = len(pair) == 2 and num_lanes == len(processors)
    if not (names and each_one and all(holds(device, compiled) for device in pair)):
        return 0.0
    programs = [compiled.open(Schedule((Segment(d.name, names),)), feeds) for d in pair]
    lanes = [
        program.carried([Lane(device, (0,), ((),))], 1)
        for device, program in zip(pair, programs, strict=True)
    ]

    def steps(number: int, seconds: float = ALONE_S) -> list[Stretch]:
        """When a host computed, for a while."""
        until_s, found = time.monotonic() + seconds, list[Stretch]()
        while time.monotonic() < until_s or len(found) < FEWEST_STEPS:
            step = lanes[number].step(timeout_s)
            found.append((step.start_s[0], step.end_s[0]))
        return found

    try:
        for number in (0, 1):
            steps(number, 0.0)
        alone = [steps(number) for number in (0, 1)]
        with ThreadPoolExecutor(2) as pool:
            together = list(pool.map(steps, (0, 1)))
    finally:
        release(programs, lanes)
    found = slowed(alone, together)
    return found if found >= LEAST_CONTENTION else 0.0


def slowed(alone: Sequence[Sequence[Stretch]], together: Sequence[Sequence[Stretch]]) -> float:
    """How much slower two devices are while the other computes, by steps of each, (start, end) in
    seconds, alone and while both were asked for one after another.

    Between its steps a device waits to be asked, so what a step takes longer is held against the
    time for which the other computed beside it.

    >>> slowed([[(0, 10)], [(0, 10)]], [[(0, 11)], [(0, 11)]])
    0.1
    """
    found = []
    for own, other, by_itself in zip(together, reversed(together), alone, strict=True):
        usual_s = float(np.percentile([end - start for start, end in by_itself], UNDISTURBED))
        for start, end in own:
            overlaps = (min(end, until) - max(start, since) for since, until in other)
            both_s = sum(overlap_s for overlap_s in overlaps if overlap_s > 0)
            if both_s > BESIDE * (end - start):
                lost = min(0.9, (end - start - usual_s) / both_s)
                found.append(lost / (1 - lost))
    return max(0.0, round(float(np.percentile(found, UNDISTURBED)), 4)) if found else 0.0


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
