"""Seconds of every kernel on every device, measured where it will run: in its lane, in sequence.

Programs of the same model are timed turn by turn: one call per kernel, one call for all kernels,
and the model as its runtime runs it by itself. A kernel's call costs more than the kernel, and by
how much is what makes the sum of all kernels equal to the one call: that difference per call is the
call overhead. So the costs interpolate between two measured points, a schedule of one segment and
one of a segment per kernel, instead of resting on the time of a call that does nothing. Where a
call takes longer still, all kernels share the rest: threads of several cores that sleep between
calls are woken by large kernels alone. What an accelerator's inputs and outputs take by the links
is no kernel's, and is taken off the one call.
Where a machine has other devices, too, a fourth program is cut every few kernels, as placements
are. A further call there may cost several times what one of a single kernel does; probably because
values within segments have memory beside that of those that cross, so that caches hold less of
both. The higher of the two costs is the call overhead, as far as it stands out from the scatter of
the steps. (By the bytes that cross it was tried, too, and predicted placements worse.)
The unplaced model stands beside them, independent: the sum of the kernels can be held against it.
"""

import itertools
import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np

from placement.core.costs import Floats
from placement.core.events import Emit, silent
from placement.core.graph import Graph
from placement.core.machine import Device, Machine
from placement.core.model import Model
from placement.core.profile import Profile
from placement.core.schedule import Schedule, Segment
from profiling import backends
from profiling.backends.base import Carried, Compiled, Program
from profiling.devices import heap
from profiling.devices.lanes import Step
from profiling.measuring.between_hosts import between_hosts, contention_between, holds, pairs_of
from profiling.measuring.contention import (
    contention_of_parts,
    contention_of_wholes,
    cost_of_rank_order,
)
from profiling.measuring.crossings import crossing_cost, drawn_borders
from profiling.measuring.links import measure_links
from profiling.measuring.load import watch
from profiling.measuring.reference import alone, baseline_s, release, settled_step, turn_s
from profiling.measuring.siblings import Siblings, siblings

# Runtime, provider or own name, and number of cores.
Kind = tuple[str, str, int]

BUDGET_S = 3.0
FEWEST_ROUNDS, MOST_ROUNDS = 7, 60
WARMUP = 3
# A model that is cut has so many kernels at least, or its few cuts say nothing; more than such a
# share of its step no call has.
FEWEST_TO_CUT, MOST_OF_STEP = 8, 0.1
# The share of an accelerator's step that copies may be said to take.
MOST_MOVED = 0.5
TIMEOUT_S = 120.0


class Cancelled(RuntimeError):
    """The person who asked for a profile does not want it any more."""


@dataclass(frozen=True)
class Measured:
    """One kind of device: seconds and spread by kernel, per call, and of the unplaced model.

    A kernel that another provider computes has an infinite time. `beside` is the share of it all
    that was measured beside a busy sibling of the core, None where nobody looked.
    """

    compute_s: Floats
    spread: Floats
    call_s: float
    step_s: float
    beside: float | None = None


