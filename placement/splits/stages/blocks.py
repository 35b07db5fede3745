"""Blocks: what no border between stages divides, in an order that respects forward data.

A stage holds backward ops beside the forward ops whose gradients they make, so forward edges alone
order the blocks; a block without forward ops takes part through its backward edges, mirrored
(Tarnawski et al., NeurIPS 2020, on training graphs). What lies on a forward cycle is one block.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from placement.core.costs import Floats
from placement.core.decoding import shown
from placement.core.formatting import counted
from placement.core.graph import Graph, Ints, starts, topological_order
from placement.core.problem import Problem
from placement.simulator.alike import alike_rows
from placement.splits.model.instance import Bools

# The attribute by which a backward op names its forward op.
MATE = "derived from"


@dataclass(frozen=True, eq=False)
class Nets:
    """Tensors (T) that leave a block: `maker` is -1 for a model input, `readers` are other blocks.

    Readers are rows of `reader_ptr`, in increasing order. `is_late` is what backward or update
    kernels make, `returns` what goes back to the host from devices with memory of their own.
    """

    maker: Ints
    reader_ptr: Ints
    readers: Ints
    num_bytes: Floats
    is_late: Bools
    returns: Bools

    @property
    def net_of_reader(self) -> Ints:
        return np.repeat(np.arange(len(self.maker)), np.diff(self.reader_ptr))


class Times(NamedTuple):
    """Seconds by class (N, C) of devices that take as long for all, infinite where these may not
    run something, and the class of each device (D,)."""

    seconds: Floats
    of_device: Ints


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks (B) of a problem, numbered in topological order, and the nets between them.

    `edges` (E, 2) are pairs of blocks, each once and sorted. `times` are those of blocks, and
    `unit_times` those of the units that they are made of. Of `sizes` (B, 5) the columns are bytes
    of weights, of values that forward kernels make, of those among them that backward kernels read,
    of all other values, and of state.
    """

    problem: Problem
    block_of_unit: Ints
    edges: Ints
    times: Times
    unit_times: Times
    sizes: Floats
    nets: Nets

    @property
    def num_blocks(self) -> int:
        return len(self.times.seconds)

    def compute_s(self, devices: Ints) -> Floats:
        """Seconds of each block on some devices (B, N), infinite where it may not be there."""
        return self.times.seconds[:, self.times.of_device[devices]]

    @cached_property
    def least_s(self) -> Floats:
        """Seconds of each block (B,) on its fastest device."""
        least: Floats = self.times.seconds.min(axis=1, initial=np.inf)
        return least

    @cached_property
    def successors(self) -> tuple[Ints, Ints]:
        """Blocks behind each block, as CSR rows."""
        counts = np.bincount(self.edges[:, 0], minlength=self.num_blocks)
        return starts(counts), np.ascontiguousarray(self.edges[:, 1])

    @cached_property
    def predecessors(self) -> tuple[Ints, Ints]:
        by_end = np.lexsort((self.edges[:, 0], self.edges[:, 1]))
        counts = np.bincount(self.edges[:, 1], minlength=self.num_blocks)
        return starts(counts), np.ascontiguousarray(self.edges[by_end, 0])

    def joined(self, into: Ints) -> "Blocks":
        """Coarser blocks: each goes into the one that `into` (B,) names; no cycle may arise."""
        units = into[self.block_of_unit]
        return _numbered(self.problem, self.unit_times, units, into[self.edges])


def blocks_of(problem: Problem) -> Blocks:
    """The finest blocks of a problem."""
    group = _with_mates(problem)
    makers, readers = _kernel_edges(problem.kernels)
    of_kernel, late = group[problem.unit_of_kernel], _late(problem.kernels)
    has_forward = np.zeros(problem.num_units, dtype=np.bool_)
    has_forward[of_kernel[~late]] = True
    a, b = of_kernel[makers], of_kernel[readers]
    forward = ~late[makers] & ~late[readers]
    mirrored = late[makers] & late[readers] & ~(has_forward[a] & has_forward[b])
    edges = np.concatenate([np.stack([a, b], axis=1)[forward], np.stack([b, a], axis=1)[mirrored]])
    blocks = _numbered(problem, _unit_times(problem), *_without_cycles(group, edges))
    _require_devices(blocks)
    return blocks


def _require_devices(blocks: Blocks) -> None:
    homeless = np.flatnonzero(np.isinf(blocks.least_s))
    if homeless.size:
        problem = blocks.problem
        units = np.flatnonzero(blocks.block_of_unit == homeless[0])
        ops = [problem.graph.ops[i].name for u in units for i in problem.ops_of_unit[u]]
        raise ValueError(
            f"Op {shown(ops[0])} and what must lie in one stage with it,"
            f" {counted(len(ops), 'op')} in all, have no device that may run all of them; remove a"
            " pin or choose another machine."
        )


def _unit_times(problem: Problem) -> Times:
    seconds = np.where(problem.allowed, problem.unit_s, np.inf)
    of_device, first = alike_rows(seconds.T)
    return Times(seconds[:, first], of_device)


def _late(kernels: Graph) -> Bools:
    return np.array([op.phase != "forward" for op in kernels.ops], dtype=np.bool_)


def _kernel_edges(kernels: Graph) -> tuple[Ints, Ints]:
    """Maker and reader of each value that a kernel reads of another."""
    arrays = kernels.arrays
    maker = np.repeat(arrays.producer, np.diff(arrays.consumer_ptr))
    return maker[maker >= 0], arrays.consumers[maker >= 0]


