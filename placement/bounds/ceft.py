"""CEFT: the critical path of a graph on devices of unequal speed, with the devices it runs on.

Vasudevan and Gregg, "Mutual inclusivity of the critical path and its partial schedule on
heterogeneous systems", arXiv 1701.08800, 2017. CEFT(k, d) = w(k, d) + the largest over inputs of
the least over their producer's devices of CEFT(producer, d') + transfer(d', d). Every input is free
to choose its producer's device on its own, and nothing queues, so no schedule is faster. Devices
that are alike (`simulator/alike.py`) have equal entries, so that the table is worked out for their
classes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.problem import Problem
from placement.simulator.alike import quotient
from placement.simulator.flat import Flat, flatten


@dataclass(frozen=True, eq=False)
class Ceft:
    """The critical path: `path` lists kernels from first to last, `devices` where each runs.

    `table[k, d]` is the earliest finish of kernel k on device d (infinite where not allowed), in
    seconds; `length_s` is the last kernel's, with its model outputs back on the host.
    """

    length_s: float
    path: tuple[int, ...]
    devices: tuple[int, ...]
    table: Floats


def ceft(problem: Problem) -> Ceft:
    """The critical path under allowed devices; model inputs start on the host, outputs end there.

    Of several tensors between two kernels the slowest counts; calls cost nothing. The length is a
    lower bound on the simulated latency of every placement, with the transfers of `Problem`'s
    executions "op" and "segment". O(C^2 x reads) time for C classes of devices.
    """
    from placement.bounds.ceft_compiled import earliest_finish

    flat, fewer = flatten(problem), quotient(problem)
    table = np.ascontiguousarray(earliest_finish(fewer.flat)[:, fewer.of_device])
    ends = table + _return_s(flat)
    if not len(ends):
        return Ceft(0.0, (), (), table)
    last = int(ends.min(axis=1).argmax())
    path = _traced(flat, table, last, int(ends[last].argmin()))
    kernels, devices = zip(*path, strict=True)
    return Ceft(float(ends[last].min()), kernels, devices, table)


@dataclass(frozen=True, eq=False)
class Row:
    """A kernel's row of CEFT's table: `finish_s` (D,), infinite where it may not run.

    `origins[d]` is the (kernel, device) that it waits for longest on device d, None where nothing
    but its own time counts.
    """

    kernel: int
    finish_s: Floats
    origins: tuple[tuple[int, int] | None, ...]


def rows(problem: Problem) -> Iterator[Row]:
    """The table of `ceft`, kernel by kernel, in topological order."""
    from placement.bounds.ceft_compiled import finish_of

    flat = flatten(problem)
    table: Floats = np.full(flat.compute_s.shape, np.inf)
    for k in range(table.shape[0]):
        finish_of(flat, table, k)
        origins: list[tuple[int, int] | None] = []
        for d in range(table.shape[1]):
            path = _traced(flat, table, k, d) if np.isfinite(table[k, d]) else []
            origins.append(path[-2] if len(path) > 1 else None)
        yield Row(k, table[k].copy(), tuple(origins))


def through_s(problem: Problem) -> Floats:
    """(U, D) seconds that a step takes at least when unit u runs on device d.

    The longest of CEFT from the start through one of the unit's kernels on d, and the same from
    there to the end; infinite where d is not allowed. The least of a row bounds every placement,
    as the unit runs somewhere and as a whole.
    """
    longest, of_device = _through_classes_s(problem)
    return longest[:, of_device]


def least_through_s(problem: Problem) -> Floats:
    """(U,) the least of each row of `through_s`."""
    least: Floats = _through_classes_s(problem)[0].min(axis=1)
    return least


def _through_classes_s(problem: Problem) -> tuple[Floats, Ints]:
    """The same by class (U, C), and the class of each device (D,)."""
    from placement.bounds.ceft_compiled import earliest_finish, latest_rest

    flat, of_device = quotient(problem)
    longest = np.where(flat.allowed, 0.0, np.inf)
    np.maximum.at(longest, flat.unit_of_kernel, earliest_finish(flat) + latest_rest(flat))
    return longest, of_device


def _return_s(flat: Flat) -> Floats:
    """(K, D) seconds that the slowest model output of a kernel takes from a device to the host."""
    num_kernels, num_devices = flat.compute_s.shape
    seconds = np.zeros((num_kernels, num_devices))
    if flat.host < 0:
        return seconds
    outputs = np.flatnonzero(flat.is_output & (flat.producer >= 0))
    to_host = flat.move_s[:, flat.host] + np.outer(
        flat.tensor_bytes[outputs], flat.s_per_byte[:, flat.host]
    )
    np.maximum.at(seconds, flat.producer[outputs], np.where(flat.on_host, 0.0, to_host))
    return seconds


def _traced(flat: Flat, table: Floats, k: int, d: int) -> list[tuple[int, int]]:
    """(kernel, device) pairs of the path that ends with kernel k on device d, first to last.

    Ties go to the input and the device declared first; a path also starts where the model's own
    input arrives later than everything else.
    """
    path = [(k, d)]
    while True:
        latest, origin = 0.0, (-1, -1)
        for t in flat.in_tensors[flat.in_ptr[k] : flat.in_ptr[k + 1]].tolist():
            p = int(flat.producer[t])
            if p < 0:
                sent = flat.move_s[flat.host] + flat.tensor_bytes[t] * flat.s_per_byte[flat.host]
                arrived = float(sent[d]) if flat.host >= 0 and not flat.on_host[d] else 0.0
                source = (-1, -1)
            else:
                moves = flat.move_s[:, d] + flat.tensor_bytes[t] * flat.s_per_byte[:, d]
                moves[d] = 0.0
                arrivals = table[p] + moves
                source = (p, int(arrivals.argmin()))
                arrived = float(arrivals.min())
            if arrived > latest or (arrived == latest and origin[0] < 0):
                latest, origin = arrived, source
        if origin[0] < 0:
            return path[::-1]
        k, d = origin
        path.append(origin)