def profile(
    model: Model, machine: Machine, report: Emit = silent, timeout_s: float | None = None
) -> Profile:
    """Measure a model on a machine's devices, and the machine's links.

    `report` hears {"event": "progress", "what", "step", "of"} and cancels by returning False, which
    raises `Cancelled`. Lanes of one runtime and provider share a measurement where they have as
    many cores. What takes longer than `timeout_s` altogether is given up with a RuntimeError:
    between two measurements, and in a confined process wherever it is.
    """
    until_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
    kinds = _kinds(machine)
    of = len(kinds) + 3 + len(pairs_of(machine))
    steps = itertools.count()

    def tell(what: str) -> None:
        if time.monotonic() > until_s:
            raise RuntimeError(
                f"Measuring {model.graph.name!r} takes longer than {timeout_s:g} s; allow more time"
                " or use smaller sizes."
            )
        if report({"event": "progress", "what": what, "step": next(steps), "of": of}) is False:
            raise Cancelled("The profile was cancelled; nothing was kept.")

    tell("optimising the model")
    compiled = backends.compiled(model, machine)
    feeds = compiled.feeds(0, {})
    # The same cores as a run looks at.
    meanwhile, around = watch(machine), siblings(machine.devices)
    tell("links")
    linked = measure_links(machine)
    found: dict[Kind, Measured | None] = {}
    for kind, devices in kinds.items():
        tell(f"kernels on {devices[0].name}")
        found[kind] = around.with_looks_at(
            devices[:1], partial(_measure, compiled, devices[0], feeds, linked)
        )
    tell("devices together")
    lanes = next((devices for devices in kinds.values() if len(devices) > 1), [])
    # Hosts share no memory, and what crosses between them is their links'.
    here = lanes and lanes[0].on_host and not backends.elsewhere(lanes)
    by_itself = found[_kind(lanes[0])] if here else None
    if by_itself is None:
        contention = contention_between(compiled, linked, feeds, TIMEOUT_S)
    else:
        # What grows with every lane that computes is right for both at two lanes only.
        all_two = len(lanes) == 2 == sum(d.on_host for d in machine.devices)
        contention, crossing = _together(
            compiled, lanes[:2], feeds, by_itself.compute_s, around, all_two=all_two
        )
        if crossing is not None:
            linked = _with_links(linked, {device.name for device in lanes}, *crossing)
    linked = between_hosts(linked, compiled, feeds, TIMEOUT_S, tell, contention)
    several = len(machine.devices) > 1 and all(d.on_host for d in machine.devices)
    all_cores_s = baseline_s(compiled, None, feeds, TIMEOUT_S) if several else None
    shares = [one.beside for one in found.values() if one is not None and one.beside is not None]
    load = replace(
        meanwhile.load(),
        beside=max(shares, default=None),
        core_to_core_s=around.core_to_core_s,
    )
    return replace(_profile(model, linked, compiled, found, contention, all_cores_s), load=load)


def _kinds(machine: Machine) -> dict[Kind, list[Device]]:
    """Devices that share a measurement, in declared order."""
    kinds: dict[Kind, list[Device]] = {}
    for device in machine.devices:
        kinds.setdefault(_kind(device), []).append(device)
    return kinds


def _kind(device: Device) -> Kind:
    shares = device.on_host and not backends.elsewhere((device,))
    same = device.provider if shares else device.name
    return device.runtime, same, device.cores


def _measure(
    compiled: Compiled,
    device: Device,
    feeds: Mapping[str, Any],
    linked: Machine,
    beside: Siblings,
) -> Measured | None:
    """Times on one device; None where its memory cannot hold the model."""
    if not holds(device, compiled):
        return None
    names = [op.name for op in compiled.kernels.ops]
    if not names:
        return Measured(np.zeros(0), np.zeros(0), 0.0, 0.0)
    starts: dict[str, Sequence[int]] = {"each": range(len(names)), "whole": [0]}
    # A device alone has one segment, and an accelerator keeps its values to itself.
    if device.on_host and len(linked.devices) > 1 and len(names) >= FEWEST_TO_CUT:
        starts["cut"] = drawn_borders(len(names))
    steps, fallen = _steps_of_each(compiled, device, names, starts, feeds, beside)
    times_s, gaps_s = _of_segments(steps["each"])
    whole_s, unplaced_s = _steps_s(steps["whole"]), _steps_s(steps["unplaced"])
    kernel_s = np.median(times_s, axis=0)
    gap_s = float(np.median(gaps_s)) if len(names) > 1 else 0.0
    one_call_s = float(np.median(whole_s))
    one_call_s -= min(moved_s(compiled.kernels, device, linked), MOST_MOVED * one_call_s)
    inside_s = call_overhead_s(kernel_s, one_call_s)
    call_s = more_s = inside_s + gap_s
    if "cut" in steps:
        cut_s = surely_longer_s(_steps_s(steps["cut"]), whole_s) / (len(starts["cut"]) - 1)
        more_s = max(call_s, min(cut_s, MOST_OF_STEP * one_call_s))
    # The one call has such an overhead, too.
    compute_s = as_one_call(kernel_s, inside_s, one_call_s - (more_s - call_s))
    low, high = np.percentile(times_s, (25, 75), axis=0)
    spread = (high - low) / np.maximum(kernel_s, 1e-12)
    compute_s[list(fallen)] = np.inf
    step_s = float(np.median(unplaced_s))
    return Measured(compute_s, spread, more_s, step_s, beside.share)


