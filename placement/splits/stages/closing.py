"""Closing the gap: split by split, those whose loads may be below those of the best known one.

The recurrence takes transfers for as cheap as any link makes them and lets a value be sent once,
for the stages behind are not known to it. So its value is a lower bound, and chains below the best
known value are followed from their ends, where loads become exact as stages are fixed. That is
branch and bound with the recurrence's values as bounds.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.simulator.lowering import host_of
from placement.splits.stages.blocks import Blocks
from placement.splits.stages.chains import Chains
from placement.splits.stages.table import on_host, outputs_s

# Partial splits to look at, and whole ones to have evaluated by the kernels of the graph.
MOST_PARTIAL = 4_000
MOST_VISITED = 100_000
# Values that differ by less are the same.
SAME = 1e-9


@dataclass(frozen=True, eq=False)
class Closed:
    """The best value, whether no split of its kind is better, and the split by device of each
    block (B,), None for the one that was known."""

    device_of_block: Ints | None
    value_s: float
    is_best: bool


def closed(chains: Chains, value_s: float, evaluate: Callable[[Ints], float]) -> Closed:
    """The best split, given the value of one and the function that values splits by device of each
    block (B,).

    `chains` must be known up to `value_s`.
    """
    search = _Search(chains, value_s, evaluate)
    promised_s = chains.by_state_s(-1)
    states = np.argsort(promised_s, kind="stable").tolist()
    unknown = np.full(chains.ideals.blocks.num_blocks, -1, dtype=np.int64)
    for state in states:
        if promised_s[state] < search.limit_s:
            search.follow(len(chains.best_s) - 1, int(state), unknown)
    return Closed(search.device_of_block, search.value_s, search.left >= 0)


class _Search:
    """Chains from their ends, those that promise most first."""

    def __init__(self, chains: Chains, value_s: float, evaluate: Callable[[Ints], float]) -> None:
        self._chains, self._evaluate = chains, evaluate
        self.device_of_block: Ints | None = None
        self.value_s = value_s
        num_kernels = len(chains.ideals.blocks.problem.kernels.ops)
        self.left = MOST_PARTIAL
        self._whole_left = max(10, MOST_VISITED // max(1, num_kernels))
        self._loads = Loads(chains.ideals.blocks)

    @property
    def limit_s(self) -> float:
        """Only what is below is worth looking at."""
        return self.value_s * (1.0 - SAME)

    def follow(self, j: int, state: int, device_of_block: Ints) -> None:
        """Try all stages that end at ideal j, where `state` counts the devices up to there."""
        ideals = self._chains.ideals
        kinds = ideals.kinds
        if j == 0:
            self._whole_left -= 1
            if self._whole_left < 0:
                self.left = -1
                return
            value_s = self._evaluate(device_of_block)
            if value_s < self.value_s:
                self.value_s, self.device_of_block = value_s, device_of_block
            return
        for promised_s, i, way in self._stages(j, state):
            if promised_s >= self.limit_s:
                continue
            self.left -= 1
            if self.left < 0:
                return
            further = device_of_block.copy()
            further[ideals.between(i, j)] = kinds.device_of(way, state)
            if self._loads.least_s(further) < self.limit_s:
                before = state - int(kinds.stride[kinds.kind[way]])
                self.follow(i, before, further)

    def _stages(self, j: int, state: int) -> list[tuple[float, int, int]]:
        """Ideals before j and ways, by the least value that the chain through them can have."""
        from placement.splits.stages.stages_compiled import stage_loads_s

        chains, ideals = self._chains, self._chains.ideals
        table, kinds = ideals.table, ideals.kinds
        near = table.least_s[j] - table.least_s[:j] < self.limit_s
        loads_s = np.empty(len(kinds.kind))
        used = kinds.used[state]
        before = [state - int(kinds.stride[k]) if used[k] else -1 for k in kinds.kind]
        before_s = {s: chains.by_ideal_s(s)[:j] for s in before if s >= 0}
        reached = np.zeros(j, dtype=np.bool_)
        for values_s in before_s.values():
            reached |= values_s < self.limit_s
        found = []
        for i in np.flatnonzero(near & reached).tolist():
            if not ideals.contains(j, i):
                continue
            stage_loads_s(table, i, j, False, loads_s)
            for way, s in enumerate(before):
                if s >= 0:
                    promised_s = max(float(before_s[s][i]), float(loads_s[way]))
                    if promised_s < self.limit_s:
                        found.append((promised_s, i, way))
        return sorted(found)


class Loads:
    """Least loads of splits of which the last stages are known.

    They are those of the simulator but for contention, and for calls, of which each device makes
    one at least.
    """

    def __init__(self, blocks: Blocks) -> None:
        self._blocks, problem = blocks, blocks.problem
        self._host, self._off_host = host_of(problem), ~on_host(problem)
        self._net = blocks.nets.net_of_reader
        devices = np.arange(problem.num_devices)
        self._compute_s = blocks.compute_s(devices)
        self._outputs_s = outputs_s(blocks, devices)
        with_kernels = np.zeros(blocks.num_blocks, dtype=np.bool_)
        with_kernels[blocks.block_of_unit[problem.unit_of_kernel]] = True
        self._with_kernels = with_kernels

    def least_s(self, device_of_block: Ints) -> float:
        """Least largest load; blocks (B,) on -1 are on other devices than those that are known."""
        problem, nets = self._blocks.problem, self._blocks.nets
        costs, num = problem.costs, problem.num_devices
        known = np.flatnonzero(device_of_block >= 0)
        device = device_of_block[known]
        loads_s: Floats = np.zeros(num)
        loads_s += np.bincount(device, self._compute_s[known, device], num)
        back_s = self._outputs_s[known, device]
        loads_s += np.bincount(device, back_s, num)
        if self._host >= 0:
            loads_s[self._host] += back_s.sum()
        used = np.unique(device_of_block[self._with_kernels & (device_of_block >= 0)])
        loads_s[used] += costs.call_s[used]
        links_s = np.zeros(num * num)

        reader = device_of_block[nets.readers]
        pairs = np.unique((self._net * num + reader)[reader >= 0])
        net, end = pairs // num, pairs % num
        maker = nets.maker[net]
        begin = np.where(maker >= 0, device_of_block[maker], self._host)
        # An output that the host reads returns there once.
        returned = nets.returns[net] & (end == self._host)
        given = (maker < 0) & ((self._host < 0) | ~self._off_host[end])
        sent = (begin != end) & (begin >= 0) & ~given
        sent &= ~(returned & self._off_host[np.maximum(begin, 0)])
        src, dst = begin[sent], end[sent]
        move_s = costs.latency_s[src, dst] + nets.num_bytes[net[sent]] * costs.s_per_byte[src, dst]
        loads_s += np.bincount(src, move_s, num) + np.bincount(dst, move_s, num)
        links_s += np.bincount(src * num + dst, move_s, num * num)
        engine = problem.machine.places.engine
        for d in np.flatnonzero(engine != np.arange(num)).tolist():
            loads_s[engine[d]] += loads_s[d]
        return float(max(loads_s.max(), links_s.max()))
