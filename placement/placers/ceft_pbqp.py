"""CEFT and PBQP: a quadratic program over units, led by the critical path; simulation decides.

Huang, Fu and Hsu, SAMOS 2019 (CEFT finds the critical path, a PBQP solver assigns operations). The
program adds up compute and transfers, which says nothing of two devices that work at a time: it
tends to put everything on one. So it is solved in variants: critical units as they are, weighted,
or fixed to CEFT's devices, each with several costs for units that share a device while they could
run at the same time; for throughput with prices on the devices that carry most.

Pairs of units know nothing of queues and of orders. So the best answer for a shortest step is
adjusted: units and blocks move while the simulated step gets no longer, as the paper adjusts what
runs, only beforehand.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from placement.bounds.ceft import Ceft, ceft
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.pbqp.problem import solve_packed
from placement.pbqp.unit_net import UnitNet, fixed, joined, priced, rivals, unit_net, weighted
from placement.placers._relief import relieved
from placement.placers.base import Placer, Progress, Report, Step, quiet, setting
from placement.schedule.segments import make_schedule
from placement.search.chain import Chain, start_of
from placement.search.coarsening import blocks
from placement.search.feasible import (
    STARTS,
    best_of,
    limit_bytes,
    missing_bytes,
    require_room_for_weights,
    unit_bytes,
    within_memory,
)
from placement.search.improvement import improve
from placement.simulator import throughput
from placement.simulator.evaluator import can_overflow

# Costs of sharing a device with a rival, as multiples of the time that both would overlap. The
# first variants are the ones that large graphs are left with.
_SHARING = (1.0, 0.0, 0.5, 2.0)
# Shares of the memory limits that weights may fill where some have to leave: values want room too.
_SHARES = (1.0, 0.9, 0.75)
# Kernels that the simulations of all variants may visit together: some seconds.
_MAX_VISITS = 300_000
# The same of adjusting moves, of which most visit a part only, and blocks that a kick moves.
_MAX_MOVE_VISITS, _KICK = 8_000_000, 3

# Where memory may run short it is tried on larger graphs, too: what leaves full devices is worth
# more there than the time.
_SHORT_UP_TO = 12_000

# What is changed, the program, and the device of every unit that solves it.
_Variant = tuple[str, UnitNet, tuple[int, ...]]


@dataclass(frozen=True, kw_only=True)
class CeftPbqp(Placer):
    summary = "Critical path on its best devices, the rest by a quadratic program (PBQP)"
    paper = "Huang, Fu, Hsu: placement on heterogeneous devices by CEFT and PBQP, SAMOS 2019"
    objectives = tuple(Objective)
    quick_up_to = 3_000
    pseudo_code = (
        "for each op and device: own time + the latest of its inputs, each from its best device",
        "the critical path is the longest of these ways, followed back",
        "pose variants of a program: a cost for each op on each device, a matrix for each pair",
        "solve it: take out an op whose pairs are two at most (R0, RI, RII): nothing is lost",
        "    where none is left: search the rest exactly, or fix an op by a local choice (RN)",
        "choose backwards, each op knowing what its neighbours chose",
        "simulate the answers of all variants, keep the best, and move ops of it while that helps",
    )

    critical_weight: float = setting(4.0, "How much dearer critical units are when weighted")
    reach: int = setting(6, "Rivals of each kernel: how many that start after it, at most", low=0)
    max_variants: int = setting(12, "Variants of the program that are solved and simulated", low=1)
    exact_expansions: int = setting(
        100_000, "Search nodes for an exact answer to each variant", low=0
    )

    adjusting: int = setting(
        20_000,
        "Moves that adjust the best answer for a shortest step, fewer on large graphs; 0: none",
        low=0,
    )

    @classmethod
    def is_quick(cls, problem: Problem) -> bool:
        if super().is_quick(problem):
            return True
        is_model = problem.execution is not Execution.CALL
        return is_model and len(problem.kernels.ops) <= _SHORT_UP_TO and can_overflow(problem)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.critical_weight > 0.0:
            raise ValueError(f"critical_weight is {self.critical_weight}; use more than zero.")

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        require_room_for_weights(problem)
        net = unit_net(problem)
        values: dict[tuple[int, ...], float] = {}
        going_on = True

        def heard(progress: Progress) -> bool:
            nonlocal going_on
            going_on = report(progress)
            return going_on

        for _ in self._tried(problem, net, values, heard):
            pass
        chosen = self._best(problem, net, values)
        return self._adjusted(problem, chosen, heard) if going_on else chosen

    def steps(self, problem: Problem, most: int, report: Report = quiet) -> Iterator[Step]:
        from placement.placers._steps.ceft_pbqp import Tried, walk

        require_room_for_weights(problem)
        net = unit_net(problem)
        values: dict[tuple[int, ...], float] = {}
        variants = list(self._tried(problem, net, values, quiet))
        fits = {devices: _fits(problem, problem.placement_of(devices)) for devices in values}
        tried = [
            Tried(name, solved, devices, values[devices], fits[devices])
            for name, solved, devices in variants
        ]
        chosen = self._best(problem, net, values)
        answer = self._adjusted(problem, chosen, quiet)
        return walk(problem, tried, chosen, answer, self.exact_expansions, most)

    def _tried(
        self,
        problem: Problem,
        net: UnitNet,
        values: dict[tuple[int, ...], float],
        report: Report,
    ) -> Iterator[_Variant]:
        """Solve and simulate the variants; `values` gets the seconds of each answer."""
        num_kernels = max(1, len(problem.kernels.ops))
        limit = min(self.max_variants, max(2, _MAX_VISITS // num_kernels))
        for step, variant in enumerate(self._variants(problem, net, limit)):
            _, _, devices = variant
            if devices not in values:
                values[devices] = value_s(problem, problem.placement_of(devices))
            yield variant
            best_s = min(values.values())
            if step + 1 == limit or not report(Progress(best_s=best_s, step=step + 1, of=limit)):
                break

    def _best(
        self, problem: Problem, net: UnitNet, values: dict[tuple[int, ...], float]
    ) -> Placement:
        """The best answer that keeps to memory.

        Where none does, the cheapest units leave devices that are too full, or where that does not
        suffice bytes get prices; one device may take everything, but is often the slowest.
        """
        found = sorted(values, key=values.__getitem__)
        for devices in found:
            placement = problem.placement_of(devices)
            if _fits(problem, placement):
                return placement
        within: list[Placement] = []
        for devices in found[:STARTS]:
            left = (relieved(problem, net, devices, share) for share in _SHARES)
            within += islice((p for p in map(problem.placement_of, left) if _fits(problem, p)), 1)
        single = [p for p in map(problem.placement_of, alone(net)) if _fits(problem, p)]
        if not within:
            try:
                within = [within_memory(problem, lambda share: self._small(problem, net, share))]
            except ValueError:
                if not single:
                    raise
        return best_of(problem, [*within, *single])

    def _adjusted(self, problem: Problem, chosen: Placement, report: Report) -> Placement:
        """The placement after moves that make the step no longer, in an order that suits them."""
        visits = len(problem.kernels.ops) + problem.kernels.arrays.consumers.size
        num_moves = min(self.adjusting, _MAX_MOVE_VISITS // max(1, visits))
        if problem.objective is Objective.THROUGHPUT or num_moves == 0 or problem.num_devices == 1:
            return chosen
        start = start_of(problem, chosen)
        chain = Chain(problem, start, blocks(problem), seed=self.seed, kick=_KICK)
        improve(problem, [chain], report, max_iterations=num_moves)
        return best_of(problem, [chosen, chain.placement])

    def _variants(self, problem: Problem, net: UnitNet, limit: int) -> Iterator[_Variant]:
        """One variant after another, the most promising first."""
        found = ceft(problem)
        device = critical_devices(problem, found)
        if problem.objective is Objective.THROUGHPUT:
            yield from self._balanced(problem, net, device, limit)
            return
        together = rivals(problem, found.table, self.reach)
        for factor in _SHARING:
            shared = joined(net, together, factor)
            said = f"sharing a device costs {factor:g} times"
            yield self._variant(said, shared)
            yield self._variant(f"{said}, critical path fixed", fixed(shared, device))
            dearer = weighted(shared, device >= 0, self.critical_weight)
            yield self._variant(f"{said}, critical path {self.critical_weight:g} times", dearer)

    def _balanced(
        self, problem: Problem, net: UnitNet, device: Ints, limit: int
    ) -> Iterator[_Variant]:
        """Rounds that make the devices dearer that carry most, free and held to pipeline stages.

        A unit away from its stage in declared order costs half as much again, or three times.
        """
        prices = np.full(problem.num_devices, 1.0 / problem.num_devices)
        yield self._variant("critical path fixed", fixed(net, device))
        for number in range(limit):
            stage = stages(net.node_s, prices)
            for pull in (0.0, 0.5, 2.0):
                away = np.arange(prices.size) != stage[:, None]
                held = net._replace(node_s=net.node_s * np.where(away, 1.0 + pull, 1.0))
                said = f"round {number + 1}, held to stages by {pull:g}"
                variant = self._variant(said, priced(held, prices))
                yield variant
                loads = loads_s(net, np.array(variant[2]))
                if loads.max() > 0.0:
                    step = 1.0 / (1.0 + number)
                    prices = prices * np.exp(step * (loads / loads.max() - 0.5))
                    prices /= prices.sum()

    def _small(self, problem: Problem, net: UnitNet, share: float) -> Placement:
        """The program with prices on bytes, raised until no device is above a share of its limit.

        After 20 rounds it may still be; the caller checks.
        """
        limits = share * limit_bytes(problem)
        size = unit_bytes(problem)
        finite = net.node_s[np.isfinite(net.node_s)]
        price = float(finite.sum()) / max(1.0, float(size.sum())) / problem.num_devices
        prices = np.zeros(problem.num_devices)
        devices: tuple[int, ...] = ()
        for _ in range(20):
            dear = net._replace(node_s=net.node_s + size[:, None] * prices)
            devices = self._solved(dear)
            held = np.bincount(np.array(devices), size, problem.num_devices)
            if (held <= limits).all():
                break
            prices = prices + price * (held > limits)
        return problem.placement_of(devices)

    def _variant(self, name: str, net: UnitNet) -> _Variant:
        return name, net, self._solved(net)

    def _solved(self, net: UnitNet) -> tuple[int, ...]:
        return solve_packed(net.packed(), max_expanded=self.exact_expansions).choice


def _fits(problem: Problem, placement: Placement) -> bool:
    """Whether every device keeps to its memory."""
    return not missing_bytes(problem, placement).any()


def value_s(problem: Problem, placement: Placement) -> float:
    """The objective of a placement before segments are merged, in seconds."""
    return throughput.value_s(problem, make_schedule(problem, placement, merge=False))


def alone(net: UnitNet) -> list[tuple[int, ...]]:
    """Everything on one device, for each in turn; what it cannot run goes where it is cheapest."""
    cheapest = net.node_s.argmin(axis=1)
    devices = (
        np.where(np.isfinite(seconds), d, cheapest) for d, seconds in enumerate(net.node_s.T)
    )
    return [tuple(choice.tolist()) for choice in devices]


def critical_devices(problem: Problem, found: Ceft) -> Ints:
    """CEFT's device for each unit (U,) on the critical path, -1 for the others.

    Where CEFT splits a unit, the device that takes most of its critical seconds.
    """
    seconds = np.zeros((problem.num_units, problem.num_devices))
    critical = np.zeros(problem.num_units, dtype=np.bool_)
    for k, d in zip(found.path, found.devices, strict=True):
        unit = int(problem.unit_of_kernel[k])
        seconds[unit, d] += problem.costs.compute_s[k, d] + 1e-30
        critical[unit] = True
    return np.where(critical, seconds.argmax(axis=1), -1)


def stages(node_s: Floats, prices: Floats) -> Ints:
    """Pipeline stage of each unit (U,): declared order cut where devices have had equal work.

    Work is a unit's least time. A device gets less the dearer it is.
    """
    work_s = node_s.min(axis=1)
    work_s[~np.isfinite(work_s)] = 0.0
    borders = np.cumsum(1.0 / prices)
    middle = np.cumsum(work_s) - work_s / 2.0
    position = middle / max(float(work_s.sum()), 1e-300) * borders[-1]
    stage = np.searchsorted(borders, position, side="right")
    return np.asarray(np.minimum(stage, prices.size - 1), dtype=np.int64)


def loads_s(net: UnitNet, device: Ints) -> Floats:
    """Seconds (D,) that each device computes, sends and receives."""
    num_devices = net.node_s.shape[1]
    busy = np.bincount(device, net.node_s[np.arange(device.size), device], num_devices)
    first, second = device[net.ends[:, 0]], device[net.ends[:, 1]]
    moves = net.edge_s[np.arange(first.size), first, second]
    for ends in (first, second):
        busy = busy + np.bincount(ends, moves, num_devices)
    return np.asarray(busy, dtype=np.float64)


PLACER = CeftPbqp
