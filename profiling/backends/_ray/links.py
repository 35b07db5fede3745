"""What a value costs that crosses between hosts: sent from actor to actor, by size.

As in a run a value leaves by a channel to the other host, or by a call where there are none. That
and an answer are timed for sizes from 1 KiB to 4 MiB; the answer is empty, so half of what the
quickest size takes is its way back and no part of the hand-over.

What leaves a host goes by one network card, and others of one computer may go by the same. So what
takes so long alone is sent again at the same time as others: what then takes as long as all of them
one after the other shares what carries it, and is one channel of the machine.
"""

from collections.abc import Collection, Mapping, Sequence
from statistics import median
from typing import Any

from placement.core.machine import Device
from profiling.backends._ray.cluster import Cluster

SIZES = tuple(1024 * 4**i for i in range(7))
ROUNDS, WARMUP = 12, 3
# What lanes of one host hand over to each other, in s and bytes/s: nothing is copied.
WITHIN = (2e-5, 2e10)
# What nobody tells of a copy to an accelerator and from it, and how its host calls its processor.
COPIED, CPU = (2e-5, 1e10), "cpu:0"
LIMIT_S = 60.0
# Two hosts, from and to.
Way = tuple[str, str]


def link_seconds(cluster: Cluster, source: str, target: str) -> list[float]:
    """Seconds by size from the sender's call to the value's being there."""
    from profiling.measuring.links import one_way_s

    found = []
    cluster.join([(source, target), (target, source)])
    for num_bytes in SIZES:
        asked = {source: _begun(cluster, source, target, num_bytes)}
        found.append(median(cluster.settled(asked, LIMIT_S)[source][WARMUP:]))
    return one_way_s(found)


def link_costs(
    cluster: Cluster, devices: Sequence[Device]
) -> Mapping[tuple[str, str], tuple[float, float]]:
    """Latency in s and bytes per s between all of these devices.

    What an accelerator sends is copied to its host's memory, and goes on from there.
    """
    from profiling.measuring.links import fit

    hosts = tuple(dict.fromkeys(device.host for device in devices))
    ways = [(a, b) for a in hosts for b in hosts if a != b]
    between = {(a, b): fit(SIZES, link_seconds(cluster, a, b)) for a, b in ways}
    away = [d for d in devices if not d.on_host]
    out, back = (
        {d.name: _copy_cost(cluster, d, from_device=is_out) for d in away}
        for is_out in (True, False)
    )
    found = {}
    for a, b in ((a, b) for a in devices for b in devices if a is not b):
        way = a.host, b.host
        legs = [out.get(a.name), between.get(way), back.get(b.name)]
        found[a.name, b.name] = in_turn([leg for leg in legs if leg is not None] or [WITHIN])
    return found


def in_turn(legs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Latency and bytes per s of ways that follow one another.

    >>> in_turn([(1.0, 4.0), (2.0, 4.0)])
    (3.0, 2.0)
    """
    return sum(leg[0] for leg in legs), 1.0 / sum(1.0 / leg[1] for leg in legs)


def _copy_cost(cluster: Cluster, device: Device, *, from_device: bool) -> tuple[float, float]:
    """What a copy costs between an accelerator and the memory of its host."""
    from profiling.measuring.links import fit

    ends = (device.own_name, CPU) if from_device else (CPU, device.own_name)
    told = cluster.ask(device.host, "copy_seconds", *ends, SIZES, timeout_s=LIMIT_S)
    return COPIED if told is None else fit(SIZES, told)


def link_cards(cluster: Cluster, devices: Sequence[Device]) -> Mapping[tuple[str, str], str]:
    """The card of every link between hosts that shares it with another one.

    It is called as its hosts are.
    """
    hosts = tuple(dict.fromkeys(device.host for device in devices))
    ways = [(a, b) for a in hosts for b in hosts if a != b]
    leaving = {a: [way for way in ways if way[0] == a] for a in hosts}
    alone_s = {way: _together_s(cluster, [way]) for way in ways}

    def shares(crossing: Sequence[Way]) -> bool:
        return is_shared(_together_s(cluster, crossing), [alone_s[way] for way in crossing])

    # To one other host two at once, as two lanes send.
    shared = [a for a, own in leaving.items() if own and shares(own * 2 if len(own) < 2 else own)]
    beside = [(a, b) for a in shared for b in shared if a < b and shares([(a, b), (b, a)])]
    return {
        (a.name, b.name): card
        for card, members in cards_of(shared, beside).items()
        for a in devices
        for b in devices
        if a.host in members and b.host != a.host
    }


def is_shared(together_s: float, alone_s: Sequence[float]) -> bool:
    """Whether some messages at the same time take rather their sum than as long as the longest.

    >>> is_shared(2.1, (1.0, 1.0)), is_shared(1.2, (1.0, 1.0)), is_shared(2.0, (2.0, 0.5))
    (True, False, False)
    """
    return together_s > (sum(alone_s) + max(alone_s)) / 2


def cards_of(shared: Sequence[str], beside: Collection[Way]) -> Mapping[str, Collection[str]]:
    """The hosts of every card: those that are `beside` each other have one.

    >>> cards_of(("a", "b", "c"), [("a", "c")])
    {'a and c': ('a', 'c'), 'b': ('b',)}
    """
    first = {host: host for host in shared}
    for a, b in beside:
        old, new = first[b], first[a]
        first = {host: new if card == old else card for host, card in first.items()}
    members = {card: tuple(h for h in shared if first[h] == card) for card in first.values()}
    return {" and ".join(hosts): hosts for hosts in members.values()}


def _together_s(cluster: Cluster, ways: Sequence[Way]) -> float:
    """Seconds that the largest messages take by these ways at the same time."""
    cluster.join(way for a, b in ways for way in ((a, b), (b, a)))
    asked = [(a, _begun(cluster, a, b, SIZES[-1])) for a, b in ways]
    told = [cluster.settled({host: ref}, LIMIT_S)[host] for host, ref in asked]
    return max(float(median(each[WARMUP:])) for each in told)


def _begun(cluster: Cluster, source: str, target: str, num_bytes: int) -> Any:
    """Some rounds of sending, begun, as values go there in a run."""
    actor = None if cluster.has_channel(source, target) else cluster.workers[target]
    return cluster.begin(source, "sent_s", target, actor, num_bytes, ROUNDS + WARMUP)
