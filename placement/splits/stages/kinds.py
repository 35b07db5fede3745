"""Kinds of devices: those that may exchange their names without any change to the problem.

A split need not tell equal devices apart: how many of a kind it uses is enough. A device that
stands for another one (weights that stream, `costs/offload.py`) is a second way to use that one.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.problem import Problem
from placement.simulator.lowering import host_of
from placement.splits.model.instance import Bools

# Counts of used devices that are told apart; beyond, the slowest kinds of device are left out.
MOST_STATES = 4096


@dataclass(frozen=True, eq=False)
class Kinds:
    """Kinds (K) of devices that compute, and the ways (W) to use one: `kind` and `device` (W,).

    `engines` lists the devices of each kind in declared order, `device` is the one of the first of
    them; `of_engine[e][o]` is the device of way o on the engine e. `is_complete` says whether all
    engines are among them, so that what is the best over these kinds is the best of all.
    """

    problem: Problem
    engines: tuple[tuple[int, ...], ...]
    of_engine: dict[int, tuple[int, ...]]
    is_complete: bool

    @cached_property
    def kind(self) -> Ints:
        return np.array([k for k, _ in self._ways], dtype=np.int64)

    @cached_property
    def device(self) -> Ints:
        return np.array([d for _, d in self._ways], dtype=np.int64)

    @property
    def _ways(self) -> list[tuple[int, int]]:
        return [(k, d) for k, each in enumerate(self.engines) for d in self.of_engine[each[0]]]

    @cached_property
    def most(self) -> Ints:
        """How many devices there are of each kind (K,)."""
        return np.array([len(each) for each in self.engines], dtype=np.int64)

    @cached_property
    def stride(self) -> Ints:
        """By how much one more device of a kind (K,) raises the number of a state."""
        return np.cumprod(np.concatenate([[1], self.most[:-1] + 1])).astype(np.int64)

    @property
    def num_states(self) -> int:
        return int((self.most + 1).prod())

    @cached_property
    def used(self) -> Ints:
        """How many devices of each kind a state counts (S, K)."""
        states = np.arange(self.num_states)[:, None]
        used: Ints = states // self.stride % (self.most + 1)
        return used

    @property
    def num_devices(self) -> int:
        return int(self.most.sum())

    def device_of(self, way: int, state: int) -> int:
        """The device of a stage that is the last one of its kind in a state."""
        k = int(self.kind[way])
        number = int(self.used[state, k])
        option = int((self.kind[:way] == k).sum())
        return self.of_engine[self.engines[k][number - 1]][option]

    def floors_s(self, num_bytes: Floats) -> tuple[Floats, Floats]:
        """Least seconds to receive and to send tensors (T,) by way, (W, T) each.

        What stands at the other end is any device of another engine.
        """
        costs = self.problem.costs
        shape = (len(self.kind), len(num_bytes))
        received, sent = np.full(shape, np.inf), np.full(shape, np.inf)
        for w, d in enumerate(self.device.tolist()):
            for e in self._others(w):
                for least, a, b in ((received, e, d), (sent, d, e)):
                    seconds = costs.latency_s[a, b] + num_bytes * costs.s_per_byte[a, b]
                    np.minimum(least[w], seconds, out=least[w])
        return received, sent

    def _others(self, way: int) -> list[int]:
        """One device of each way to use an engine other than that of a way."""
        own = int(self.kind[way])
        found: list[int] = []
        for k, each in enumerate(self.engines):
            if k != own or len(each) > 1:
                found += self.of_engine[each[-1]]
        return found


def kinds_of(problem: Problem) -> Kinds:
    """The kinds of a problem's devices, the fastest first where some must be left out."""
    engine = problem.machine.places.engine.tolist()
    of_engine: dict[int, list[int]] = {}
    for d, e in enumerate(engine):
        of_engine.setdefault(e, []).append(d)
    options = {e: tuple(devices) for e, devices in of_engine.items()}
    same = _Exchange(problem)
    kinds: list[list[int]] = []
    for e in sorted(options):
        may = same.may_hold([k[0] for k in kinds], e)
        alike = (kinds[n] for n in may if same.holds(options[kinds[n][0]], options[e]))
        found = next(alike, None)
        if found is None:
            kinds.append([e])
        else:
            found.append(e)
    kept = _few(problem, [tuple(k) for k in kinds], options)
    return Kinds(problem, kept, options, sum(map(len, kept)) == len(options))


class _Exchange:
    """Whether two engines may exchange their names."""

    def __init__(self, problem: Problem) -> None:
        self._host, self._places = host_of(problem), problem.machine.places
        seconds = np.where(problem.allowed, problem.unit_s, np.inf)
        self._columns = [column.tobytes() for column in np.ascontiguousarray(seconds.T)]
        costs = problem.costs
        self._single: tuple[Ints | Floats | Bools, ...] = (
            costs.call_s,
            problem.machine.limit_bytes,
            np.array([d.on_host for d in problem.machine.devices]),
        )
        self._square = (costs.latency_s, costs.s_per_byte)
        self._own = np.arange(problem.num_devices)

    def may_hold(self, some: list[int], other: int) -> list[int]:
        """Which of some engines another one may exchange its name with, as far as their links to
        all others tell: few of many hosts."""
        engine, engines = self._places.engine, np.array(some, dtype=np.int64)
        differ = np.zeros((len(some), engine.size), dtype=np.bool_)
        for each in self._square:
            differ |= each[engines] != each[other]
        differ &= (engine != engines[:, None]) & (engine != other)
        found: list[int] = np.flatnonzero(~differ.any(axis=1)).tolist()
        return found

    def holds(self, some: tuple[int, ...], others: tuple[int, ...]) -> bool:
        if len(some) != len(others) or self._host in (*some, *others):
            return False
        if any(self._columns[a] != self._columns[b] for a, b in zip(some, others, strict=True)):
            return False
        swap, moved = self._own.copy(), [*some, *others]
        swap[moved] = to = [*others, *some]
        # What has no end among those that exchange their names stays what it is.
        return (
            all(np.array_equal(each[to], each[moved]) for each in self._single)
            and all(np.array_equal(each[to][:, swap], each[moved]) for each in self._square)
            and all(np.array_equal(each[:, to][swap], each[:, moved]) for each in self._square)
            and all(np.array_equal(swap[each], each[swap]) for each in self._places)
        )


def _few(
    problem: Problem, kinds: list[tuple[int, ...]], options: dict[int, tuple[int, ...]]
) -> tuple[tuple[int, ...], ...]:
    """Kinds with no more states than MOST_STATES: all, or those that pins need and the fastest."""
    seconds = np.where(problem.allowed, problem.unit_s, np.inf)
    only = problem.allowed.sum(axis=1) == 1
    needed = problem.allowed[only].any(axis=0)
    least = np.where(np.isfinite(seconds), seconds, 0.0)
    ran = np.isfinite(seconds).sum(axis=0)

    def rank(kind: tuple[int, ...]) -> tuple[bool, int, float, int]:
        d = kind[0]
        wanted = any(needed[o] for o in options[d])
        return (not wanted, -int(ran[d]), float(least[:, d].sum()), d)

    kept: list[tuple[int, ...]] = []
    num_states = 1
    for kind in sorted(kinds, key=rank):
        room = min(len(kind), MOST_STATES // num_states - 1)
        if room > 0:
            kept.append(kind[:room])
            num_states *= room + 1
    return tuple(sorted(kept))