def surely_longer_s(longer_s: Floats, shorter_s: Floats) -> float:
    """By how much the median of some seconds is above that of others, less its standard error.

    >>> surely_longer_s(np.array([3.0, 3.0, 3.0]), np.array([1.0, 1.0, 1.0]))
    2.0
    """
    medians_s, errors_s = zip(*(_median_s(found) for found in (longer_s, shorter_s)), strict=True)
    return float(medians_s[0] - medians_s[1] - np.hypot(*errors_s))


def _median_s(found_s: Floats) -> tuple[float, float]:
    """The median and its standard error, of a normal distribution by its quartiles."""
    low, median, high = np.percentile(found_s, (25, 50, 75))
    return float(median), float(1.253 * (high - low) / 1.349 / math.sqrt(len(found_s)))


def _cut_at(device: Device, names: Sequence[str], starts: Sequence[int]) -> Schedule:
    """Kernels in order on one device, in segments that begin there."""
    pairs = itertools.pairwise((*starts, len(names)))
    return Schedule(tuple(Segment(device.name, tuple(names[a:b])) for a, b in pairs))


def _steps_of_each(
    compiled: Compiled,
    device: Device,
    names: Sequence[str],
    starts: Mapping[str, Sequence[int]],
    feeds: Mapping[str, Any],
    beside: Siblings,
) -> tuple[dict[str, list[Step]], Collection[int]]:
    """Steps of programs turn by turn: one for each way to cut, by where its segments begin, and the
    unplaced one; and which of `names` another provider computes."""
    schedules = {what: _cut_at(device, names, begin) for what, begin in starts.items()}
    programs = {what: compiled.open(schedule, feeds) for what, schedule in schedules.items()}
    programs["unplaced"] = compiled.unplaced(device, feeds)
    nums = {what: len(begin) for what, begin in starts.items()} | {"unplaced": 1}
    lanes = [alone(program, device, nums[what]) for what, program in programs.items()]
    try:
        found = _timed(lanes, list(programs.values()), beside)
        return dict(zip(programs, found, strict=True)), programs["each"].fallen
    finally:
        release(list(programs.values()), lanes)


def _timed(
    lanes: Sequence[Carried], programs: Sequence[Program], beside: Siblings
) -> list[list[Step]]:
    """Steps of each program, once all have warmed up."""
    pairs = list(zip(lanes, programs, strict=True))
    *_, taken_s = heap.warming(partial(turn_s, pairs, TIMEOUT_S), WARMUP)
    rounds = min(MOST_ROUNDS, max(FEWEST_ROUNDS, int(BUDGET_S / max(2 * taken_s, 1e-6))))
    step_of_each = [partial(settled_step, lane, program, TIMEOUT_S) for lane, program in pairs]
    return beside.in_turns(step_of_each, rounds)


def _of_segments(steps: Sequence[Step]) -> tuple[Floats, Floats]:
    """Seconds by (step, segment), and between two segments."""
    start_s = np.array([step.start_s for step in steps])
    end_s = np.array([step.end_s for step in steps])
    return end_s - start_s, start_s[:, 1:] - end_s[:, :-1]


def _steps_s(steps: Sequence[Step]) -> Floats:
    return np.array([step.seconds for step in steps])


def moved_s(kernels: Graph, device: Device, machine: Machine) -> float:
    """Seconds that the inputs and outputs of a model take to a device with memory of its own, and
    back to the host, one behind the other."""
    host = next((d for d in machine.devices if d.on_host), None)
    if device.on_host or host is None:
        return 0.0
    there, back = (host.name, device.name), (device.name, host.name)
    links = {(link.src, link.dst): link for link in machine.links}
    moves = [
        (links.get(there if t.producer is None else back), t.num_bytes)
        for t in kernels.tensors
        if (t.consumers if t.producer is None else t.is_output)
    ]
    return sum(link.latency_s + num_bytes / link.bytes_per_s for link, num_bytes in moves if link)


