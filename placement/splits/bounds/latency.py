"""Bound on the latency of splits by subgraph calls: intervals along a path.

Follow one path of the graph. Its nodes on CPUs take their time one after another. A call holds one
interval of it, because nothing between two nodes of a call may wait outside. So the call holds the
interval's closure: all descendants of its nodes that are ancestors of others, their colour classes,
and so on. It takes the closure's compute and every value that surely crosses, and must fit into
memory. The least sum over all ways to cut the path, with as many calls as there are, bounds every
split from below, on whatever path.
"""

from collections.abc import Iterator

import numpy as np

from placement.core.costs import Floats
from placement.splits.model.instance import SplitInstance
from placement.splits.model.timing import TimedNodes, Timing, timing_of

MAX_nodes = 2000


def interval_bound_s(instance: SplitInstance, calls_each: int) -> float:
    """Seconds that no split with `calls_each` calls per accelerator can be below."""
    timing = timing_of(instance)
    if timing.num_nodes > MAX_nodes:
        return _fastest_path_s(timing)
    region = _Regions(timing)
    num_calls = instance.num_accelerators * calls_each
    return max(
        (region.path_bound_s(p, num_calls) for p in longest_paths(region.timing)), default=0.0
    )


def _fastest_path_s(timing: Timing) -> float:
    """The longest path if each node takes no more than its unit does on either kind of device."""
    units, nodes = timing.units, timing.nodes
    acc_s = np.where(units.on_acc, units.acc_s, np.inf)
    first = np.zeros(timing.num_nodes, dtype=np.bool_)
    first[nodes.in_unit[nodes.node_ptr[:-1]]] = True
    cpu_s = np.where(units.on_cpu[nodes.unit_of], nodes.cpu_s, np.inf)
    weight = np.minimum(cpu_s, np.where(first, acc_s[nodes.unit_of], 0.0))
    return float(weight[_longest_path(nodes, weight)].sum())


def longest_paths(timing: Timing) -> Iterator[list[int]]:
    """Longest paths by a few weights: CPU time, accelerator time, and number of nodes."""
    sizes = np.diff(timing.nodes.node_ptr)
    acc_s = timing.units.acc_s / np.maximum(sizes, 1)
    acc = np.where(timing.units.on_acc, acc_s, timing.units.cpu_s)[timing.nodes.unit_of]
    seen = []
    for weight in (timing.nodes.cpu_s, acc, np.ones(timing.num_nodes)):
        path = _longest_path(timing.nodes, weight)
        if path and path not in seen:
            seen.append(path)
            yield path


def _longest_path(nodes: TimedNodes, weight: Floats) -> list[int]:
    num = len(weight)
    length, before = weight.tolist(), [-1] * num
    for n in range(num):
        for p in nodes.pred[nodes.pred_ptr[n] : nodes.pred_ptr[n + 1]].tolist():
            if length[p] + weight[n] > length[n]:
                length[n], before[n] = length[p] + weight[n], p
    path = []
    n = int(np.argmax(length)) if num else -1
    while n >= 0:
        path.append(n)
        n = before[n]
    return path[::-1]


class _Regions:
    """Closures in a graph; sets of timed nodes are the bits of whole numbers."""

    def __init__(self, timing: Timing) -> None:
        self.timing = timing
        units, nodes = timing.units, timing.nodes
        num = timing.num_nodes
        self.cpu_s: list[float] = nodes.cpu_s.tolist()
        self.unit_of: list[int] = nodes.unit_of.tolist()
        self.members = [0] * units.num_units
        for n, u in enumerate(self.unit_of):
            self.members[u] |= 1 << n
        self.before, self.after = [0] * num, [0] * num
        succ = [nodes.succ[nodes.succ_ptr[n] : nodes.succ_ptr[n + 1]].tolist() for n in range(num)]
        for n in range(num):
            for v in succ[n]:
                self.before[v] |= self.before[n] | 1 << n
        for n in reversed(range(num)):
            for v in succ[n]:
                self.after[n] |= self.after[v] | 1 << v
        self.acc_s: list[float] = np.where(units.on_acc, units.acc_s, np.inf).tolist()
        self.on_cpu: list[bool] = units.on_cpu.tolist()
        self.size: list[float] = units.size_bytes.tolist()
        self.limit = units.instance.limit_bytes
        rows = np.split(units.net_units, units.net_ptr[1:-1])
        self.net_cost_s: list[float] = units.net_cost_s.tolist()
        self.net_nodes = [0] * len(self.net_cost_s)
        for net in range(len(self.net_cost_s)):
            for u in rows[net].tolist():
                self.net_nodes[net] |= self.members[u]

    def path_bound_s(self, path: list[int], num_calls: int) -> float:
        """The least sum over all cuts of a path into CPU nodes and at most `num_calls` calls."""
        least = np.full((len(path) + 1, num_calls + 1), np.inf)
        least[0] = 0.0
        for i, n in enumerate(path):
            if self.on_cpu[self.unit_of[n]]:
                least[i + 1] = np.minimum(least[i + 1], least[i] + self.cpu_s[n])
            if num_calls:
                for j, seconds in self._calls_from(path, i):
                    least[j, 1:] = np.minimum(least[j, 1:], least[i, :-1] + seconds)
        return float(least[-1].min())

    def _calls_from(self, path: list[int], i: int) -> Iterator[tuple[int, float]]:
        """Ends and least seconds of the calls whose first path node is the i-th."""
        closure = before = after = 0
        work = size = 0.0
        for j in range(i, len(path)):
            new = self.members[self.unit_of[path[j]]] & ~closure
            while new:
                for n in _bits(new):
                    before |= self.before[n]
                    after |= self.after[n]
                for u in sorted({self.unit_of[n] for n in _bits(new)}):
                    work += self.acc_s[u]
                    size += self.size[u]
                closure |= new
                new = self._whole(before & after & ~closure) & ~closure
            if size > self.limit or work == np.inf:
                return
            outside = self._outside(path, i, j, before, after)
            if not outside & closure:
                yield j + 1, work + self._crossing_s(closure, outside)

    def _whole(self, nodes: int) -> int:
        """The nodes with all of their units."""
        whole = 0
        while nodes:
            unit = self.members[self.unit_of[(nodes & -nodes).bit_length() - 1]]
            whole |= unit
            nodes &= ~unit
        return whole

    def _outside(self, path: list[int], i: int, j: int, before: int, after: int) -> int:
        """Nodes that are surely not in a call that meets the path from its i-th to its j-th node.

        What is before a node outside that the call waits for is outside, and so on.
        """
        outside = 0
        new = (1 << path[i - 1] if i else 0) | (1 << path[j + 1] if j + 1 < len(path) else 0)
        while new:
            new = self._whole(new) & ~outside
            outside |= new
            found = 0
            for n in _bits(new):
                if before >> n & 1:
                    found |= self.before[n]
                if after >> n & 1:
                    found |= self.after[n]
            new = found & ~outside
        return outside

    def _crossing_s(self, closure: int, outside: int) -> float:
        return sum(
            cost
            for nodes, cost in zip(self.net_nodes, self.net_cost_s, strict=True)
            if nodes & closure and nodes & outside
        )


def _bits(nodes: int) -> Iterator[int]:
    """Numbers of the bits that are set, rising."""
    while nodes:
        low = nodes & -nodes
        yield low.bit_length() - 1
        nodes ^= low
