"""A chain of moves from one placement: the state of annealing and of local search."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from placement.core.costs import Floats
from placement.core.events import never
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.parallel.calls import Call, travels
from placement.schedule.order import by_priority, kernel_order, upward_ranks
from placement.search.coarsening import Blocks
from placement.search.feasible import unit_bytes
from placement.simulator.evaluator import Evaluator, can_overflow, num_visits
from placement.simulator.run_state import trace_of
from placement.simulator.throughput import largest_turn_load_s

# Moves between two looks at the clock, by seconds that they may take.
LOOK_EVERY_S = 0.02
MOST_MOVES_AT_ONCE = 20_000
LOOK_EVERY_MOVES = 500
# Kernels and tensors that moves may visit before somebody is asked whether to stop, where no clock
# is looked at: more than those of a turn by default, so that asking changes no answer.
MOST_VISITS_AT_ONCE = 4_000_000
AGAIN = 1 << 30


@dataclass(frozen=True, eq=False)
class Start:
    """A placement as numbers: devices of units (U,) and an order of kernels (K,)."""

    devices: Ints
    order: Ints


def start_of(problem: Problem, placement: Placement) -> Start:
    """Devices and order of a placement; one that leaves the order open gets the default."""
    of_kernel = problem.kernel_devices(placement)
    devices = problem.allowed.argmax(axis=1)
    names = problem.machine.index
    for i, op in enumerate(problem.graph.ops):
        devices[problem.unit_of_op[i]] = names[placement.device_of[op.name]]
    devices[problem.unit_of_kernel] = of_kernel
    order = np.array(kernel_order(problem, placement, of_kernel), dtype=np.int64)
    return Start(devices.astype(np.int64), order)


@dataclass(frozen=True, eq=False)
class Turn:
    """What a chain goes on from after a turn, and after how many of the moves that it traces.

    `kicked` says that it went back to its best placement and changed some blocks of it.
    """

    num_traced: int
    devices: Ints
    order: Ints
    temperature_s: float
    value_s: float
    best_s: float
    kicked: bool


@dataclass(frozen=True, kw_only=True)
class Habits:
    """What makes one chain another than the next: see `Chain`."""

    seed: int
    hot: float = 0.0
    cold: float = 0.0
    kick: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class State:
    """All that a chain goes on from between two turns, to the bit.

    Of the base (U,) and (K,), of the best, of the compiled search, whose sums of loads and of room
    (D,) depend on the moves that led there, and of both random generators.
    """

    devices: Ints
    order: Ints
    best: Ints
    best_order: Ints
    best_s: float
    best_at_turn_s: float
    values_s: Floats
    counts: Ints
    critical: Ints
    generator: Ints
    room_bytes: Floats
    load_s: Floats
    chance: tuple[str, str, int, int]
    start_s: float
    move_s: float
    num_moves: int


@dataclass(frozen=True, kw_only=True)
class Leg:
    """The moves of a chain between two shares of its whole search, and a turn behind them if so.

    So many, or (None) as many as the time allows, of which the whole search has `limit_s`.
    """

    num_moves: int | None
    since: float
    until: float
    limit_s: float
    turns: bool


class Chain:
    """One search: its base, its best, and its own random numbers.

    `hot` and `cold` are temperatures as shares of the start's value; with `cold` zero it is a
    descent, kicked out of every place where it is stuck by `kick` random blocks. It depends on
    nothing but its arguments as long as it is advanced by numbers of moves. It writes down the
    first `traced` moves that change a placement, and then its turns, too.
    """

    def __init__(
        self,
        problem: Problem,
        start: Start,
        blocks: Blocks,
        *,
        seed: int,
        hot: float = 0.0,
        cold: float = 0.0,
        kick: int = 0,
        traced: int = 0,
    ) -> None:
        from placement.compiled.random import MODULUS, seeded

        self.problem, self.hot, self.cold, self.kick = problem, hot, cold, kick
        self._habits = Habits(seed=seed, hot=hot, cold=cold, kick=kick)
        self.num_moves = 0
        self.start, self.trace, self.blocks = start, trace_of(traced), blocks
        self.turns: list[Turn] = []
        self.best, self.best_s, self.best_order = start.devices.copy(), math.inf, start.order
        self._generator = seeded(seed % MODULUS)
        self._random = np.random.default_rng(seed)
        self._block_arrays = (blocks.ptr, blocks.units, *blocks.of_units(problem.num_units))
        self._everything = (np.arange(problem.num_units), 0)
        self._watch_memory = can_overflow(problem)
        self._unit_bytes = unit_bytes(problem)
        # A first guess from the size; every look at the clock corrects it.
        self._move_s = 1e-7 * max(100, len(start.order))
        self._best_at_turn_s = math.inf
        self._temperature_s = 0.0
        self._begin(start.devices, start.order)
        self.start_s = self._scale_s = float(self._values[0])

    def _begin(self, devices: Ints, order: Ints) -> None:
        """Make a placement in an order the base."""
        own = self._own = Evaluator(self.problem, order)
        self._devices = devices.copy()
        own.value_s(self._devices)
        value_s = own.energy_s()
        fits = self._fits = not self._watch_memory or own.fits()
        if value_s < self.best_s and fits:
            self.best_s, self.best_order = value_s, own.state.order
            self.best = self._devices.copy()
        used = own.peak_bytes() if self._watch_memory and fits else self._held_bytes(devices)
        self._values = np.array([value_s, self.best_s])
        self._state = (
            self._devices,
            self.best,
            self._values,
            np.array([AGAIN, 0, 0, int(fits)], dtype=np.int64),
            np.zeros(len(order), dtype=np.int64),
            self._generator,
            own.flat.limit_bytes - used,
            self._unit_bytes,
            self.problem.costs.workspace_bytes,
        )

    def advance(self, num_moves: int, since: float, until: float) -> None:
        """Make this many moves, from one share of the whole search to another."""
        from placement.simulator.compiled.anneal import search

        own, begun_s = self._own, time.perf_counter()
        heat = (self._heat_s(since), self._heat_s(until))
        self._temperature_s = heat[1]
        search(
            own.flat,
            own.state,
            self._state,
            self._block_arrays,
            self.trace,
            num_moves,
            heat,
            own.throughput,
            self._watch_memory,
            self._everything,
        )
        self._move_s = (time.perf_counter() - begun_s) / max(1, num_moves)
        self.num_moves += num_moves
        if self._values[1] < self.best_s:
            self.best_s, self.best_order = float(self._values[1]), own.state.order

    def advance_by(
        self,
        num_moves: int,
        since: float,
        until: float,
        deadline_s: float = math.inf,
        stop: Callable[[], bool] = never,
    ) -> None:
        """The same, with a look at the clock now and then, and at whether somebody says stop.

        What is compiled can be stopped by nobody meanwhile.
        """
        at_once = LOOK_EVERY_MOVES
        if math.isinf(deadline_s):
            at_once = max(at_once, MOST_VISITS_AT_ONCE // num_visits(self.problem))
        for first in range(0, num_moves, at_once):
            if time.perf_counter() >= deadline_s or stop():
                return
            number = min(at_once, num_moves - first)
            per_move = (until - since) / num_moves
            self.advance(number, since + first * per_move, since + (first + number) * per_move)

    def value_s(self) -> float:
        """Seconds of the objective of the best placement, where `best_s` is what was minimised."""
        if not self._own.throughput or math.isinf(self.best_s):
            return self.best_s
        own = Evaluator(self.problem, self.best_order, self._own.flat)
        own.value_s(self.best)
        return largest_turn_load_s(own.flat, own.state)

    def advance_until(
        self, begun_s: float, limit_s: float, share: float, stop: Callable[[], bool] = never
    ) -> None:
        """Make moves until the clock has reached a share of the search's time, or until told."""
        while (now := (time.perf_counter() - begun_s) / limit_s) < share and not stop():
            seconds = min(LOOK_EVERY_S, (share - now) * limit_s)
            num_moves = int(min(MOST_MOVES_AT_ONCE, max(1, seconds / max(1e-8, self._move_s))))
            self.advance(num_moves, now, min(share, now + seconds / limit_s))

    def _heat_s(self, share: float) -> float:
        if self.cold <= 0:
            return 0.0
        return float(self._scale_s * self.hot * (self.cold / self.hot) ** min(1.0, share))

    def turn(self) -> None:
        """Take another order of execution where it suits the base better; kick where stuck."""
        is_stuck = self.kick > 0 and self.best_s >= self._best_at_turn_s * (1 - 1e-9)
        kicked = is_stuck and self._kicked()
        self._best_at_turn_s = self.best_s
        of_kernel = self._devices[self.problem.unit_of_kernel]
        ranks = upward_ranks(self.problem, of_kernel)
        keys = [[-r for r in ranks]]
        if not self._own.throughput:
            keys.append(self._own.state.start_s.tolist())
        for key in keys:
            order = np.array(by_priority(self.problem.kernels, key), dtype=np.int64)
            found = Evaluator(self.problem, order, self._own.flat)
            found.value_s(self._devices)
            if found.energy_s() < self._values[0] * (1 - 1e-12):
                self._begin(self._devices, order)
        if self.trace.moves.size:
            self._note_turn(kicked)

    def go(self, leg: Leg, left_s: float, stop: Callable[[], bool] = never) -> None:
        """Make the moves of a leg, which ends when so many seconds are over, or when told."""
        if leg.num_moves is not None:
            until_s = time.perf_counter() + left_s
            self.advance_by(leg.num_moves, leg.since, leg.until, until_s, stop)
        else:
            begun_s = time.perf_counter() + left_s - leg.until * leg.limit_s
            self.advance_until(begun_s, leg.limit_s, leg.until, stop)
        if leg.turns and not stop():
            self.turn()

    def going(self, leg: Leg) -> Call:
        """The same as a call, whose answer `resume` takes."""
        return Call(gone, (self.problem, self.blocks), (self._habits, self.state, leg))

    @property
    def state(self) -> State:
        chance = self._random.bit_generator.state
        _, _, values_s, counts, critical, generator, room_bytes, *_ = self._state
        return State(
            devices=self._devices,
            order=self._own.state.order,
            best=self.best,
            best_order=self.best_order,
            best_s=self.best_s,
            best_at_turn_s=self._best_at_turn_s,
            values_s=values_s,
            counts=counts,
            critical=critical,
            generator=generator,
            room_bytes=room_bytes,
            load_s=self._own.state.load_s,
            chance=(
                f"{chance['state']['state']:x}",
                f"{chance['state']['inc']:x}",
                chance["has_uint32"],
                chance["uinteger"],
            ),
            start_s=self.start_s,
            move_s=self._move_s,
            num_moves=self.num_moves,
        )

    def resume(self, state: State) -> None:
        """Go on from a state of this chain, wherever it was reached."""
        self._generator[:] = state.generator
        self._begin(state.devices, state.order)
        self.best_s, self.best_order = state.best_s, state.best_order
        _, _, values_s, counts, critical, _, room_bytes, *_ = self._state
        for own, found in (
            (self.best, state.best),
            (values_s, state.values_s),
            (counts, state.counts),
            (critical, state.critical),
            (room_bytes, state.room_bytes),
            (self._own.state.load_s, state.load_s),
        ):
            own[:] = found
        a, b, has_half, half = state.chance
        generator = self._random.bit_generator
        generator.state = {
            **generator.state,
            "state": {"state": int(a, 16), "inc": int(b, 16)},
            "has_uint32": has_half,
            "uinteger": half,
        }
        self._best_at_turn_s, self.num_moves = state.best_at_turn_s, state.num_moves
        self.start_s = self._scale_s = state.start_s
        self._move_s = state.move_s

    def go_on_from(self, other: "Chain") -> None:
        """Make the best of another chain of the same problem the base."""
        self._begin(other.best, other.best_order)

    def _note_turn(self, kicked: bool) -> None:
        self.turns.append(
            Turn(
                int(self.trace.num[0]),
                self._devices.copy(),
                self._own.state.order,
                self._temperature_s,
                float(self._values[0]),
                self.best_s,
                kicked,
            )
        )

    def _held_bytes(self, devices: Ints) -> Floats:
        """Weights and state on each device (D,)."""
        held = np.bincount(devices, self._unit_bytes, minlength=self.problem.num_devices)
        return held.astype(np.float64)

    def _kicked(self) -> bool:
        """Go on from the best with a few random units or blocks on random devices, if all fits.

        What finds no room there stays: nothing would make room for it later.
        """
        devices = self.best.copy()
        room = self._own.flat.limit_bytes - self._held_bytes(devices)
        for _ in range(self.kick):
            units = np.array([self._random.integers(self.problem.num_units)])
            if self.blocks.num:
                units = self.blocks.members(int(self._random.integers(self.blocks.num)))
            dest = int(self._random.integers(self.problem.num_devices))
            going = units[self.problem.allowed[units, dest] & (devices[units] != dest)]
            needed = np.cumsum(self._unit_bytes[going])
            going = going[needed <= room[dest]]
            np.add.at(room, devices[going], self._unit_bytes[going])
            room[dest] -= self._unit_bytes[going].sum()
            devices[going] = dest
        self._begin(devices, self.best_order)
        if not self._fits:
            self._begin(self.best, self.best_order)
            return False
        return True

    @property
    def placement(self) -> Placement:
        """The best placement so far."""
        return self.problem.placement_of(self.best, self.best_order.tolist())


@travels
def gone(
    problem: Problem, blocks: Blocks, habits: Habits, state: State, leg: Leg, seconds: float
) -> State:
    """The state of a chain after a leg."""
    start = Start(state.devices, state.order)
    chain = Chain(
        problem,
        start,
        blocks,
        seed=habits.seed,
        hot=habits.hot,
        cold=habits.cold,
        kick=habits.kick,
    )
    chain.resume(state)
    chain.go(leg, seconds)
    return chain.state
