"""Units in a row, so that few nets cross any place: what a sweep over single parts walks along.

A part is found unit by unit, in or out. All that matters of the units before a place is what they
made of the nets that cross it: all in so far, all out, or both, which is paid. Networks are long
and narrow, so that these states are few (Bodlaender, "A tourist guide through treewidth", 1993).
A unit with nets to everywhere stands in front: whether it is in tells so much of all of its nets
that they count as if they began at their next units. Where states are many nevertheless, nets are
left out, cheap ones first, which makes no load larger.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.model.contract import Units
from placement.splits.model.instance import Bools

# Starts of rows that are tried, fewer for many units.
STARTS, MOST_WALKED = 12, 6_000
# Nets over one place, and states over all places, beyond which nets are left out.
MAX_OPEN, MAX_STATES = 9, 120_000
OUT, IN, BOTH = 0, 1, 2
# Units that may stand in front of the row, and how many are tried for each.
MOST_HUBS, HUBS_TRIED = 4, 3
# A sweep holds many, so they are short.
Labels = NDArray[np.int32]


class RowArrays(NamedTuple):
    """Units (U) in their order, and states by place: those of place i are `first[i]:first[i + 1]`.

    `after` (S, 2) is the state that follows where the unit there stays out or gets in, counted from
    the first state of the next place, `paid_s` (S, 2) what nets then cost.
    """

    order: Ints
    work_s: Floats
    may: Bools
    first: Ints
    after: Ints
    paid_s: Floats


def row_of_accelerator(units: Units) -> RowArrays:
    """The parts that an accelerator can hold; its memory is not looked at."""
    order, nets = _narrow(_nets_of(units))
    first, after, paid_s = _states(nets, order)
    while len(after) > MAX_STATES:
        nets = nets.without(_cheapest_open(nets, order, int(np.diff(first).argmax())))
        first, after, paid_s = _states(nets, order)
    return _row(order, units.acc_s, units.on_acc, first, after, paid_s)


def narrow_order(units: Units) -> Ints:
    """Units in an order in which few nets cross any place, (U,)."""
    order, _ = _narrow(_nets_of(units))
    return np.array(order, dtype=np.int64)


def row_of_cpu(units: Units) -> RowArrays:
    """The parts that a CPU can hold: nothing is paid."""
    order = list(range(units.num_units))
    return _row(order, units.cpu_s, units.on_cpu, *_states(_Nets(len(order), [], []), order))


def _row(
    order: list[int], work_s: Floats, may: Bools, first: Ints, after: Ints, paid_s: Floats
) -> RowArrays:
    return RowArrays(np.array(order, dtype=np.int64), work_s, may, first, after, paid_s)


@dataclass(frozen=True)
class _Nets:
    """Nets as lists of units, their costs, and the nets of each unit."""

    num_units: int
    pins: list[list[int]]
    cost_s: list[float]

    def of_units(self) -> list[list[int]]:
        rows: list[list[int]] = [[] for _ in range(self.num_units)]
        for net, pins in enumerate(self.pins):
            for u in pins:
                rows[u].append(net)
        return rows

    def without(self, net: int) -> "_Nets":
        pins, cost_s = list(self.pins), list(self.cost_s)
        pins[net], cost_s[net] = [], 0.0
        return _Nets(self.num_units, pins, cost_s)

    def without_unit(self, u: int) -> "_Nets":
        pins = [[v for v in net if v != u] for net in self.pins]
        return _Nets(self.num_units, pins, self.cost_s)

    def busiest(self, num: int) -> list[int]:
        """Some units with the most nets that have other units, too."""
        nets = [sum(len(self.pins[net]) > 1 for net in row) for row in self.of_units()]
        return sorted(range(self.num_units), key=lambda u: (-nets[u], u))[:num]

    def num_open(self, order: list[int]) -> Ints:
        """How many nets cross the place behind each unit of an order, (U,)."""
        place = np.argsort(order)
        steps = np.zeros(self.num_units + 1, dtype=np.int64)
        for pins in self.pins:
            if pins:
                places = place[pins]
                steps[places.min()] += 1
                steps[places.max()] -= 1
        return np.cumsum(steps)[:-1]

    def num_states(self, order: list[int]) -> float:
        """States in all places if each net across a place has two."""
        return float((2.0 ** self.num_open(order)).sum())


def _nets_of(units: Units) -> _Nets:
    cost_s = units.net_cost_s.tolist()
    pins = [p.tolist() for p in np.split(units.net_units, units.net_ptr[1:-1])] if cost_s else []
    return _Nets(units.num_units, pins, cost_s)


def _narrow(nets: _Nets) -> tuple[list[int], _Nets]:
    """The order with the fewest states by a rough count, and the nets that it keeps."""
    rest, hubs = nets, list[int]()
    order, states = _best_order(rest)
    while len(hubs) < MOST_HUBS and nets.num_units <= MOST_WALKED:
        # A row from the same start tells which one helps most.
        tried = []
        for hub in rest.busiest(HUBS_TRIED):
            fewer = rest.without_unit(hub)
            tried.append((fewer.num_states(_order_from(fewer, order[0])), hub, fewer))
        _, hub, fewer = min(tried, key=lambda one: one[:2])
        order_then, states_then = _best_order(fewer)
        # Each unit in front makes twice as many states.
        if 2.0 * states_then >= states:
            break
        order, states, rest = order_then, states_then, fewer
        hubs.append(hub)
    order = [*hubs, *(u for u in order if u not in hubs)]
    while int((width := rest.num_open(order)).max(initial=0)) > MAX_OPEN:
        net = _cheapest_open(rest, order, int(width.argmax()) + 1)
        nets, rest = nets.without(net), rest.without(net)
    return order, nets


def _best_order(nets: _Nets) -> tuple[list[int], float]:
    """The best of some orders, and the states that it has if each net across a place has two."""
    num_starts = max(1, min(STARTS, MOST_WALKED // nets.num_units))
    stride = max(1, nets.num_units // num_starts)
    orders = [_order_from(nets, start) for start in range(0, nets.num_units, stride)]
    states = [nets.num_states(order) for order in orders]
    best = min(range(len(orders)), key=lambda i: (states[i], i))
    return orders[best], states[best]


def _cheapest_open(nets: _Nets, order: list[int], place: int) -> int:
    """The net that costs least of those with units before a place and from there on."""
    before = set(order[:place])
    crossing = [
        net
        for net, pins in enumerate(nets.pins)
        if pins and 0 < sum(u in before for u in pins) < len(pins)
    ]
    return min(crossing, key=lambda net: (nets.cost_s[net], net))


def _order_from(nets: _Nets, start: int) -> list[int]:
    """Units from one on, each next one so that the fewest nets are open, the latest seen first."""
    nets_of = nets.of_units()
    left = [len(pins) for pins in nets.pins]
    is_open = [False] * len(left)
    near: dict[int, int] = {}
    rest = dict.fromkeys(range(nets.num_units))
    order = [start]
    while True:
        u = order[-1]
        del rest[u]
        near.pop(u, None)
        for net in nets_of[u]:
            left[net] -= 1
            if not is_open[net] or len(nets.pins[net]) < 8:
                near.update((v, len(order)) for v in nets.pins[net] if v in rest)
            is_open[net] = True
        if not rest:
            return order
        if not near:
            order.append(next(iter(rest)))
            continue

        def opens(v: int) -> tuple[int, int, int]:
            more = 0
            for net in nets_of[v]:
                more += -1 if is_open[net] and left[net] == 1 else not is_open[net]
            return more, -near[v], v

        order.append(min(near, key=opens))


def _states(nets: _Nets, order: list[int]) -> tuple[Ints, Ints, Floats]:
    """States by place as `RowArrays` has them."""
    nets_of = nets.of_units()
    left = [len(pins) for pins in nets.pins]
    states: list[tuple[tuple[int, int], ...]] = [()]
    first, after, paid_s = [0], [], []
    for u in order:
        for net in nets_of[u]:
            left[net] -= 1
        following: dict[tuple[tuple[int, int], ...], int] = {}
        for state in states:
            pair = []
            for choice in (OUT, IN):
                now, cost_s = dict(state), 0.0
                for net in nets_of[u]:
                    so_far = now.get(net, choice)
                    if so_far != choice and so_far != BOTH:
                        cost_s += nets.cost_s[net]
                        so_far = BOTH
                    now[net] = so_far
                    if left[net] == 0:
                        del now[net]
                key = tuple(sorted(now.items()))
                pair.append((following.setdefault(key, len(following)), cost_s))
            after.append([number for number, _ in pair])
            paid_s.append([cost_s for _, cost_s in pair])
        first.append(len(after))
        states = list(following)
    return (
        np.array([*first, first[-1] + 1], dtype=np.int64),
        np.array(after, dtype=np.int64),
        np.array(paid_s, dtype=np.float64),
    )
