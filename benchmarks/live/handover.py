"""What handing over between lanes costs, in Python and natively, and what steps gain by it.

    python -m benchmarks.live.handover [--json] [--rounds N] [MODEL ...]

First two pinned threads hand over to and fro: each computes for as long as the other is to wait.
"lock" are lanes in Python, "sleeps" native lanes that sleep at once, "native" those that try for a
moment before. Hand-over is from the end of one segment to the start of the next on the other lane;
a call is the same on one lane, where nobody waits. Then how far apart two lanes begin a step that
nothing holds up, by the pause before it. Then the bundled ONNX samples: steps on lanes in Python
and on native ones, turn by turn in one process, for HEFT and for a random placement. One program of
a model is some percent faster than another of the same for as long as both live, probably by where
weights and values come to lie in memory. So each is opened eight times, among which the rounds are
shared: a time is the geometric mean over openings of the median, and a ratio has its interval over
them. The outputs of both are compared bit by bit. Both lanes must have a core of their own.
"""

import json
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np

import placement as pl
from benchmarks._shared import turns
from benchmarks._shared.figures import named, table
from placement.core.machine import Device
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.schedule.segments import make_schedule
from placement.simulator.executions import lower
from profiling.backends.base import Compiled
from profiling.devices import native
from profiling.devices.cores import usable_cores
from profiling.devices.lanes import Lane, Lanes, Step
from profiling.devices.native import NativeCalls
from profiling.execution.execute import compiled_for, lanes_of
from profiling.execution.stream_outputs import same_bits
from profiling.measuring.lock import measuring
from profiling.measuring.reference import release

WAITS_US = (10, 20, 50, 100, 200, 500, 900, 1_100, 2_000, 5_000)
NUM_SEGMENTS, TURNS, WARMUP = 40, 15, 3
PAUSES_MS, BEGINNINGS = (0, 1, 10), 200
# Programs are opened so often, and the 0.975 quantile of Student's distribution that goes with it.
OPENINGS, STUDENT = 8, 2.365
SIDES = "native", "python", "one lane"
HAND_OVER = {
    "waits us": "{wait_us}",
    "lock us (p95)": "{lock_us:.1f} ({lock_p95_us:.1f})",
    "sleeps us (p95)": "{sleeps_us:.1f} ({sleeps_p95_us:.1f})",
    "native us (p95)": "{native_us:.2f} ({native_p95_us:.2f})",
}
BEGUN = {
    "pause ms": "{pause_ms}",
    "lock us (p95)": "{lock_us:.1f} ({lock_p95_us:.1f})",
    "sleeps us (p95)": "{sleeps_us:.1f} ({sleeps_p95_us:.1f})",
    "native us (p95)": "{native_us:.1f} ({native_p95_us:.1f})",
}
STEPS = {
    "model": "{model}",
    "placement": "{placement}",
    "segments": "{num_segments}",
    "one lane ms": "{one_lane_ms:.2f}",
    "Python ms": "{python_ms:.2f}",
    "native ms": "{native_ms:.2f}",
    "native / Python (95 %)": "{ratio:.3f} ({low:.3f} to {high:.3f})",
    "native / one lane (95 %)": "{lane_ratio:.3f} ({lane_low:.3f} to {lane_high:.3f})",
    "bits": "{bits}",
}


def hand_overs() -> list[dict[str, Any]]:
    """A row per waiting time, and one for calls that nobody waits for."""
    devices = [Device(f"cpu:{i}", core_ids=(core,)) for i, core in enumerate(usable_cores()[:2])]
    busy = _Busy()
    rows = []
    for wait_us in (0, *WAITS_US):
        lanes = _alone(devices[0]) if wait_us == 0 else _to_and_fro(devices)
        gaps_us = _steps_us(lanes, busy.sides(max(wait_us, 10)), TURNS, _between_us)
        rows.append({"wait_us": wait_us or "none: a call", **_summary(gaps_us)})
    return rows


