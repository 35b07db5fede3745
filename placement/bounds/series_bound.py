"""Parts of a graph that follow one another add up: a bound over blocks in series, within memory.

Where every kernel of one set comes before every kernel of another, no step does both at once. So
the kernels are divided into blocks in series, as the layers of a model are, and a step takes at
least as long as all blocks together, each for itself: at least its longest path, and at least its
work shared among devices, of which one that streams weights and its accelerator are one. Weights
that lie in an accelerator take room there. With a price on room, z seconds for a byte, every
placement within memory takes at least

    the sum over blocks of the least of (seconds of the block + z * bytes that lie), minus z * room

whatever the price is (Fisher, "The Lagrangian relaxation method for solving integer programming
problems", Management Science 27, 1981). Kernels that are left out only make the bound smaller, and
so those are that many others may run beside, as what writes a cache that nobody reads: they would
join blocks.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from placement.bounds.memory_bound import leaving
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.problem import Problem
from placement.simulator.alike import Classes, numbered

MOST_KERNELS = 12_000
# Kernels are left out that so many others may run beside.
BESIDE = (1_000, 200, 50)
NUM_PRICES = 12
# Entries of the table of costs that may be visited for all prices together, and rounds for one.
MOST_VISITED, MOST_ROUNDS = 20_000_000, 40


def series_bound_s(problem: Problem) -> float:
    """Seconds of a step that no placement within memory can beat."""
    num_kernels = len(problem.kernels.ops)
    if not 0 < num_kernels <= MOST_KERNELS:
        return 0.0
    ways = _ways(problem)
    before, num_beside = _comparable(problem)
    best_s, tried = 0.0, set[int]()
    for most in BESIDE:
        members = np.flatnonzero(num_beside <= most)
        if members.size and members.size not in tried:
            tried.add(members.size)
            block = _blocks(members.tolist(), before)
            best_s = max(best_s, _bound_s(problem, ways, members, block))
    return best_s


@dataclass(frozen=True, eq=False)
class _Ways:
    """Ways to run kernels (W): least seconds (K, W), the class of engines of which each keeps one
    busy, and whether weights lie in accelerators, which have so much `room` together.

    Engines with equal ways are a class (C), `sizes` (C,) are their numbers; they share work evenly.
    """

    seconds: Floats
    engine: Ints
    sizes: Ints
    lies: Ints
    room: float

    def total(self, values: Floats) -> Floats:
        """Sums (B, 1) over all engines of values (B, C) of each of a class."""
        return np.asarray((values * self.sizes).sum(axis=1, keepdims=True), dtype=np.float64)


def _ways(problem: Problem) -> _Ways:
    machine = problem.machine
    places, limits = machine.places, machine.limit_bytes
    on_host = np.array([d.on_host for d in machine.devices])
    lies = ~on_host[places.weights] & np.isfinite(limits[places.weights])
    allowed = problem.allowed[problem.unit_of_kernel]
    seconds = np.where(allowed, problem.costs.compute_s, np.inf)
    pairs = np.stack([places.engine, lies], axis=1)
    kinds, which = np.unique(pairs, axis=0, return_inverse=True)
    least = np.full((len(seconds), len(kinds)), np.inf)
    np.minimum.at(least.T, which.ravel(), seconds.T)
    room = float(limits[np.unique(places.weights[lies])].sum()) if lies.any() else 0.0
    engine = np.unique(kinds[:, 0], return_inverse=True)[1].ravel()
    alike = _alike_engines(least, engine, kinds[:, 1])
    kept = np.flatnonzero(np.isin(engine, alike.first))
    return _Ways(
        least[:, kept],
        alike.of_device[engine[kept]],
        alike.sizes,
        kinds[kept, 1].astype(np.int64),
        room,
    )


def _alike_engines(least_s: Floats, engine: Ints, lies: Ints) -> Classes:
    """Classes of engines that have equal ways (K, W), which are in order of their engines (W,)."""
    ways: list[list[tuple[int, bytes]]] = [[] for _ in range(int(engine.max()) + 1)]
    columns = np.ascontiguousarray(least_s.T)
    for e, where, column in zip(engine.tolist(), lies.tolist(), columns, strict=True):
        ways[e].append((int(where), column.tobytes()))
    return numbered(map(tuple, ways))


def _comparable(problem: Problem) -> tuple[list[int], Ints]:
    """By kernel (K) those that come before it, as bits, and how many may run beside it."""
    successors = problem.kernels.successors
    num = len(successors)
    before, after = [0] * num, [0] * num
    for k, readers in enumerate(successors):
        mine = before[k] | 1 << k
        for r in readers:
            before[r] |= mine
    for k in reversed(range(num)):
        for r in successors[k]:
            after[k] |= after[r] | 1 << r
    known = [a.bit_count() + b.bit_count() + 1 for a, b in zip(before, after, strict=True)]
    return before, num - np.array(known, dtype=np.int64)


def _blocks(members: list[int], before: list[int]) -> Ints:
    """The block of each member: a border lies where all behind come after all before it."""
    behind, common = [0] * len(members), -1
    for i in reversed(range(len(members))):
        common &= before[members[i]]
        behind[i] = common
    block, number, ahead = [], 0, 0
    for i, k in enumerate(members):
        if i and not ahead & ~behind[i]:
            number += 1
        block.append(number)
        ahead |= 1 << k
    return np.array(block, dtype=np.int64)


def _bound_s(problem: Problem, ways: _Ways, members: Ints, block: Ints) -> float:
    seconds = ways.seconds[members]
    num_bytes = _bytes(problem, ways, members)
    edges = list(_edges(problem, members, block))
    best_s, shares = 0.0, _even(ways, int(block[-1]) + 1)
    prices = _prices(ways, seconds, num_bytes)
    visited = seconds.size * len(prices)
    num_rounds = min(MOST_ROUNDS, max(3, MOST_VISITED // max(1, visited)))
    for price in prices:
        rent_s = price * num_bytes[:, None] * ways.lies
        least = np.maximum.reduceat(
            _paths_s(np.min(seconds + rent_s, axis=1), edges), _starts(block)
        )
        for number in range(num_rounds):
            work_s, loads = _work_s(ways, seconds, rent_s, shares, block)
            least = np.maximum(least, work_s)
            if ways.sizes.size == 1:
                break
            # Engines that get too much of a block's work become dearer.
            most = np.maximum(loads.max(axis=1, keepdims=True), 1e-300)
            step = 0.7 / np.sqrt(1.0 + number)
            mean = ways.total(loads) / ways.sizes.sum()
            shares = shares * np.exp(step * (loads - mean) / most)
            shares = np.maximum(shares / ways.total(shares), 1e-9)
            shares /= ways.total(shares)
        best_s = max(best_s, float(least.sum()) - price * ways.room)
    return best_s


def _bytes(problem: Problem, ways: _Ways, members: Ints) -> Floats:
    """Weights and state (M,), of kernels that move together with those that lose most elsewhere.

    All of a unit lies where it lies, so its bytes may be counted at any of its kernels.
    """
    unit = problem.unit_of_kernel[members]
    total = np.zeros(problem.num_units)
    np.add.at(total, problem.unit_of_kernel, problem.kernels.arrays.resident_bytes)
    near_s, far_s = _near_and_far(ways, ways.seconds[members])
    with np.errstate(invalid="ignore"):
        loss_s = np.nan_to_num(np.maximum(0.0, far_s - near_s), posinf=0.0)
    # Where nothing is lost all of them count alike.
    lost = np.bincount(unit, loss_s, problem.num_units)[unit]
    alike = 1.0 / np.bincount(unit, minlength=problem.num_units)[unit]
    part = np.divide(loss_s, lost, out=alike, where=lost > 0.0)
    return np.asarray(total[unit] * part, dtype=np.float64)


def _near_and_far(ways: _Ways, seconds: Floats) -> tuple[Floats, Floats]:
    """Least seconds of kernels where weights lie in an accelerator, and anywhere else."""
    lies = ways.lies.astype(np.bool_)
    near_s = seconds[:, lies].min(axis=1, initial=np.inf)
    return near_s, seconds[:, ~lies].min(axis=1, initial=np.inf)


def _starts(block: Ints) -> Ints:
    return np.flatnonzero(np.diff(block, prepend=-1))


def _even(ways: _Ways, num_blocks: int) -> Floats:
    """Shares (B, C) of each engine of a class: the seconds of every engine count alike."""
    return np.full((num_blocks, ways.sizes.size), 1.0 / int(ways.sizes.sum()))


def _work_s(
    ways: _Ways, seconds: Floats, rent_s: Floats, shares: Floats, block: Ints
) -> tuple[Floats, Floats]:
    """By block the least of its work and its rent, with shares (B, C) of the seconds of engines.

    Its most loaded engine takes at least the mean that is weighted by the shares, which are
    positive with a sum of 1 over all engines. Also the seconds (B, C) that each engine gets.
    """
    cost = shares[block][:, ways.engine] * seconds + rent_s
    chosen = cost.argmin(axis=1)
    rows = np.arange(chosen.size)
    num_blocks, num_classes = shares.shape
    work_s = np.bincount(block, cost[rows, chosen], num_blocks)
    slot = block * num_classes + ways.engine[chosen]
    loads: Floats = np.zeros(shares.size)
    loads += np.bincount(slot, seconds[rows, chosen], shares.size)
    return np.asarray(work_s, dtype=np.float64), loads.reshape(shares.shape) / ways.sizes


def _edges(problem: Problem, members: Ints, block: Ints) -> Iterator[tuple[int, int]]:
    """Members that read what another of their block makes, by number, in order of the makers."""
    place = {int(k): i for i, k in enumerate(members)}
    for i, k in enumerate(members.tolist()):
        for r in problem.kernels.successors[k]:
            j = place.get(r, -1)
            if j >= 0 and block[i] == block[j]:
                yield i, j


def _paths_s(kernel_s: Floats, edges: list[tuple[int, int]]) -> Floats:
    """Longest path inside of its block up to each member."""
    ends: list[float] = kernel_s.tolist()
    own = list(ends)
    for i, j in edges:
        ends[j] = max(ends[j], ends[i] + own[j])
    return np.array(ends)


def _prices(ways: _Ways, seconds: Floats, num_bytes: Floats) -> list[float]:
    """Prices at which as much as exceeds all room leaves for other ways, and others around it."""
    lies = ways.lies.astype(np.bool_)
    excess = float(num_bytes.sum()) - ways.room
    if not lies.any() or excess <= 0.0:
        return [0.0]
    price, left = leaving(*_near_and_far(ways, seconds), num_bytes)
    if not price.size:
        return [0.0]
    middle = float(price[min(int(np.searchsorted(left, excess)), price.size - 1)])
    around = middle * np.geomspace(0.3, 1.5, NUM_PRICES - 1)
    return sorted({0.0, middle, *around.tolist()})
