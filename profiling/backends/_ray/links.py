"""What a value costs that crosses between hosts: sent from actor to actor, by size.

As in a run a value leaves by a channel to the other host, or by a call where there are none. That
and an answer are timed for sizes from 1 KiB to 4 MiB; the answer is empty, so half of what the
smallest takes is its way back and no part of the hand-over.
"""

from collections.abc import Mapping, Sequence
from statistics import median

from placement.core.machine import Device
from profiling.backends._ray.cluster import Cluster, host_of

SIZES = tuple(1024 * 4**i for i in range(7))
ROUNDS, WARMUP = 12, 3
# What lanes of one host hand over to each other, in s and bytes/s: nothing is copied.
WITHIN = (2e-5, 2e10)
LIMIT_S = 60.0


def link_seconds(cluster: Cluster, source: str, target: str) -> list[float]:
    """Seconds by size from the sender's call to the value's being there."""
    cluster.connect({(source, target): SIZES[-1], (target, source): 0})
    joined = cluster.has_channels(source, target) and cluster.has_channels(target, source)
    actor, rounds, found = None if joined else cluster.workers[target], ROUNDS + WARMUP, []
    for num_bytes in SIZES:
        told = cluster.ask(source, "sent_s", target, actor, num_bytes, rounds, timeout_s=LIMIT_S)
        found.append(median(told[WARMUP:]))
    back_s = found[0] / 2
    return [seconds - back_s for seconds in found]


def link_costs(
    cluster: Cluster, devices: Sequence[Device]
) -> Mapping[tuple[str, str], tuple[float, float]]:
    """Latency in s and bytes per s between all of these devices."""
    from profiling.measuring.links import fit

    hosts = tuple(dict.fromkeys(map(host_of, devices)))
    between = {
        (a, b): fit(SIZES, link_seconds(cluster, a, b)) for a in hosts for b in hosts if a != b
    }
    return {
        (a.name, b.name): between.get((host_of(a), host_of(b)), WITHIN)
        for a in devices
        for b in devices
        if a is not b
    }