def beginnings() -> list[dict[str, Any]]:
    """A row per pause between steps: how long after the first lane the second one begins."""
    devices = [Device(f"cpu:{i}", core_ids=(core,)) for i, core in enumerate(usable_cores()[:2])]
    lanes = [Lane(device, (i,), ((),)) for i, device in enumerate(devices)]
    sides = _Busy().sides(100)
    rows = []
    for pause_ms in PAUSES_MS:
        apart_us = _steps_us(lanes, sides, BEGINNINGS, _apart_us, pause_ms / 1e3)
        rows.append({"pause_ms": pause_ms, **_summary(apart_us)})
    return rows


def _summary(taken_us: dict[str, list[float]]) -> dict[str, float]:
    return {f"{side}_us": statistics.median(some) for side, some in taken_us.items()} | {
        f"{side}_p95_us": float(np.percentile(some, 95)) for side, some in taken_us.items()
    }


def _steps_us(
    lanes: Sequence[Lane],
    sides: Any,
    num_turns: int,
    told: Callable[[Step], list[float]],
    pause_s: float = 0.0,
) -> dict[str, list[float]]:
    """Microseconds that each side's steps tell of, the sides in turns."""
    usual, found = native.PATIENCE_NS, {side: list[float]() for side in sides}
    with ExitStack() as stack:
        opened = {}
        for side, (run, calls, _) in sides.items():
            num = sum(len(lane.segments) for lane in lanes)
            opened[side] = Lanes(lanes, num, run, native=calls)
            stack.callback(opened[side].close)
        stack.callback(setattr, native, "PATIENCE_NS", usual)
        for number in range(-WARMUP, num_turns):
            for side, (_, _, patience_ns) in sides.items():
                native.PATIENCE_NS = patience_ns
                if pause_s:
                    time.sleep(pause_s)
                step = opened[side].step(turns.TIMEOUT_S)
                if number >= 0:
                    found[side] += told(step)
    return found


def _between_us(step: Step) -> list[float]:
    # The first few see how far apart the two threads were woken.
    pairs = zip(step.end_s[3:], step.start_s[4:], strict=False)
    return [1e6 * (start_s - end_s) for end_s, start_s in pairs]


def _apart_us(step: Step) -> list[float]:
    return [1e6 * abs(step.start_s[0] - step.start_s[1])]


def _alone(device: Device) -> list[Lane]:
    return [Lane(device, tuple(range(NUM_SEGMENTS)), ((),) * NUM_SEGMENTS)]


def _to_and_fro(devices: Sequence[Device]) -> list[Lane]:
    awaits = [(i - 1,) if i else () for i in range(NUM_SEGMENTS)]
    return [
        Lane(device, tuple(range(i, NUM_SEGMENTS, 2)), tuple(awaits[i::2]))
        for i, device in enumerate(devices)
    ]


def _never(segment: int) -> None:
    raise AssertionError(f"segment {segment} is a native call")


class _Busy:
    """A native function that computes for a while, without the interpreter's lock."""

    def __init__(self) -> None:
        import ctypes

        from numba import cfunc, int64

        def spin(rounds: int, second: int, third: int) -> int:
            state = second + 1
            for _ in range(rounds):
                state = (state * 48271) % 2147483647
            return 0 if state else 1

        made: Any = cfunc(int64(int64, int64, int64))(spin)
        self.address = int(made.address)
        self._call = ctypes.CFUNCTYPE(*(ctypes.c_int64,) * 4)(self.address)
        began_s = time.perf_counter()
        self._call(3_000_000, 0, 0)
        self._per_us = 3.0 / (time.perf_counter() - began_s)

    def rounds(self, microseconds: float) -> int:
        return int(microseconds * self._per_us)

    def run(self, rounds: int, segment: int) -> None:
        self._call(rounds, 0, 0)

    def sides(self, microseconds: float) -> dict[str, Any]:
        """Lanes of segments that take so long: how each runs one, and how long it tries."""
        rounds = self.rounds(microseconds)
        arguments = np.tile(np.array((rounds, 0, 0), np.int64), (NUM_SEGMENTS, 1))
        calls = NativeCalls(self.address, arguments, lambda status: RuntimeError(str(status)))
        return {
            "lock": (partial(self.run, rounds), None, 0),
            "sleeps": (_never, calls, 0),
            "native": (_never, calls, native.PATIENCE_NS),
        }


