"""Bound on the largest load by configurations: no k parts below a threshold cover all units.

Gilmore and Gomory, "A linear programming approach to the cutting-stock problem", Oper. Res. 1961,
with transfers. Under a threshold B a configuration is what one device can hold with a load up to B.
Prices of the units prove that B is too low if the dearest configurations, one for each device, are
worth less than all units together (Farley, "A note on bounding a class of linear programming
problems", Oper. Res. 1990). Prices come from a linear program over the configurations found so far,
the dearest configuration for these prices from an integer program.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from placement.core.costs import Floats
from placement.splits.bounds.loads import part_load_s
from placement.splits.exact.program import INF, Effort, Program, Term, silent_solver
from placement.splits.model.contract import Units
from placement.splits.model.instance import Bools

# Where in the gap between bound and known value the thresholds lie; a failure ends the search.
STEPS = 8
# Values of the solver are true to this share only.
MARGIN = 1e-6
PRICING = Effort(max_nodes=2_000, gap=1e-4)
MAX_ROUNDS = 400


def configuration_bound_s(
    units: Units,
    bound_s: float,
    known_s: float,
    *,
    more: Callable[[float], bool],
    left_s: Callable[[], float] = lambda: INF,
) -> float:
    """Raise a bound on the largest load, given that of a known split, by bisection.

    `more` hears what is proven and tells whether to go on, `left_s` how many seconds there are.
    """
    search = _Configurations(units, known_s)
    low, high = bound_s, known_s
    for _ in range(STEPS):
        middle = (low + high) / 2
        if high - low <= MARGIN * high or not more(low):
            break
        if search.too_low(middle, partial(more, low), left_s):
            low = middle
        else:
            high = middle
    return low


class _Configurations:
    """A search for prices that keeps the configurations it finds for the next threshold."""

    def __init__(self, units: Units, known_s: float) -> None:
        self.units, self.scale_s = units, known_s
        self.counts = (units.instance.num_accelerators, units.instance.num_cpus)
        self.found: tuple[list[Bools], list[Bools]] = ([], [])

    def too_low(self, cap_s: float, more: Callable[[], bool], left_s: Callable[[], float]) -> bool:
        """Whether prices prove that no split has all loads up to a threshold."""
        kinds = [kind for kind, count in enumerate(self.counts) if count]
        parts = {kind: _part(self.units, bool(kind), cap_s, self.scale_s) for kind in kinds}
        prices = _Prices(self.units.num_units, self.counts)
        for kind in kinds:
            for held in self.found[kind]:
                if part_load_s(self.units, held, bool(kind)) <= cap_s:
                    prices.add(kind, held)
        for _ in range(MAX_ROUNDS):
            price, uncovered = prices.best()
            if uncovered <= MARGIN or not more() or left_s() <= 0:
                return False
            worth = 0.0
            for kind in kinds:
                dearest, held = _dearest(parts[kind], price, left_s())
                worth += self.counts[kind] * dearest
                if len(held):
                    prices.add(kind, held)
                    self.found[kind].append(held)
            if float(price.sum()) - worth > MARGIN * max(1.0, float(price.sum())):
                return True
        return False


def _dearest(part: Program, price: Floats, left_s: float) -> tuple[float, Bools]:
    """The most that the units of one part can be worth, and a part that is dear."""
    costs = np.zeros(part.num_variables)
    costs[: len(price)] = -price
    part.set_costs(costs)
    outcome = part.solve(replace(PRICING, time_limit_s=left_s))
    return -outcome.bound, outcome.values[: len(price)] > 0.5


def _part(units: Units, on_cpu: bool, cap_s: float, scale_s: float) -> Program:
    """What one device can hold with a load up to a threshold: variables 0 to U - 1, in or not."""
    program = Program()
    may = units.on_cpu if on_cpu else units.on_acc
    seconds = units.cpu_s if on_cpu else units.acc_s
    inside = [program.whole(bool(ok)) for ok in may]
    load: list[Term] = [(u, float(seconds[u]) / scale_s) for u in np.flatnonzero(may).tolist()]
    if not on_cpu:
        for net, cost_s in enumerate(units.net_cost_s.tolist()):
            pins = units.net_units[units.net_ptr[net] : units.net_ptr[net + 1]]
            load += _crossing(program, pins.tolist(), cost_s / scale_s)
        limit = units.instance.limit_bytes
        if np.isfinite(limit):
            sizes = (units.size_bytes / max(limit, 1.0)).tolist()
            program.row([(u, sizes[u]) for u in inside], upper=limit / max(limit, 1.0))
    program.row(load, upper=cap_s / scale_s)
    return program


def _crossing(program: Program, pins: list[int], cost: float) -> list[Term]:
    """The terms of a net that costs something where some of its units are inside, some not."""
    most, least = program.variable(), program.variable()
    for u in pins:
        program.row([(most, 1.0), (u, -1.0)], lower=0.0)
        program.row([(u, 1.0), (least, -1.0)], lower=0.0)
    return [(most, cost), (least, -cost)]


class _Prices:
    """The linear program that prices units: their sum less what the dearest parts are worth."""

    def __init__(self, num_units: int, counts: tuple[int, int]) -> None:
        self.num = num_units
        self.solver = silent_solver()
        for _ in range(num_units):
            self.solver.addCol(-1.0, 0.0, 1.0, 0, [], [])
        for count in counts:
            self.solver.addCol(float(count), 0.0, INF, 0, [], [])

    def add(self, kind: int, column: Bools) -> None:
        held = np.flatnonzero(column)
        numbers = np.append(held, self.num + kind).astype(np.int32)
        factors = np.append(np.ones(len(held)), -1.0)
        self.solver.addRow(-INF, 0.0, len(numbers), numbers, factors)

    def best(self) -> tuple[Floats, float]:
        """The prices, and what they leave uncovered."""
        self.solver.run()
        values = np.array(self.solver.getSolution().col_value[: self.num])
        return np.clip(values, 0.0, 1.0), -float(self.solver.getInfo().objective_function_value)
