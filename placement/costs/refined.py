"""Measured costs, refined by what the segments of live runs took: kriging of kernels by segments.

A run tells the seconds of segments, not of kernels, and a profile is nearly right. So what a
segment took is held against what the profile says of it, and the difference is shared among what it
is made of, by how uncertain each part was (Rasmussen and Williams, "Gaussian processes for machine
learning", 2006, chapter 2):

    seconds = slower * (call_s + overhead_s
                        + sum over kernels of compute_s * (1 + all + kind + own))
              + crossings * latency_s + seconds of their bytes * (1 + slope)

`all` is common to every kernel of devices that are alike, `kind` to all kernels of one kind, `own`
is a kernel's; `overhead_s` is for what transfers hold it up, as measured; `slower` is what host
devices that compute beside it cost. All of these deviations, and those of `call_s`, `latency_s` and
`contention`, are zero in the profile, with the standard deviations below. A segment's seconds are
known as exactly as its steps repeat, but for what no such sum says (`SHARE` of them) and what all
of a run have in common (`RUN_SHARE`). The mean of what is then known is linear in the differences,
and where little was measured, or steps scatter, it stays near the profile. What only one segment
shows is thus believed of its kernels a little, what all segments with that kind of kernel show
nearly whole; the latter is what helps other placements.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from placement.core.costs import Costs, Floats
from placement.core.graph import Graph, Ints
from placement.core.machine import Device, Machine
from placement.core.profile import Refinement, RefiningRun

# Standard deviations of what a profile says, before a run is known: as shares of a kernel's
# seconds, seconds per call and per crossing, as a share of the seconds of bytes, and of contention.
ALL, KIND, OWN = 0.05, 0.05, 0.05
CALL_S, LATENCY_S, SLOPE, CONTENTION = 1e-5, 3e-5, 0.5, 0.1
# What a segment takes beside that sum, as a share of it and at least, and what a run does.
SHARE, LEAST_S, RUN_SHARE = 0.05, 2e-6, 0.02
# Further than this no kernel goes from its profile, whatever runs say.
LEAST, MOST = 0.25, 4.0
# Of more segments the longest.
MOST_SEGMENTS = 2000


def refined(costs: Costs, kernels: Graph, machine: Machine, refinement: Refinement) -> Costs:
    """The costs with what the runs of a refinement say, as far as its strength goes."""
    if not refinement.strength:
        return costs
    groups = _groups(machine.devices)
    parts = [_parts(costs, kernels, machine, groups, run) for run in refinement.runs]
    found = _mean(parts, costs, kernels, groups)
    share = refinement.strength
    on_host = np.array([device.on_host for device in machine.devices])
    lanes = on_host[:, None] & on_host[None, :] & ~np.eye(len(groups), dtype=np.bool_)
    factor = np.clip(1 + share * found.kernel, LEAST, MOST)
    return replace(
        costs,
        compute_s=costs.compute_s * factor[:, groups],
        call_s=np.maximum(0.0, costs.call_s + share * found.call_s[groups]),
        latency_s=np.maximum(0.0, costs.latency_s + np.where(lanes, share * found.latency_s, 0.0)),
        s_per_byte=costs.s_per_byte * np.where(lanes, max(0.0, 1 + share * found.slope), 1.0),
        contention=max(0.0, costs.contention + share * found.contention),
        refined_by=len(refinement.runs),
    )


@dataclass(frozen=True, eq=False)
class _Parts:
    """What the segments (S,) of a run took and consist of; kernels (K,) each in one of them.

    `seconds` and `error_s` were measured, `group` says which devices are alike. `work_s` (K,) is
    what the profile says of a kernel, slowed down as its segment is, `slower` (S,) by how much;
    `call_s` (S,) is so of a call and of what transfers hold it up.
    `by_contention` is how `seconds` grow with contention, `crossings` and `bytes_s` are the number
    of values that a segment is the first to read of other lanes, and the seconds of their bytes,
    `crossing_s` both as in the profile.
    """

    seconds: Floats
    error_s: Floats
    group: Ints
    segment_of: Ints
    work_s: Floats
    call_s: Floats
    slower: Floats
    by_contention: Floats
    crossings: Floats
    bytes_s: Floats
    crossing_s: Floats


@dataclass(frozen=True, eq=False)
class _Deviations:
    """How far costs are from the profile: kernels (K, G) by a share, calls (G,) in seconds."""

    kernel: Floats
    call_s: Floats
    latency_s: float
    slope: float
    contention: float


def slow_down(contention: float, beside: float) -> float:
    """How much longer a segment takes while so many others compute, on average, beside it.

    Between two whole numbers part of it runs beside the one and part beside the other.

    >>> slow_down(0.5, 1.0), slow_down(0.5, 0.0)
    (1.5, 1.0)
    """
    fewer = int(beside)
    more = beside - fewer
    rate = (1 - more) / (1 + contention * fewer) + more / (1 + contention * (fewer + 1))
    return 1 / rate


def _groups(devices: Sequence[Device]) -> Ints:
    """A number for each device (D,), the same for lanes that share a measurement."""
    kinds = [(d.runtime, d.provider if d.on_host else d.name, d.cores) for d in devices]
    numbers = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
    return np.array([numbers[kind] for kind in kinds], dtype=np.int64)


def _parts(
    costs: Costs, kernels: Graph, machine: Machine, groups: Ints, run: RefiningRun
) -> _Parts:
    segments, seen = run.schedule.segments, run.observed
    device = np.array([machine.index[s.device] for s in segments], dtype=np.int64)
    on_host = np.array([d.on_host for d in machine.devices])[device]
    of = run.schedule.segment_of
    segment_of = np.array([of[op.name] for op in kernels.ops], dtype=np.int64)
    beside = np.where(on_host, seen.beside, 0.0)
    slower = np.array([slow_down(costs.contention, each) for each in beside])
    more = np.array([slow_down(costs.contention + 1e-3, each) for each in beside])
    alone_s = costs.compute_s[np.arange(segment_of.size), device[segment_of]]
    # What was measured nowhere, and yet ran, says nothing.
    alone_s = np.where(np.isfinite(alone_s), alone_s, 0.0)
    call_s = costs.call_s[device]
    crossings, bytes_s, crossing_s, overhead_s = _crossings(
        costs, kernels, segment_of, device, on_host
    )
    call_s = call_s + overhead_s
    work_s = np.bincount(segment_of, alone_s, minlength=len(segments)) + call_s
    times = zip(seen.computes, seen.waits, strict=True)
    return _Parts(
        seconds=np.array([computes.median_s + waits.median_s for computes, waits in times]),
        error_s=np.array([seen.error_s(s) for s in range(len(segments))]),
        group=groups[device],
        segment_of=segment_of,
        work_s=alone_s * slower[segment_of],
        call_s=call_s * slower,
        slower=slower,
        by_contention=work_s * (more - slower) / 1e-3,
        crossings=crossings,
        bytes_s=bytes_s,
        crossing_s=crossing_s,
    )


def _crossings(
    costs: Costs, kernels: Graph, segment_of: Ints, device: Ints, on_host: NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats, Floats]:
    """Values that segments (S,) are the first on their lane to read of other lanes: how many, the
    seconds of their bytes, what they cost beside that for which they hold up the segments that send
    and first read them, and the latter."""
    arrays, num = kernels.arrays, device.size
    tensor = np.repeat(np.arange(arrays.producer.size), np.diff(arrays.consumer_ptr))
    made = arrays.producer[tensor] >= 0
    tensor, reader = tensor[made], segment_of[arrays.consumers[made]]
    maker = segment_of[arrays.producer[tensor]]
    crosses = (device[maker] != device[reader]) & on_host[maker] & on_host[reader]
    tensor, maker, reader = tensor[crosses], maker[crosses], reader[crosses]
    # Of all readers of a value on a device the first in the schedule's order.
    order = np.lexsort((reader, device[reader], tensor))
    tensor, maker, reader = tensor[order], maker[order], reader[order]
    first = np.ones(tensor.size, dtype=np.bool_)
    first[1:] = (tensor[1:] != tensor[:-1]) | (device[reader[1:]] != device[reader[:-1]])
    tensor, ends = tensor[first], (device[maker[first]], device[reader[first]])
    reader = reader[first]
    bytes_s = arrays.tensor_bytes[tensor] * costs.s_per_byte[ends]
    whole_s = bytes_s + costs.latency_s[ends]
    sender_s, receiver_s = costs.overhead[:, ends[0], ends[1]] * whole_s
    each = (np.ones(reader.size), bytes_s, whole_s - sender_s - receiver_s)
    number, of_bytes_s, all_s = (
        np.bincount(reader, seconds, minlength=num).astype(np.float64) for seconds in each
    )
    overhead_s = np.bincount(maker[first], sender_s, minlength=num).astype(np.float64)
    overhead_s += np.bincount(reader, receiver_s, minlength=num)
    return number, of_bytes_s, all_s, overhead_s


def _mean(parts: Sequence[_Parts], costs: Costs, kernels: Graph, groups: Ints) -> _Deviations:
    """The mean of all deviations, given what was measured."""
    num_groups, num_kernels = int(groups.max(initial=0)) + 1, len(kernels.ops)
    numbers: dict[str, int] = {}
    kind = np.array([numbers.setdefault(op.kind, len(numbers)) for op in kernels.ops], np.int64)
    common = np.concatenate([_common(part, kind, len(numbers), num_groups) for part in parts])
    deviation = _deviations(len(numbers), num_groups)
    offset = np.cumsum([0, *(part.seconds.size for part in parts)])
    run = np.repeat(np.arange(len(parts)), np.diff(offset))
    seconds = np.concatenate([part.seconds for part in parts])
    said_s = np.concatenate([_said_s(part) for part in parts])
    error_s = np.concatenate([part.error_s for part in parts])
    used = np.sort(np.argsort(-said_s, kind="stable")[:MOST_SEGMENTS])
    common, run, of_s = common[used], run[used], said_s[used]
    covariance = (common * deviation**2) @ common.T + OWN**2 * _own(parts, offset, used)
    covariance += np.where(run[:, None] == run, RUN_SHARE**2 * np.outer(of_s, of_s), 0.0)
    covariance += np.diag(error_s[used] ** 2 + (SHARE * of_s) ** 2 + LEAST_S**2)
    weights = np.linalg.solve(covariance, seconds[used] - of_s)
    shared = deviation**2 * (common.T @ weights)
    all_s, kinds, rest = np.split(shared, [num_groups, num_groups * (1 + len(numbers))])
    kernel = all_s[None, :] + kinds.reshape(num_groups, -1).T[kind]
    weight_of = np.zeros_like(seconds)
    weight_of[used] = weights
    for part, start in zip(parts, offset, strict=False):
        own = OWN**2 * part.work_s * weight_of[start + part.segment_of]
        kernel[np.arange(num_kernels), part.group[part.segment_of]] += own
    call_s, (latency_s, slope, contention) = rest[:num_groups], rest[num_groups:].tolist()
    return _Deviations(kernel, call_s, latency_s, slope, contention)


def _said_s(part: _Parts) -> Floats:
    """Seconds of the segments by the profile."""
    work_s = np.bincount(part.segment_of, part.work_s, minlength=part.seconds.size)
    seconds: Floats = work_s + part.call_s + part.crossing_s
    return seconds


def _common(part: _Parts, kind: Ints, num_kinds: int, num_groups: int) -> Floats:
    """How a run's segments depend on what is common to several: a column for each of all, kind,
    call (each by group), latency, slope and contention."""
    num = part.seconds.size
    own = np.arange(num)
    by_kind = np.zeros((num, num_groups, num_kinds))
    group = part.group[part.segment_of]
    np.add.at(by_kind, (part.segment_of, group, kind), part.work_s)
    calls = np.zeros((num, num_groups))
    calls[own, part.group] = part.slower
    rest = np.stack([part.crossings, part.bytes_s, part.by_contention], axis=1)
    parts = (by_kind.sum(axis=2), by_kind.reshape(num, -1), calls, rest)
    return np.concatenate(parts, axis=1)


def _deviations(num_kinds: int, num_groups: int) -> Floats:
    """The standard deviations of those columns."""
    nums = (num_groups, num_groups * num_kinds, num_groups, 1, 1, 1)
    return np.repeat([ALL, KIND, CALL_S, LATENCY_S, SLOPE, CONTENTION], nums)


def _own(parts: Sequence[_Parts], offset: Ints, used: Ints) -> Floats:
    """What any two of the segments that are used have in common by running the same kernels on
    devices that are alike: the sum of the products of the kernels' seconds."""
    found = np.zeros((used.size,) * 2)
    row_of = np.full(int(offset[-1]), -1)
    row_of[used] = np.arange(used.size)
    rows = [row_of[start:][part.segment_of] for part, start in zip(parts, offset, strict=False)]
    for one, row in zip(parts, rows, strict=True):
        for other, column in zip(parts, rows, strict=True):
            alike = one.group[one.segment_of] == other.group[other.segment_of]
            alike &= (row >= 0) & (column >= 0)
            np.add.at(found, (row[alike], column[alike]), (one.work_s * other.work_s)[alike])
    return found