def _with_mates(problem: Problem) -> Ints:
    """A number for each unit (U,), the same for those that training keeps together.

    Backward ops lie with their forward ops, what an update hands on with the update.
    """
    graph, unit = problem.graph, problem.unit_of_op.tolist()
    above = list(range(problem.num_units))

    def root(u: int) -> int:
        while above[u] != u:
            above[u] = above[above[u]]
            u = above[u]
        return u

    for i, op in enumerate(graph.ops):
        if op.phase == "forward" or _accumulates(graph, i):
            continue
        named = (value for key, value in op.attributes if key == MATE)
        mates = [graph.index[name] for name in named if name in graph.index]
        if op.phase == "update" and len(graph.predecessors[i]) == 1:
            mates += graph.predecessors[i]
        for mate in mates:
            first, second = sorted((root(unit[i]), root(unit[mate])))
            above[second] = first
    return np.array([root(u) for u in range(problem.num_units)], dtype=np.int64)


def _accumulates(graph: Graph, i: int) -> bool:
    """Whether an op adds up gradients that come from several ops.

    It belongs to the value that they read, but a trace notes whatever forward op came last.
    """
    op, before = graph.ops[i], graph.predecessors[i]
    is_sum = op.phase == "backward" and op.kind.startswith("add") and len(before) > 1
    return is_sum and all(graph.ops[p].phase == "backward" for p in before)


def _without_cycles(group: Ints, edges: Ints) -> tuple[Ints, Ints]:
    """The same with all groups on a cycle as one."""
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(np.unique(group).tolist())
    graph.add_edges_from(edges.tolist())
    first = np.arange(group.max(initial=-1) + 1)
    for members in nx.strongly_connected_components(graph):
        first[list(members)] = min(members)
    return first[group], first[edges]


def _numbered(problem: Problem, unit_times: Times, group: Ints, edges: Ints) -> Blocks:
    """Blocks of groups of units, numbered so that edges lead to larger numbers."""
    names, number = np.unique(group, return_inverse=True)
    pairs = np.searchsorted(names, edges)
    num = len(names)
    codes = np.unique((pairs[:, 0] * num + pairs[:, 1])[pairs[:, 0] != pairs[:, 1]])
    after: list[list[int]] = [[] for _ in names]
    for a, b in zip((codes // num).tolist(), (codes % num).tolist(), strict=True):
        after[a].append(b)
    order = topological_order(num, after)
    assert order is not None, "blocks have a cycle"
    rank = np.empty(num, dtype=np.int64)
    rank[order] = np.arange(num)
    block_of_unit = rank[number]
    codes = np.sort(rank[codes // num] * num + rank[codes % num])
    pairs = np.stack([codes // num, codes % num], axis=1)
    sums = [np.bincount(block_of_unit, column, num) for column in unit_times.seconds.T]
    times = Times(np.stack(sums, axis=1), unit_times.of_device)
    block_of_kernel = block_of_unit[problem.unit_of_kernel]
    sizes = _sizes(problem, block_of_kernel, num)
    nets = _nets(problem, block_of_kernel)
    return Blocks(problem, block_of_unit, pairs, times, unit_times, sizes, nets)


def _sizes(problem: Problem, block_of_kernel: Ints, num_blocks: int) -> Floats:
    arrays, late = problem.kernels.arrays, _late(problem.kernels)
    sizes = np.zeros((num_blocks, 5))
    np.add.at(sizes[:, 0], block_of_kernel, arrays.param_bytes)
    np.add.at(sizes[:, 4], block_of_kernel, arrays.resident_bytes - arrays.param_bytes)
    made = np.flatnonzero(arrays.producer >= 0)
    maker = arrays.producer[made]
    tensor = np.repeat(np.arange(len(arrays.producer)), np.diff(arrays.consumer_ptr))
    read_late = np.zeros(len(arrays.producer), dtype=np.bool_)
    read_late[tensor[late[arrays.consumers]]] = True
    for column, which in (
        (1, ~late[maker]),
        (2, ~late[maker] & read_late[made]),
        (3, late[maker]),
    ):
        held = arrays.tensor_bytes[made[which]]
        np.add.at(sizes[:, column], block_of_kernel[maker[which]], held)
    return sizes


def _nets(problem: Problem, block_of_kernel: Ints) -> Nets:
    arrays, late = problem.kernels.arrays, _late(problem.kernels)
    num = max(1, int(block_of_kernel.max(initial=-1)) + 1)
    made = arrays.producer >= 0
    maker = np.full(len(arrays.producer), -1, dtype=np.int64)
    maker[made] = block_of_kernel[arrays.producer[made]]
    is_late = np.zeros(len(maker), dtype=np.bool_)
    is_late[made] = late[arrays.producer[made]]
    tensor = np.repeat(np.arange(len(maker)), np.diff(arrays.consumer_ptr))
    reader = block_of_kernel[arrays.consumers]
    away = reader != maker[tensor]
    pairs = np.unique(tensor[away] * num + reader[away])
    which, reader_ptr = _rows(pairs // num)
    return Nets(
        maker=maker[which],
        reader_ptr=reader_ptr,
        readers=pairs % num,
        num_bytes=arrays.tensor_bytes[which],
        is_late=is_late[which],
        returns=arrays.is_output[which] & made[which],
    )


def _rows(owner: Ints) -> tuple[Ints, Ints]:
    """Owners, each once, and where the row of each begins; `owner` is sorted."""
    names, counts = np.unique(owner, return_counts=True)
    return names, starts(counts)


def rows_of(ptr: Ints, values: Ints) -> list[list[int]]:
    """CSR rows as lists."""
    listed, ends = values.tolist(), ptr.tolist()
    return [listed[a:b] for a, b in pairwise(ends)]
