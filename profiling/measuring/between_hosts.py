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
from profiling.backends.base import Carried, Compiled, Program
from profiling.devices.lanes import Lane
from profiling.measuring.reference import release, safe_step
from profiling.measuring.sending import Sending, sending

# Hosts of a cluster are much alike, and each pair takes seconds: so many say what crossing between
# any costs; what is beyond these limits was disturbed.
MOST_PAIRS, RATIOS = 3, (0.5, 8.0)
# Seconds for which hosts compute alone, and together; steps beside which the other did so for a
# larger share than that say how much slower they are, by the percentile of quiet ones. Less than
# the least is noise. Longer steps are not run for it, nor more of them.
ALONE_S, FEWEST_STEPS, MOST_STEPS, MOST_STEP_S = 0.5, 5, 200, 1.0
BESIDE, UNDISTURBED, LEAST_CONTENTION = 0.5, 25, 0.03
# The size of a value that says which part of a link's time is what processors send.
PART_BYTES = 1 << 18
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
    contention: float = 0.0,
) -> Machine:
    """The machine whose links between hosts cost what they do in a step: as many times what
    messages alone take as on average between some pairs of them, and hold up their lanes for shares
    of that. While both compute hosts slow each other by `contention`.
    """
    links = {(link.src, link.dst): link for link in linked.links}
    found: list[Sending] = []
    for a, b in pairs_of(linked):
        tell(f"values between {a.host} and {b.host}")
        both = [links[way] for way in ((a.name, b.name), (b.name, a.name)) if way in links]
        # Each of them runs the whole model, too.
        if len(both) == 2 and holds(a, compiled) and holds(b, compiled):
            latency_s = sum(link.latency_s for link in both) / 2
            s_per_byte = sum(1 / link.bytes_per_s for link in both) / 2
            message = (latency_s, s_per_byte)
            sent = sending(compiled, (a, b), feeds, timeout_s, message, contention)
            found += [] if sent is None else [sent]
    if not found:
        return linked
    ratios = np.clip([each.ratio for each in found], *RATIOS)
    ratio = float(np.exp(np.mean(np.log(ratios))))
    shares = [
        float(np.mean(each)) for each in ([s.send for s in found], [s.receive for s in found])
    ]
    processors = {host: device.name for host, device in _processors(linked).items()}

    def as_sent(link: Link) -> Link:
        """What processors send each other takes longer; what is copied before or after does not,
        and holds nobody up."""
        ends = [linked.device(name) for name in (link.src, link.dst)]
        sent = links.get((processors.get(ends[0].host, ""), processors.get(ends[1].host, "")))
        if sent is None:
            return link
        latency_s = link.latency_s + (ratio - 1) * sent.latency_s
        s_per_byte = 1 / link.bytes_per_s + (ratio - 1) / sent.bytes_per_s
        whole_s = latency_s + PART_BYTES * s_per_byte
        part = min(1.0, ratio * (sent.latency_s + PART_BYTES / sent.bytes_per_s) / whole_s)
        send, receive = (
            float(f"{part * share:.4g}") if end.on_host else 0.0
            for share, end in zip(shares, ends, strict=True)
        )
        return replace(
            link,
            latency_s=latency_s,
            bytes_per_s=1 / s_per_byte,
            send_overhead=send,
            receive_overhead=min(receive, 1.0 - send),
        )

    return replace(linked, links=tuple(map(as_sent, linked.links)))


def contention_between(
    compiled: Compiled, linked: Machine, feeds: Mapping[str, Any], timeout_s: float
) -> float:
    """How much slower the processors of two hosts compute at the same time, 0.1 for a tenth.

    More than nothing where both are on one computer. Costs know one figure for every two devices,
    so it is asked of two hosts of one processor each alone: of more, some may be on other computers
    and would seem to slow each other, too.
    """
    away = backends.elsewhere(linked.devices)
    pair = [d for d in linked.devices if d.on_host and d.name in away]
    names = tuple(op.name for op in compiled.kernels.ops)
    if not names or len(pair) != 2 or len(_processors(linked)) != 2:
        return 0.0
    if not all(holds(device, compiled) for device in pair):
        return 0.0
    programs, lanes = list[Program](), list[Carried]()

    def steps(number: int, seconds: float = ALONE_S) -> list[Stretch]:
        """When a host computed, for a while."""
        until_s, found = time.monotonic() + seconds, list[Stretch]()
        while len(found) < FEWEST_STEPS or (time.monotonic() < until_s and len(found) < MOST_STEPS):
            step = safe_step(lanes[number], programs[number], timeout_s)
            found.append((step.start_s[0], step.end_s[0]))
        return found

    try:
        for device in pair:
            programs.append(compiled.open(Schedule((Segment(device.name, names),)), feeds))
            lanes.append(programs[-1].carried([Lane(device, (0,), ((),))], 1))
        warm = [steps(number, 0.0) for number in (0, 1)]
        if max(end - start for each in warm for start, end in each) > MOST_STEP_S:
            return 0.0
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
