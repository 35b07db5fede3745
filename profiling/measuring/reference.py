"""The model as its runtime runs it unplaced: the reference for outputs and for step times."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Protocol, TypeVar

from placement.core.machine import Device
from profiling.backends.base import Carried, Compiled, DevicesLost, Program, RuntimeFailure
from profiling.devices import heap
from profiling.devices.lanes import Lane, Step
from profiling.measuring.outputs import DEFAULT, Comparison, compare
from profiling.measuring.siblings import siblings

WARMUP = 3
# Steps of the unplaced model that count: at least so many, more where they are short.
FEWEST_STEPS, MOST_STEPS, STEPS_S = 10, 100, 0.2
# How long the caches and the branch predictors of a core take to know a program again.
SETTLING_S = 0.012
MOST_TO_SETTLE = 6
T = TypeVar("T")
# Programs that a thread was still inside when they were given up.
_abandoned: list[Program] = []


class Expected:
    """Outputs of the unplaced model, what those of a placed one are compared with.

    None where they are random by definition. Where devices may differ by more than a little, and
    do, the model runs once more from numbers that are off by rounding: the step of an optimizer
    that divides a gradient of noise by itself is as large whatever the noise, and no two devices
    agree on it.
    """

    def __init__(
        self, compiled: Compiled, host: Device | None, feeds: Mapping[str, Any], timeout_s: float
    ) -> None:
        self._compiled, self._host = compiled, host
        self._feeds, self._timeout_s = feeds, timeout_s
        self.outputs = {} if compiled.random_ops else self._made(nudged=False)

    @cached_property
    def _nudged(self) -> dict[str, Any]:
        return self._made(nudged=True)

    def compared(self, program: Program, outputs: Mapping[str, Any]) -> Comparison:
        """How outputs of a program compare with these."""
        found = compare(self.outputs, outputs, program.tolerance)
        if found.match or program.tolerance == DEFAULT:
            return found
        again = compare(self.outputs, outputs, program.tolerance, self._nudged)
        return replace(again, by_rounding=again.match)

    def _made(self, *, nudged: bool) -> dict[str, Any]:
        program = self._compiled.unplaced(self._host, self._feeds)
        lanes = alone(program, self._host)
        try:
            if nudged:
                program.nudge()
            safe_step(lanes, program, self._timeout_s)
            return program.outputs()
        finally:
            release([program], [lanes])


def baseline_s(
    compiled: Compiled, device: Device | None, feeds: Mapping[str, Any], timeout_s: float
) -> float | None:
    """Median seconds of the unplaced model on one device, or with None on all cores of the CPU.

    None where the device's memory cannot hold the weights, or is too small when it comes to it.
    """
    limit = None if device is None else device.memory_bytes
    if limit is not None and compiled.kernels.param_bytes > limit:
        return None
    try:
        return _median_s(compiled, device, feeds, timeout_s)
    except MemoryError:
        return None


def _median_s(
    compiled: Compiled, device: Device | None, feeds: Mapping[str, Any], timeout_s: float
) -> float:
    program = compiled.unplaced(device, feeds)
    lanes = alone(program, device)
    try:
        for _ in heap.warming(lambda: settled_step(lanes, program, timeout_s).seconds, WARMUP):
            pass
        taken_s = safe_step(lanes, program, timeout_s).seconds
        num_steps = min(MOST_STEPS, max(FEWEST_STEPS, round(STEPS_S / max(taken_s, 1e-9))))
        beside = siblings(None if device is None else (device,))
        step = partial(safe_step, lanes, program, timeout_s)
        stretch = beside.stretch(step, taken_s, num_steps)
        stretches = beside.measured(stretch, math.ceil(num_steps / stretch.num))
        return statistics.median(step.seconds for steps in stretches for step in steps)
    finally:
        release([program], [lanes])


def safe_step(lanes: Carried, program: Program, timeout_s: float) -> Step:
    """One step, with the devices' own times where they tell them.

    A RuntimeError of one sentence if it hangs, a RuntimeFailure if the runtime fails in it.
    """
    try:
        return _told(lanes.step(timeout_s), program)
    except TimeoutError as error:
        program.stop()
        raise RuntimeError(str(error)) from None
    except (ValueError, AssertionError, MemoryError, DevicesLost):
        raise
    except Exception as error:  # runtimes raise kinds of their own
        text = " ".join(str(error).split())[:300]
        raise RuntimeFailure(f"The runtime failed in a step: {text}") from None


def turn_s(each: Sequence[tuple[Carried, Program]], timeout_s: float) -> float:
    """Seconds of one step of each, one behind the other."""
    return sum(safe_step(lanes, program, timeout_s).seconds for lanes, program in each)


def settled_step(lanes: Carried, program: Program, timeout_s: float) -> Step:
    """The last of some steps in a row, as in a run of this program alone.

    The first one after another program's step finds that one's weights and values in the caches.
    """
    return settled(lambda: safe_step(lanes, program, timeout_s), lambda step: step.seconds)


def settled(step: Callable[[], T], seconds: Callable[[T], float]) -> T:
    """What the last of some steps in a row returns: of two, of more where they are short.

    After another program a step of 2.5 ms takes 3.0, 2.7, 2.55, 2.5 ms and so on; one of 30 ms is
    as long the first time.
    """
    found = step()
    for _ in range(min(MOST_TO_SETTLE, max(1, round(SETTLING_S / max(seconds(found), 1e-9))))):
        found = step()
    return found


def _told(step: Step, program: Program) -> Step:
    times = program.device_times()
    if times is None:
        return step
    start_s, end_s = list(step.start_s), list(step.end_s)
    for segment, (start, end) in times.segments.items():
        start_s[segment], end_s[segment] = start, end
    return replace(step, start_s=tuple(start_s), end_s=tuple(end_s), copied_s=dict(times.copies))


class Threads(Protocol):
    """What runs programs; `close` says whether every thread has ended."""

    def close(self) -> bool: ...


def release(programs: Sequence[Program], lanes: Sequence[Threads]) -> None:
    """End the threads, then free the programs that they run.

    Where a thread is still inside a segment the programs are kept for good, for the runtime may
    write to their buffers at any time.
    """
    for program in programs:
        program.stop()
    ended = [threads.close() for threads in lanes]
    if all(ended):
        for program in programs:
            program.close()
    else:
        _abandoned.extend(programs)


def alone(program: Program, device: Device | None, num_segments: int = 1) -> Carried:
    """All segments of a program one after the other, on one lane; unpinned without a device."""
    segments = tuple(range(num_segments))
    lane = Lane(device or Device("all cores"), segments, ((),) * num_segments)
    return program.carried([lane], num_segments)
