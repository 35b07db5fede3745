"""Linear orders of units: topological, and near in the order what is near in the graph."""

from collections.abc import Iterator

import numpy as np

from placement.splits.model.contract import Units


def linear_orders(units: Units, num: int, seed: int) -> Iterator[list[int]]:
    """Up to `num` topological orders: as declared, depth first from both ends, then by chance.

    Depth first, a branch is finished before the next one starts, so few values cross the border of
    an interval (the linearisation of Tarnawski et al.).
    """
    after = [
        units.succ[units.succ_ptr[u] : units.succ_ptr[u + 1]].tolist()
        for u in range(units.num_units)
    ]
    before: list[list[int]] = [[] for _ in after]
    for u, readers in enumerate(after):
        for v in readers:
            before[v].append(u)
    first = list(range(units.num_units))
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