def call_overhead_s(kernel_s: Floats, step_s: float) -> float:
    """Overhead per call with which all kernels and one call take `step_s` together.

    Between zero, where noise has it that calls one by one were no slower than the whole, and the
    quickest call, which contains it too.

    >>> call_overhead_s(np.array([5.0, 7.0, 9.0]), 17.0)
    2.0
    """
    if len(kernel_s) < 2:
        return 0.0
    even = (float(kernel_s.sum()) - step_s) / (len(kernel_s) - 1)
    return min(max(even, 0.0), float(np.min(kernel_s)))


def as_one_call(kernel_s: Floats, overhead_s: float, step_s: float) -> Floats:
    """Seconds of kernels without the overhead of their calls, as they are in a step of one call.

    >>> as_one_call(np.array([2.0, 6.0, 6.0]), 2.0, 6.0).tolist()
    [0.0, 2.0, 2.0]
    """
    compute_s = kernel_s - overhead_s
    total_s = float(compute_s.sum())
    inside_s = max(0.0, step_s - overhead_s)
    return compute_s * (inside_s / total_s) if total_s > 0 and len(kernel_s) > 1 else compute_s


def _together(
    compiled: Compiled,
    pair: Sequence[Device],
    feeds: Mapping[str, Any],
    kernel_s: Floats,
    around: Siblings,
    *,
    all_two: bool,
) -> tuple[float, tuple[float, float] | None]:
    """Contention of two equal lanes, and what a value takes between them as (seconds, bytes per
    second), None where too little crosses to say."""
    crossed = partial(crossing_cost, compiled, pair, feeds, TIMEOUT_S)
    wholes = partial(contention_of_wholes, compiled, pair, feeds)
    if not (compiled.keeps_order and all_two and len(kernel_s)):
        return around.with_looks_at(pair, wholes), around.with_looks_at(pair, crossed)
    crossing = around.with_looks_at(pair, crossed)
    parts = partial(contention_of_parts, compiled, pair, feeds, kernel_s, crossing)
    contention = around.with_looks_at(pair, parts)
    if contention is None:
        contention = around.with_looks_at(pair, wholes)
    ranked = partial(cost_of_rank_order, compiled, pair[0], feeds, kernel_s)
    by_order = around.with_looks_at(pair[:1], ranked)
    return max(0.0, (1.0 + contention) * by_order - 1.0), crossing


def _with_links(
    machine: Machine, lanes: Collection[str], latency_s: float, bytes_per_s: float
) -> Machine:
    """The machine with such links between these lanes."""
    links = tuple(
        replace(link, latency_s=latency_s, bytes_per_s=bytes_per_s)
        if link.src in lanes and link.dst in lanes
        else link
        for link in machine.links
    )
    return replace(machine, links=links)


def _profile(
    model: Model,
    machine: Machine,
    compiled: Compiled,
    found: Mapping[Kind, Measured | None],
    contention: float,
    all_cores_s: float | None,
) -> Profile:
    columns = [found[_kind(device)] for device in machine.devices]
    cells = [
        [None if m is None or np.isinf(m.compute_s[k]) else float(m.compute_s[k]) for m in columns]
        for k in range(len(compiled.kernels.ops))
    ]
    spread = [
        [0.0 if m is None else round(float(m.spread[k]), 4) for m in columns]
        for k in range(len(compiled.kernels.ops))
    ]
    return Profile(
        graph=model.graph.fingerprint,
        machine=machine,
        kernels=compiled.kernels,
        sources=compiled.sources,
        compute_s=tuple(map(tuple, cells)),
        spread=tuple(map(tuple, spread)),
        call_s=tuple(0.0 if m is None else m.call_s for m in columns),
        step_s=tuple(None if m is None else m.step_s for m in columns),
        all_cores_s=all_cores_s,
        contention=contention,
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
