"""A graph as a chain of layers, cut into stages by dynamic programming (PipeDream, SOSP 2019)."""

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.annealing.throughput import max_load_s
from placement.splits.exact.table import Chain, Link
from placement.splits.model.contract import Units
from placement.splits.model.instance import Bools
from placement.splits.model.placements import Part, devices_of_parts


def chain_of_layers(units: Units) -> Chain | None:
    """Stages of the topological order, with their true loads; None if none keep all limits.

    A stage takes what crosses its begin and its end in the chain, besides its compute.
    """
    instance = units.instance
    k, cpus, num = instance.num_accelerators, instance.num_cpus, units.num_units
    stages = _Stages(units)
    best = np.full((num + 1, k + 1, cpus + 1), np.inf)
    begin = np.full((2, num + 1, k + 1, cpus + 1), -1, dtype=np.int64)
    best[0, 0, 0] = 0.0
    for end in range(1, num + 1):
        loads_s = stages.loads_s(end)
        options = np.full((2, k + 1, cpus + 1), np.inf)
        if k:
            value = np.maximum(best[:end, :-1], loads_s[0][:, None, None])
            begin[0, end, 1:], options[0, 1:] = value.argmin(axis=0), value.min(axis=0)
        if cpus:
            value = np.maximum(best[:end, :, :-1], loads_s[1][:, None, None])
            begin[1, end, :, 1:], options[1, :, 1:] = value.argmin(axis=0), value.min(axis=0)
        best[end] = options.min(axis=0)
        # Stages on a CPU are told by begins beyond the chain.
        on_cpu = options[1] < options[0]
        begin[0, end] = np.where(on_cpu, begin[1, end] + num + 1, begin[0, end])
    if not np.isfinite(best[num]).any():
        return None
    return _traced(units, best, begin[0])


def _traced(units: Units, best: Floats, begin: Ints) -> Chain:
    num, last = units.num_units, best[-1]
    a, c = (int(x) for x in np.unravel_index(int(last.argmin()), last.shape))
    end = num
    parts: list[Part] = []
    links: list[Link] = []
    while end > 0:
        on_cpu, start = divmod(int(begin[end, a, c]), num + 1)
        parts.append(Part(bool(on_cpu), np.arange(start, end)))
        links.append(Link(np.arange(start, end), best[end].copy(), (a, c)))
        a, c, end = a - (not on_cpu), c - on_cpu, start
    device_of_unit, replicas = devices_of_parts(units, parts[::-1])
    load_s = max_load_s(units, device_of_unit)
    found = tuple(links[::-1])
    return Chain(device_of_unit, replicas, load_s, links=found, num_ideals=len(best))


class _Stages:
    """Prefix sums over the chain, (U + 1,) each, from which loads of stages follow."""

    def __init__(self, units: Units) -> None:
        self._limit_bytes = units.instance.limit_bytes
        self._overlap = units.instance.rules.overlap
        self._acc_s = _prefix(np.where(units.on_acc, units.acc_s, 0.0))
        self._cpu_s = _prefix(np.where(units.on_cpu, units.cpu_s, 0.0))
        self._size_bytes = _prefix(units.size_bytes)
        self._no_acc, self._no_cpu = _prefix(~units.on_acc), _prefix(~units.on_cpu)
        self._pins = _prefix(units.pinned >= 0)
        # A net crosses every border between its first and its last unit.
        step = np.zeros(units.num_units + 1)
        if len(units.net_cost_s):
            np.add.at(step, units.net_units[units.net_ptr[:-1]] + 1, units.net_cost_s)
            np.subtract.at(step, units.net_units[units.net_ptr[1:] - 1] + 1, units.net_cost_s)
        self._crossing_s = np.cumsum(step)

    def loads_s(self, end: int) -> tuple[Floats, Floats]:
        """Loads of the stages that begin at 0 to `end` - 1, on an accelerator and on a CPU."""
        whole: Bools = self._pins[end] - self._pins[:end] <= 1
        acc_ok = whole & (self._no_acc[end] == self._no_acc[:end])
        acc_ok &= self._size_bytes[end] - self._size_bytes[:end] <= self._limit_bytes
        cpu_ok = whole & (self._no_cpu[end] == self._no_cpu[:end])
        moved_s = self._crossing_s[:end] + self._crossing_s[end]
        work_s = self._acc_s[end] - self._acc_s[:end]
        acc_s = np.maximum(work_s, moved_s) if self._overlap else work_s + moved_s
        cpu_s = self._cpu_s[end] - self._cpu_s[:end]
        return np.where(acc_ok, acc_s, np.inf), np.where(cpu_ok, cpu_s, np.inf)


def _prefix(values: Floats | Bools) -> Floats:
    return np.concatenate([[0.0], np.cumsum(values.astype(np.float64))])
