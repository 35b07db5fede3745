"""The linearised dynamic programme (DPL): optimal among the splits into intervals of one order.

Tarnawski et al., "Efficient algorithms for device placement of DNN graph operators", NeurIPS 2020.
Linear in everything but the length of a part, so graphs of 10 000 operators take seconds. Orders
are topological, and what is near in the graph is near in most of them.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from placement.core.graph import Ints
from placement.splits.bounds.loads import plain_bound_s
from placement.splits.exact.ideals import FIRST_SLACK, TINY, best_chain
from placement.splits.exact.table import Chain, Link
from placement.splits.model.contract import Units
from placement.splits.model.instance import csr
from placement.splits.model.placements import Part, call_devices, devices_of_parts
from placement.splits.model.timing import Timing


def best_intervals(
    units: Units, *, num_orders: int, seed: int = 0, most_replicas: int = 1
) -> Chain | None:
    """The best contiguous split into intervals of a few linear orders, None if there is none.

    Up to `most_replicas` accelerators may share a part. Where phases count apart or there are
    clusters, intervals are the parts of chains of the ideals that an order leaves.
    """
    found: Chain | None = None
    rules = units.instance.rules
    bound_s = plain_bound_s(units, most_replicas)
    for order in linear_orders(units.succ_ptr, units.succ, num_orders, seed):
        upper_s = _most_s(units) if found is None else found.load_s
        given = np.array(order, dtype=np.int64)
        if rules.gpipe or rules.has_clusters:
            chain = _of_row(units, given, most_replicas)
        else:
            chain = _of_order(units, given, bound_s, upper_s, most_replicas)
        if chain is not None and (found is None or chain.load_s < found.load_s):
            found = chain
    return found


def _most_s(units: Units) -> float:
    acc = float(units.acc_s[units.on_acc].sum()) + float(units.net_cost_s.sum())
    return max(acc, float(units.cpu_s[units.on_cpu].sum())) * (1.0 + 1e-9)


def _of_row(units: Units, order: Ints, most_replicas: int) -> Chain | None:
    """The best intervals of one order under any rules; its units in a row have few ideals."""
    num = units.num_units
    succ: list[list[int]] = [[] for _ in range(num)]
    for u, v in pairwise(order.tolist()):
        succ[u].append(v)
    succ_ptr, flat = csr(succ)
    in_a_row = replace(units, succ_ptr=succ_ptr, succ=flat)
    found = best_chain(in_a_row, max_ideals=num + 1, most_replicas=most_replicas)
    # What bounds the splits into intervals says nothing of others.
    return found and replace(found, bound_s=np.inf)


def _of_order(
    units: Units, order: Ints, bound_s: float, upper_s: float, most_replicas: int
) -> Chain | None:
    """The best intervals of one order with loads up to `upper_s`, by a rising threshold."""
    from placement.splits.exact.linear_compiled import throughput_intervals

    slack = FIRST_SLACK
    while True:
        cap_s = min(bound_s + slack * max(bound_s, TINY * upper_s), upper_s)
        rules = units.instance.rules
        best, begin = throughput_intervals(
            order, units.arrays, cap_s, most_replicas, rules.overlap, rules.sync_s_per_byte
        )
        if np.isfinite(best[-1]).any() or cap_s >= upper_s:
            break
        slack *= 2.0
    if not np.isfinite(best[-1]).any():
        return None
    a, c = (int(x) for x in np.unravel_index(int(best[-1].argmin()), best[-1].shape))
    load_s, end = float(best[-1, a, c]), len(order)
    parts: list[Part] = []
    links: list[Link] = []
    while end > 0:
        code = int(begin[end, a, c])
        on_cpu = code < 0
        more, start = (0, -1 - code) if on_cpu else divmod(code, len(order) + 1)
        parts.append(Part(on_cpu, order[start:end], 1 + more))
        links.append(Link(order[start:end], best[end].copy(), (a, c)))
        a, c, end = a - (0 if on_cpu else 1 + more), c - on_cpu, start
    devices = devices_of_parts(units, parts[::-1])
    return Chain(*devices, load_s, links=tuple(links[::-1]), num_ideals=len(best))


def latency_parts(timing: Timing, num_orders: int, seed: int = 0) -> Iterator[Ints]:
    """Devices of units for one call per accelerator: intervals of a few linear orders.

    The programme adds up the parts one after another; overlaps only make the sample faster.
    """
    from placement.splits.exact.linear_compiled import latency_intervals

    units = timing.units
    for listed in linear_orders(units.succ_ptr, units.succ, num_orders, seed):
        order = np.array(listed, dtype=np.int64)
        best, begin = latency_intervals(order, units.arrays, timing.nodes)
        if not np.isfinite(best[-1]).any():
            continue
        a, end = int(best[-1].argmin()), len(order)
        parts: list[Part] = []
        while end > 0:
            start = int(begin[end, a])
            on_cpu = start > len(order)
            start -= (len(order) + 1) * on_cpu
            parts.append(Part(on_cpu, order[start:end]))
            a, end = a - (not on_cpu), start
        yield call_devices(units, parts[::-1])


def linear_orders(succ_ptr: Ints, succ: Ints, num: int, seed: int) -> Iterator[list[int]]:
    """Up to `num` topological orders: as numbered, depth first from both ends, then by chance.

    Depth first, a branch is finished before the next one starts, so few values cross the border of
    an interval (the linearisation of Tarnawski et al.).
    """
    after = [succ[a:b].tolist() for a, b in pairwise(succ_ptr.tolist())]
    before: list[list[int]] = [[] for _ in after]
    for u, readers in enumerate(after):
        for v in readers:
            before[v].append(u)
    first = list(range(len(after)))
    random = np.random.default_rng(seed)
    for number in range(num):
        if number == 0:
            yield first
        elif number % 2 == 1:
            yield _depth_first(after, before, first if number == 1 else _shuffled(random, first))
        else:
            keys = first if number == 2 else _shuffled(random, first)
            yield _depth_first(before, after, keys)[::-1]


def _shuffled(random: np.random.Generator, keys: list[int]) -> list[int]:
    return [int(key) for key in random.permutation(np.array(keys, dtype=np.int64))]


def _depth_first(after: list[list[int]], before: list[list[int]], keys: list[int]) -> list[int]:
    """The topological order that always takes the unit that became ready last."""
    waiting = [len(units) for units in before]
    ready = sorted((u for u in range(len(after)) if not waiting[u]), key=lambda u: -keys[u])
    order = []
    while ready:
        u = ready.pop()
        order.append(u)
        for v in sorted(after[u], key=lambda v: -keys[v]):
            waiting[v] -= 1
            if not waiting[v]:
                ready.append(v)
    return order