def steps(name: str, rounds: int) -> Iterator[dict[str, Any]]:
    """A row per placement of a model."""
    model = pl.load(name)
    machine = pl.machine("two-lanes")
    problem = pl.make_problem(model, machine, pl.profile(model, machine))
    compiled = compiled_for(problem, model)
    rng = np.random.default_rng(0)
    drawn = problem.placement_of(rng.integers(0, problem.num_devices, problem.num_units))
    schedules = {
        "heft": pl.place(problem, "heft").schedule,
        "random": make_schedule(problem, drawn),
    }
    compiled_of = {"native": compiled, "python": compiled.in_python()}
    for placement, schedule in schedules.items():
        openings: list[dict[str, list[float]]] = []
        are_same = []
        for number in range(OPENINGS):
            with ExitStack() as stack:
                steps: dict[str, Callable[[], float]] = {}
                outputs = {}
                # Which is opened first alternates, for the first may get other memory.
                for k in range(len(SIDES)):
                    side = SIDES[(number + k) % len(SIDES)]
                    if side in compiled_of:
                        running = _running(problem, compiled_of[side], schedule)
                        steps[side], outputs[side] = stack.enter_context(running)
                    else:
                        alone = turns.alone(compiled, {side: machine.devices[0]})
                        steps |= stack.enter_context(alone)
                openings.append(turns.turn_by_turn(steps, math.ceil(rounds / OPENINGS)))
                are_same.append(same_bits(outputs["native"](), outputs["python"]()))
        ratio, low, high = ratio_over(openings, "native", "python")
        against_lane = ratio_over(openings, "native", "one lane")
        yield {
            "model": name,
            "placement": placement,
            "num_segments": len(schedule.segments),
            **{
                f"{side.replace(' ', '_')}_ms": 1e3
                * statistics.geometric_mean(
                    statistics.median(times_s[side]) for times_s in openings
                )
                for side in SIDES
            },
            "ratio": ratio,
            "low": low,
            "high": high,
            **dict(zip(("lane_ratio", "lane_low", "lane_high"), against_lane, strict=True)),
            "bits": "same" if all(are_same) else "DIFFER",
        }


def ratio_over(
    openings: Sequence[Mapping[str, Sequence[float]]], one: str, other: str
) -> tuple[float, float, float]:
    """The geometric mean over `OPENINGS` openings of the ratio of medians, with its 95 % limits by
    Student's distribution."""
    assert len(openings) == OPENINGS, "the quantile is for as many"
    logs = [
        math.log(statistics.median(times_s[one]) / statistics.median(times_s[other]))
        for times_s in openings
    ]
    mean, reach = statistics.mean(logs), STUDENT * statistics.stdev(logs) / math.sqrt(OPENINGS)
    return math.exp(mean), math.exp(mean - reach), math.exp(mean + reach)


@contextmanager
def _running(
    problem: Problem, compiled: Compiled, schedule: Schedule
) -> Iterator[tuple[Callable[[], float], Callable[[], dict[str, Any]]]]:
    """A step's seconds and the outputs of a schedule's program, as calls."""
    program = compiled.open(schedule, compiled.feeds(0, {}))
    carried = lanes_of(problem, lower(problem, schedule))
    lanes = program.carried(carried, len(schedule.segments))
    try:
        yield lambda: lanes.step(turns.TIMEOUT_S).seconds, program.outputs
    finally:
        release([program], [lanes])


def main() -> None:
    options = named(__doc__, turns.samples(), rounds=40)
    if native.share_cores(pl.machine("two-lanes").devices):
        raise SystemExit("Two lanes share a core here; start this on two cores of their own.")
    with measuring("handover"):
        handed, begun, stepped = hand_overs(), beginnings(), []
        if not options.json:
            print(table(HAND_OVER, handed), end="\n\n", flush=True)
            print(table(BEGUN, begun), end="\n\n", flush=True)
        for name in options.names:
            stepped += steps(name, options.rounds)
    if options.json:
        print(json.dumps({"hand_over": handed, "begun": begun, "steps": stepped}))
    else:
        print(table(STEPS, stepped))


if __name__ == "__main__":
    main()
