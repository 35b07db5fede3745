"""Ideals of blocks with what the recurrence over stages reads: all, or those of a linear order."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints, starts
from placement.core.problem import Problem
from placement.simulator.lowering import host_of
from placement.splits.model.instance import Bools
from placement.splits.stages.blocks import Blocks
from placement.splits.stages.kinds import Kinds

if TYPE_CHECKING:
    from placement.splits.stages.stages_compiled import Table


@dataclass(frozen=True, eq=False)
class Ideals(ABC):
    """Ideals (M) of blocks, a smaller one before those that contain it, and their table."""

    blocks: Blocks
    kinds: Kinds
    table: "Table"

    @abstractmethod
    def between(self, i: int, j: int) -> Ints:
        """Blocks of ideal j that are not in ideal i, in increasing order."""

    @abstractmethod
    def contains(self, j: int, i: int) -> bool:
        """Whether ideal i is part of ideal j."""

    def with_values(self, memory_share: float, num_requests: int) -> Self:
        """The same where a stage keeps its values, too, and state of so many requests, within a
        share of memory.

        Counted as if all that is made and received were kept until the end of a call, and in two
        calls, what the second one reads: never too little. Values are let go before, and schedules
        that make more calls may need less, so only weights and state of one request count
        otherwise.
        """
        sizes = self.table.sizes.copy()
        sizes[:, 4] *= num_requests
        table = self.table._replace(
            is_live=self.blocks.problem.memory_model == "live",
            limit_bytes=memory_share * self.table.limit_bytes,
            sizes=sizes,
        )
        return replace(self, table=table)

    @property
    def most_s(self) -> float:
        """No load of any stage is larger."""
        table = self.table
        moved_s = table.receive_s + table.send_s
        moved_s = np.where(np.isfinite(moved_s), moved_s, 0.0).sum(axis=1)
        return float((table.work_s[-1] + table.call_s + moved_s).max()) * (1.0 + 1e-9)


@dataclass(frozen=True, eq=False)
class AllIdeals(Ideals):
    """All of them; `inside` (M, B) tells which blocks each one has."""

    inside: Bools

    def between(self, i: int, j: int) -> Ints:
        return np.flatnonzero(self.inside[j] & ~self.inside[i])

    def contains(self, j: int, i: int) -> bool:
        return not (self.inside[i] & ~self.inside[j]).any()


@dataclass(frozen=True, eq=False)
class Beginnings(Ideals):
    """The beginnings of a linear order of the blocks, `order` (B,)."""

    order: Ints

    def between(self, i: int, j: int) -> Ints:
        return np.sort(self.order[i:j])

    def contains(self, j: int, i: int) -> bool:
        return i <= j


def ideals_of(blocks: Blocks, kinds: Kinds, rows: Ints) -> AllIdeals:
    """All ideals of the blocks, given as rows of words."""
    from placement.splits.exact.ideals_compiled import WORD, sums_of

    least_s = sums_of(rows, blocks.least_s)
    order = np.lexsort((sums_of(rows, np.ones(blocks.num_blocks)), least_s))
    rows = np.ascontiguousarray(rows[order])
    b = np.arange(blocks.num_blocks)
    inside = (rows[:, b // WORD] >> (b % WORD) & 1).astype(np.bool_)
    nets = blocks.nets
    crossings = []
    for net, maker in enumerate(nets.maker.tolist()):
        readers = nets.readers[nets.reader_ptr[net] : nets.reader_ptr[net + 1]]
        read = inside[:, readers].sum(axis=1)
        made = inside[:, maker].astype(np.int64) if maker >= 0 else np.zeros_like(read)
        has = made + read
        where = np.flatnonzero((has > 0) & (has < len(readers) + (maker >= 0)))
        crossings.append((where, np.full(len(where), net), made[where], read[where]))
    empty = (np.zeros(0, dtype=np.int64),) * 4
    crossing = tuple(np.concatenate(each) for each in zip(*(crossings or [empty]), strict=True))

    def sums(values: Floats) -> Floats:
        found: Floats = sums_of(rows, np.ascontiguousarray(values))
        return found

    table = _table(blocks, kinds, rows, least_s[order], sums, crossing)
    return AllIdeals(blocks, kinds, table, inside)


def beginnings(blocks: Blocks, kinds: Kinds, order: Ints) -> Beginnings:
    """The ideals of a linear order."""
    position = np.empty(blocks.num_blocks, dtype=np.int64)
    position[order] = np.arange(blocks.num_blocks)

    def sums(values: Floats) -> Floats:
        return np.concatenate([[0.0], np.cumsum(values[order])])

    rows = np.zeros((blocks.num_blocks + 1, 0), dtype=np.int64)
    crossing = _crossing_in_order(blocks, position)
    table = _table(blocks, kinds, rows, sums(blocks.least_s), sums, crossing)
    return Beginnings(blocks, kinds, table, order)


def _crossing_in_order(blocks: Blocks, position: Ints) -> tuple[Ints, ...]:
    """Of each net at each border that it crosses: border, net, maker inside, readers inside."""
    nets = blocks.nets
    num = len(nets.maker)
    net = nets.net_of_reader
    read_at = position[nets.readers]
    made_at = np.where(nets.maker >= 0, position[nets.maker], -1)
    first = np.where(nets.maker >= 0, made_at, blocks.num_blocks)
    last = made_at.copy()
    np.minimum.at(first, net, read_at)
    np.maximum.at(last, net, read_at)
    spans = last - first
    of_row = np.repeat(np.arange(num), spans)
    border = np.arange(spans.sum()) - np.repeat(np.cumsum(spans) - spans, spans)
    border += np.repeat(first, spans) + 1
    made = ((nets.maker[of_row] >= 0) & (made_at[of_row] < border)).astype(np.int64)
    wide = blocks.num_blocks + 2
    reads = np.sort(net * wide + read_at)
    read = np.searchsorted(reads, of_row * wide + border) - nets.reader_ptr[of_row]
    return border, of_row, made, read


def _table(
    blocks: Blocks,
    kinds: Kinds,
    rows: Ints,
    least_s: Floats,
    sums: Callable[[Floats], Floats],
    crossing: tuple[Ints, ...],
) -> "Table":
    from placement.splits.stages.stages_compiled import Table

    problem, nets, devices = blocks.problem, blocks.nets, kinds.device
    places, costs = problem.machine.places, problem.costs
    border, net, made, read = crossing
    order = np.lexsort((net, border))
    compute_s = blocks.compute_s(devices)
    runs = np.isfinite(compute_s)
    own_s = np.where(runs, compute_s, 0.0) + outputs_s(blocks, devices)
    own_s += _lone_inputs_s(blocks, devices)
    receive_s, send_s = kinds.floors_s(nets.num_bytes)
    given = nets.maker < 0
    receive_s[:, given] = _host_s(problem, nets.num_bytes[given], devices)[0].T
    # What returns to the host anyway may have no other reader.
    off_host = ~on_host(problem)[devices] & (host_of(problem) >= 0)
    send_s[np.ix_(off_host, nets.returns)] = 0.0
    keeps = np.where(places.streams[devices], 0.0, 1.0)
    own = [np.inf if d.memory_bytes is None else d.memory_bytes for d in problem.machine.devices]
    return Table(
        rows=rows,
        least_s=least_s,
        work_s=_columns(sums, own_s),
        lacking=_columns(sums, (~runs).astype(np.float64)).astype(np.int64),
        sizes=_columns(sums, blocks.sizes),
        cross_ptr=starts(np.bincount(border, minlength=len(rows))),
        cross_nets=net[order],
        cross_made=made[order],
        cross_read=read[order],
        has_maker=(~given).astype(np.int64),
        num_readers=np.diff(nets.reader_ptr).astype(np.int64),
        num_bytes=nets.num_bytes.copy(),
        is_late=nets.is_late,
        receive_s=receive_s,
        send_s=send_s,
        call_s=costs.call_s[devices],
        limit_bytes=np.array(own, dtype=np.float64)[places.values[devices]],
        keeps=keeps,
        is_live=False,
        kind=kinds.kind,
        stride=kinds.stride,
        most=kinds.most,
    )


def _columns(sums: Callable[[Floats], Floats], values: Floats) -> Floats:
    """Sums of each column of values of blocks, in the layout that compiled code was made for."""
    return np.ascontiguousarray(np.stack([sums(column) for column in values.T], axis=1))


def outputs_s(blocks: Blocks, devices: Ints) -> Floats:
    """Seconds to return the model outputs of a block to the host from some devices (B, N)."""
    problem, arrays = blocks.problem, blocks.problem.kernels.arrays
    found = np.zeros((blocks.num_blocks, devices.size))
    outputs = np.flatnonzero(arrays.is_output & (arrays.producer >= 0))
    block_of_kernel = blocks.block_of_unit[problem.unit_of_kernel]
    back_s = _host_s(problem, arrays.tensor_bytes[outputs], devices)[1]
    np.add.at(found, block_of_kernel[arrays.producer[outputs]], back_s)
    return found


def _lone_inputs_s(blocks: Blocks, devices: Ints) -> Floats:
    """Seconds to bring the model inputs that a block reads alone from the host to some devices
    (B, N)."""
    nets = blocks.nets
    found = np.zeros((blocks.num_blocks, devices.size))
    lone = np.flatnonzero((nets.maker < 0) & (np.diff(nets.reader_ptr) == 1))
    seconds = _host_s(blocks.problem, nets.num_bytes[lone], devices)[0]
    np.add.at(found, nets.readers[nets.reader_ptr[lone]], seconds)
    return found


def _host_s(problem: Problem, num_bytes: Floats, devices: Ints) -> tuple[Floats, Floats]:
    """Seconds from the host to some devices and back for tensors (T,), (T, N) each; none for
    devices that compute in host memory."""
    host, costs = host_of(problem), problem.costs
    if host < 0:
        nothing = np.zeros((len(num_bytes), devices.size))
        return nothing, nothing
    away, size = ~on_host(problem)[devices], num_bytes[:, None]
    there = (costs.latency_s[host, devices] + size * costs.s_per_byte[host, devices]) * away
    back = (costs.latency_s[devices, host] + size * costs.s_per_byte[devices, host]) * away
    return there, back


def on_host(problem: Problem) -> Bools:
    """Which devices (D,) compute in host memory."""
    return np.array([d.on_host for d in problem.machine.devices], dtype=np.bool_)
