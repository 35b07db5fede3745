"""Bound on the largest load by prices: what all devices can hold is worth less than all units.

Dantzig and Wolfe, "Decomposition principle for linear programs", Oper. Res. 1960. Any prices of the
units, of any sign, prove that a threshold is too low if the dearest parts under it, one for each
device, are worth less than all units together (Farley, "A note on bounding a class of linear
programming problems", Oper. Res. 1990). A sweep along a row of the units finds the dearest parts
for all thresholds at once, so that whatever the prices are, they give a bound. The best ones come
from a linear program over the parts found so far, which may not leave a box around the best prices
yet (Marsten, Hogan, Blankenship, "The boxstep method for large-scale optimization", Oper. Res.
1975), because far from all parts it knows little.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.bounds.loads import part_load_s
from placement.splits.bounds.row import Labels, RowArrays, row_of_accelerator, row_of_cpu
from placement.splits.exact.program import INF, silent_solver
from placement.splits.model.contract import Units
from placement.splits.model.instance import Bools

# Sums of the same times in another order differ by this share at most.
ROUNDING = 1e-9
# Thresholds that are tried, how far from the bound towards what is not proven, and how near the
# program must come to the best prices.
THRESHOLDS, STRIDE, NEAR = 60, 0.4, 1e-6
# Rounds for a threshold to begin with, twice as many after each that did not suffice, and at most.
ROUNDS, MOST_ROUNDS = 60, 400
# Steps of loads, of which a sweep holds a label for each state: the fewest, the most for each unit,
# and labels, to begin with and after a threshold that was not reached.
LEAST_STEPS, COARSE, FINE = 100, (64, 5_000_000), (512, 60_000_000)
# Finer steps are so many times as many; they come where so many dearest parts in a row have larger
# loads than steps tell, by a share of what is open, or where a threshold was not reached so.
FINER, MOST_UNTRUE, UNTRUE = 4, 8, 0.1
# A row with fewer states has more steps, so many times at most.
MOST_FINER = 8
# Parts that a sweep adds to the program: every third of the dearest ones.
PARTS, EVERY = 4, 3
# Beyond so many parts those leave the program that did not matter for some rounds.
MOST_ROWS, MOST_IDLE = 1_500, 25
# Half the box's side at most and at least to begin with, of the mean price; the share of what the
# program hopes for that moves the box.
BOX, LEAST_BOX, GAIN = 0.3, 0.01, 0.1


@dataclass(frozen=True)
class _Kind:
    """Devices that are alike, as a row, how many there are, and whether they are CPUs."""

    row: RowArrays
    count: int
    on_cpu: bool


class _Front(NamedTuple):
    """Loads, rising, what parts with them are worth, and their labels in a list of all."""

    load_s: Floats
    worth: Floats
    label: Ints
    labels: Labels


def price_bound_s(
    units: Units,
    bound_s: float,
    known_s: float,
    *,
    more: Callable[[float], bool],
    left_s: Callable[[], float] = lambda: INF,
) -> float:
    """Raise a bound on the largest load, given that of a known split; at most that.

    `more` hears what is proven and tells whether to go on, `left_s` how many seconds there are.
    """
    search = _Search(units, bound_s, known_s)
    high_s = unproven_s = known_s
    for _ in range(THRESHOLDS if search.kinds else 0):
        if high_s - search.bound_s <= NEAR * high_s:
            # All below a threshold that took too many rounds is proven: it is tried again.
            high_s = unproven_s
        if high_s - search.bound_s <= NEAR * high_s:
            break
        search.open_s = high_s - search.bound_s
        cap_s = search.bound_s + STRIDE * search.open_s
        reached = search.reaches(cap_s, more, left_s)
        if search.stopped:
            break
        if reached:
            # What took too many rounds is tried again from better prices.
            high_s = unproven_s
        elif search.hurried:
            high_s = cap_s
        else:
            # What fails because loads are told too low is tried once more with more steps.
            again_s = search.bound_s + (cap_s - search.bound_s) / STRIDE
            finer = search.num_untrue > 0 and search.refine()
            high_s = unproven_s = min(high_s, again_s) if finer else cap_s
    return search.bound_s


class _Search:
    """The best prices so far, and what they prove; it ends `stopped` where it is told to."""

    def __init__(self, units: Units, bound_s: float, known_s: float) -> None:
        instance = units.instance
        self.units, self.bound_s, self.stopped = units, bound_s, False
        self.open_s, self.num_untrue = known_s - bound_s, 0
        self.num_rounds, self.hurried = ROUNDS, False
        kinds = (
            _Kind(row_of_accelerator(units), instance.num_accelerators, False),
            _Kind(row_of_cpu(units), instance.num_cpus, True),
        )
        self.kinds = [kind for kind in kinds if kind.count]
        self.total = float(instance.num_devices)
        work = np.where(units.on_acc, units.acc_s, units.cpu_s)
        every = work.sum()
        mean = self.total / max(units.num_units, 1)
        self.price = work * self.total / every if every > 0 else np.full(len(work), mean)
        self.least_half, self.most_half = LEAST_BOX * mean, BOX * mean
        self.half = self.most_half
        self.most_states = max((len(kind.row.after) for kind in self.kinds), default=1)
        self.num_steps = self._steps(*COARSE)
        self.program = _Program(units.num_units, [kind.count for kind in self.kinds], self.total)

    def _steps(self, of_unit: int, num_labels: int) -> int:
        most = min(num_labels // self.most_states, of_unit * self.units.num_units)
        return max(LEAST_STEPS, most)

    def refine(self) -> bool:
        """Tell loads apart in more steps, if labels allow and there may be so many loads."""
        finer = min(FINER * self.num_steps, self._steps(*FINE))
        num_parts = 2.0 ** min(self.units.num_units, 60)
        self.num_untrue = 0
        if finer < 2 * self.num_steps or num_parts <= self.num_steps:
            return False
        self.num_steps = finer
        return True

    def reaches(
        self, cap_s: float, more: Callable[[float], bool], left_s: Callable[[], float]
    ) -> bool:
        """Whether prices prove that no split has all loads below a threshold."""
        program = self.program
        program.keep(cap_s * (1.0 + ROUNDING))
        self.half = min(max(self.half, self.least_half), self.most_half)
        best, _ = self._worth(self.price, cap_s)
        self.hurried = False
        for _ in range(self.num_rounds):
            if self.bound_s >= cap_s * (1.0 - ROUNDING):
                return True
            if not more(self.bound_s) or left_s() <= 0:
                self.stopped = True
                return False
            if self.num_untrue >= MOST_UNTRUE and self.refine():
                program.keep(cap_s * (1.0 + ROUNDING))
                best, _ = self._worth(self.price, cap_s)
                continue
            price, hoped, at_side = program.best(self.price, self.half)
            if min(best, self.total) - hoped <= NEAR * self.total:
                # Nothing in the box can prove it, or hardly more than what is known.
                if not at_side or self.half > self.total:
                    return False
                self.half *= 4.0
                continue
            worth, new = self._worth(price, cap_s)
            hope = best - hoped
            if worth < best - GAIN * hope:
                self.half *= 1.5 if worth < best - 0.5 * hope else 1.0
                self.price, best = price, worth
            elif not new:
                return False
            elif worth > best:
                self.half *= 0.8
        self.hurried = self.num_rounds < MOST_ROUNDS
        self.num_rounds = min(2 * self.num_rounds, MOST_ROUNDS)
        return False

    def _worth(self, price: Floats, cap_s: float) -> tuple[float, bool]:
        """What all devices may be worth under a threshold; tells the program of the dearest parts.

        Beside it, whether any of them is new. Raises the bound.
        """
        from placement.splits.bounds.row_compiled import units_of, worth_by_load

        def front(kind: _Kind) -> _Front:
            steps = self.num_steps * min(MOST_FINER, self.most_states // len(kind.row.after))
            return _Front(*worth_by_load(kind.row, price, cap_s * (1 + ROUNDING), steps, True))

        # Compiled code runs side by side; what it finds does not depend on who is first.
        with ThreadPoolExecutor(len(self.kinds)) as pool:
            fronts = list(pool.map(front, self.kinds))
        new, true = False, True
        for number, (kind, found) in enumerate(zip(self.kinds, fronts, strict=True)):
            for i in range(len(found.label) - 1, -1, -EVERY)[:PARTS]:
                held = units_of(kind.row, found.label[i], found.labels)
                load_s = part_load_s(self.units, held, kind.on_cpu)
                new |= self.program.add(number, held, load_s)
                true &= i < len(found.label) - 1 or load_s <= cap_s + UNTRUE * self.open_s
        self.num_untrue = 0 if true else self.num_untrue + 1
        least_s = self._least_s(fronts, price)
        self.bound_s = max(self.bound_s, min(least_s, cap_s) * (1.0 - ROUNDING))
        return sum(k.count * f.worth[-1] for k, f in zip(self.kinds, fronts, strict=True)), new

    def _least_s(self, fronts: list[_Front], price: Floats) -> float:
        """The least load at which parts may be worth all units together, infinite if none is.

        The program keeps the sum of prices nearly; here it must be what they add up to.
        """
        loads = np.unique(np.concatenate([front.load_s for front in fronts]))
        worth = np.zeros(len(loads))
        for kind, front in zip(self.kinds, fronts, strict=True):
            at = np.searchsorted(front.load_s, loads, side="right") - 1
            worth += kind.count * front.worth[np.maximum(at, 0)]
        enough = np.flatnonzero(worth >= price.sum() - ROUNDING * np.abs(price).sum())
        return float(loads[enough[0]]) if len(enough) else INF


class _Program:
    """The least that all devices together are worth, over prices with a given sum in a box."""

    def __init__(self, num_units: int, counts: list[int], total: float) -> None:
        self.num = num_units
        self._rows: list[tuple[bytes, float]] = []
        self._seen: set[bytes] = set()
        self._idle = np.zeros(0, dtype=np.int64)
        self._solver: Any = silent_solver()
        for _ in range(num_units):
            self._solver.addCol(0.0, -INF, INF, 0, [], [])
        for count in counts:
            self._solver.addCol(float(count), 0.0, INF, 0, [], [])
        self._numbers = np.arange(num_units, dtype=np.int32)
        self._solver.addRow(total, total, num_units, self._numbers, np.ones(num_units))

    def add(self, kind: int, held: Bools, load_s: float) -> bool:
        """A part of some kind of device, unless it is known; whether it is new."""
        name = bytes([kind]) + np.packbits(held).tobytes()
        if name in self._seen:
            return False
        members = np.append(np.flatnonzero(held), self.num + kind).astype(np.int32)
        factors = np.append(np.ones(len(members) - 1), -1.0)
        self._solver.addRow(-INF, 0.0, len(members), members, factors)
        self._seen.add(name)
        self._rows.append((name, load_s))
        self._idle = np.append(self._idle, 0)
        return True

    def keep(self, cap_s: float) -> None:
        """Leave out the parts with larger loads."""
        self._drop([i for i, (_, load_s) in enumerate(self._rows) if load_s > cap_s])

    def best(self, price: Floats, half: float) -> tuple[Floats, float, bool]:
        """The best prices in a box, what devices are worth for them, whether a side holds them."""
        self._solver.changeColsBounds(self.num, self._numbers, price - half, price + half)
        self._solver.run()
        solution = self._solver.getSolution()
        best = np.array(solution.col_value[: self.num])
        tight = np.array(solution.row_dual[1:]) != 0.0
        self._idle = np.where(tight, 0, self._idle + 1)
        if len(self._rows) > MOST_ROWS:
            self._drop(np.flatnonzero(self._idle > MOST_IDLE).tolist())
        at_side = bool((np.abs(best - price) > half * (1.0 - ROUNDING)).any())
        return best, float(self._solver.getInfo().objective_function_value), at_side

    def _drop(self, numbers: list[int]) -> None:
        if numbers:
            self._solver.deleteRows(len(numbers), np.array(numbers, dtype=np.int32) + 1)
            gone = set(numbers)
            self._seen -= {self._rows[i][0] for i in numbers}
            self._rows = [row for i, row in enumerate(self._rows) if i not in gone]
            self._idle = np.delete(self._idle, numbers)
