"""Worker threads, one per device: each runs its segments in order and hands values over by locks.

A lock per producing segment and waiting device stands for "this value is there": taken before the
step, released by the producer. A worker that waits sleeps in the operating system and takes no time
from the others, or stays awake on cores of its own (`waiting.py`). Runtimes release the
interpreter's lock while they compute. Segments that are native calls run without it altogether
(`native.py`); only their steps begin and end here.
"""

import math
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np

from placement.core.machine import Device
from profiling.devices.native import NativeCalls, NativeRounds, NativeSteps
from profiling.devices.waiting import AsleepLane, AwakeLane, Waiting

Clock = Callable[[], float]
# Between two steps cores sleep, and the interpreter runs on them. What they knew of a network is
# gone then, and each lane takes some ten microseconds to learn it anew: much of a step that is
# shorter than this, and more on two lanes than on the one of a profile. Where so many others come
# right before it, it takes one or two hundredths more than after many; where one does, 4 to 11.
SHORT_S, NUM_BEFORE = 0.002, 2
T = TypeVar("T")


@dataclass(frozen=True)
class Lane:
    """The segments of one device in running order, and the earlier segments of others each awaits.

    `awaits[j]` belongs to `segments[j]`; a segment of another device is awaited once, by the first
    that needs it.
    """

    device: Device
    segments: tuple[int, ...]
    awaits: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Step:
    """Clock times of one step: of every segment, and of every hand-over (producer, device name).

    `resumed_s` is when the waiting thread ran again, and misses hand-overs nobody waited for.
    `copied_s` has start and end of copies (value, device name) where a device has told them.
    `processor_s` is the time of cores that processes of their own have used for it, None where the
    lanes are this process's. `num_before` others ran right before it and do not count.
    """

    began_s: float
    ended_s: float
    start_s: tuple[float, ...]
    end_s: tuple[float, ...]
    resumed_s: dict[tuple[int, str], float]
    copied_s: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    processor_s: float | None = None
    num_before: int = 0

    @property
    def seconds(self) -> float:
        return self.ended_s - self.began_s


class Lanes:
    """Threads that run steps together until closed; they die with the process.

    `run` computes a segment, and what waits for it goes on before `finish` is called with it; where
    the segments are the calls `native` these are used instead. Segments that are repeatable make
    the same however often they run: a short step of theirs, on one lane or on native ones, follows
    at once on others that do not count. Lanes with cores of their own may stay `awake` while they
    wait, as native ones do.

    Where there is a `rest`, threads keep something that is in the way of other lanes which do. So
    before a step of others each thread of those that stepped last calls it, and so does the thread
    that asks for the step. Lanes without one ask nobody: they may look at cores between two steps.
    """

    # Those with a `rest` that have begun a step last.
    _last: ClassVar["weakref.ref[Lanes] | None"] = None
    _last_lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(
        self,
        lanes: Sequence[Lane],
        num_segments: int,
        run: Callable[[int], None],
        *,
        finish: Callable[[int], None] = lambda _: None,
        rest: Callable[[], None] | None = None,
        native: NativeCalls | None = None,
        is_repeatable: bool = False,
        awake: bool = False,
        clock: Clock = time.perf_counter,
    ) -> None:
        self._run, self._finish, self._clock = run, finish, clock
        self._rest, self._resting, self._stepping = rest, False, threading.Lock()
        self._native = None if native is None else NativeSteps(lanes, native)
        self._start_s, self._end_s = [0.0] * num_segments, [0.0] * num_segments
        self._began_s, self._ended_s = [0.0] * len(lanes), [0.0] * len(lanes)
        self._resumed: dict[tuple[int, str], float] = {}
        self._error: BaseException | None = None
        self._over = False
        until_ns = np.zeros(len(lanes), np.int64)
        self._waiting: list[Waiting] = [
            AwakeLane(i, until_ns) if awake else AsleepLane() for i in range(len(lanes))
        ]
        self._there: dict[tuple[int, str], Any] = {}
        for lane, waiting in zip(lanes, self._waiting, strict=True):
            for producer in (p for awaits in lane.awaits for p in awaits):
                self._there[producer, lane.device.name] = waiting.made()
        self._arriving = arriving(lanes, self._there)
        assert native is None or not self._arriving, "native lanes await nothing from elsewhere"
        # What comes from elsewhere comes once, and lanes in Python have nothing by which all wait.
        in_a_row = native is not None or (len(lanes) < 2 and not self._arriving)
        self._is_repeatable, self._again = is_repeatable and in_a_row, 0
        self._least_s = math.inf
        self._go = [_taken() for _ in lanes]
        self._done = [_taken() for _ in lanes]
        self._threads = [
            threading.Thread(target=self._work, args=(i, lane), name=lane.device.name, daemon=True)
            for i, lane in enumerate(lanes)
        ]
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:  # those that began wait for a step that never comes
            self._stop()
            raise

    def step(self, timeout_s: float) -> Step:
        """Run every segment once; TimeoutError if that takes too long, segments' errors pass on."""
        deadline_s = time.monotonic() + timeout_s
        if self._rest is not None:
            self._rest()
            Lanes.have_others_rest(deadline_s, instead=self)
        with self._stepping:
            return self._step(timeout_s, deadline_s)

    @staticmethod
    def have_others_rest(deadline_s: float, instead: "Lanes | None" = None) -> None:
        """Have lanes rest that stepped last, unless they step again now `instead`."""
        with Lanes._last_lock:
            last = None if Lanes._last is None else Lanes._last()
            Lanes._last = None if instead is None else weakref.ref(instead)
        if last is not None and last is not instead:
            last.rest(deadline_s)

    def rest(self, deadline_s: float) -> None:
        """Have each thread call its `rest`; nothing while a step runs, from another thread."""
        if self._rest is None or self._over or not self._stepping.acquire(blocking=False):
            return
        try:
            self._resting = True
            if not self._all_once(deadline_s):
                self._error = self._error or TimeoutError("Threads of lanes do not come to rest.")
            # What was given up stays so: no thread may take this for a step.
            self._resting = self._over
        except BaseException as error:
            self._error = self._error or error
            self._stop()
            raise
        finally:
            self._stepping.release()

    def _all_once(self, deadline_s: float) -> bool:
        """Let every thread go once; whether all are through in time."""
        for go in self._go:
            with suppress(RuntimeError):  # a lane before it has failed already and stopped all
                go.release()
        for done in self._done:
            if not done.acquire(timeout=max(0.0, deadline_s - time.monotonic())):
                self._stop()
                return False
        return True

    def _step(self, timeout_s: float, deadline_s: float) -> Step:
        if self._error is not None:
            raise self._error
        self._resumed = {}
        self._again = NUM_BEFORE if self._is_repeatable and self._least_s < SHORT_S else 0
        if not self._all_once(deadline_s):
            raise TimeoutError(f"A step took longer than {timeout_s:g} s and was given up.")
        if self._error is not None:
            raise self._error
        began_s, ended_s = min(self._began_s, default=0.0), max(self._ended_s, default=0.0)
        self._least_s = min(self._least_s, ended_s - began_s)
        return Step(
            began_s,
            ended_s,
            tuple(self._start_s),
            tuple(self._end_s),
            self._resumed,
            num_before=self._again,
        )

    def arrive(self, producer: int) -> None:
        """What a segment that runs elsewhere makes is there: lanes that await it go on."""
        for there in self._arriving.get(producer, ()):
            there.release()

    def close(self, timeout_s: float = 5.0) -> bool:
        """End the threads; False if one is still inside a segment after `timeout_s`."""
        self._stop()
        deadline_s = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, deadline_s - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _stop(self) -> None:
        self._over = True
        for lock in (*self._go, *self._there.values()):
            with suppress(RuntimeError):  # it was free already
                lock.release()
        if self._native is not None:
            self._native.stop()

    def _work(self, number: int, lane: Lane) -> None:
        pin(lane.device.core_ids)
        device = lane.device.name
        tasks = []
        for segment, awaits in zip(lane.segments, lane.awaits, strict=True):
            waits = tuple((p, self._there[p, device]) for p in awaits)
            signals = tuple(lock for (p, _), lock in self._there.items() if p == segment)
            tasks.append((segment, waits, signals))
        once: Callable[[], None] = partial(self._once, number, tasks, device)
        if self._native is not None:
            once = partial(self._once_natively, self._native, number, lane)
        while True:
            self._go[number].acquire()
            if self._over:
                with suppress(RuntimeError):  # nobody waits for this step any more
                    self._done[number].release()
                return
            try:
                if self._resting and self._rest is not None:
                    self._rest()
                else:
                    once()
            except BaseException as error:  # handed to the thread that asked for the step
                self._error = self._error or error
                self._stop()
            self._done[number].release()

    def _once(
        self,
        number: int,
        tasks: list[tuple[int, tuple[tuple[int, Any], ...], tuple[Any, ...]]],
        device: str,
    ) -> None:
        clock, run, start_s, end_s = self._clock, self._run, self._start_s, self._end_s
        own = self._waiting[number]
        for segment, _, _ in self._again * tasks:
            if self._over:
                return
            run(segment)
            self._finish(segment)
        own.begin()
        self._began_s[number] = clock()
        for segment, waits, signals in tasks:
            for producer, there in waits:
                if own.take(there):
                    self._resumed[producer, device] = clock()
                if self._over:
                    return
            start_s[segment] = clock()
            own.compute(run, segment)
            end_s[segment] = clock()
            for there in signals:
                there.release()
            self._finish(segment)
        self._ended_s[number] = clock()
        own.end()

    def _once_natively(self, native: NativeSteps, number: int, lane: Lane) -> None:
        if not native.run(number, again=self._again):
            return
        own = native.by_lane[number]
        self._began_s[number], self._ended_s[number] = own.bounds_s.tolist()
        for segment, start, end in zip(
            lane.segments, own.record.start_s.tolist(), own.record.end_s.tolist(), strict=True
        ):
            self._start_s[segment], self._end_s[segment] = start, end
        for producer, resumed in zip(own.producers, own.record.resumed_s.tolist(), strict=True):
            if not math.isnan(resumed):
                self._resumed[producer, lane.device.name] = resumed


def arriving(lanes: Sequence[Lane], there: Mapping[tuple[int, str], T]) -> dict[int, list[T]]:
    """By segment that runs elsewhere what stands for its value where a lane awaits it.

    >>> lane = Lane(Device("cpu:0"), (1, 2), ((0,), (1,)))
    >>> arriving([lane], {(0, "cpu:0"): "a", (1, "cpu:0"): "b"})
    {0: ['a']}
    """
    here = {segment for lane in lanes for segment in lane.segments}
    found: dict[int, list[T]] = {}
    for (producer, _), waits in there.items():
        if producer not in here:
            found.setdefault(producer, []).append(waits)
    return found


def warm_up() -> None:
    """Have compiled what native and awake lanes need, so that no run waits for it."""
    calls = NativeCalls(0, np.zeros((1, 3), np.int64), RuntimeError)
    lanes = [Lane(Device("none"), (0,), ((),))]
    AwakeLane(0, np.zeros(1, np.int64))
    NativeSteps(lanes, calls)
    NativeRounds(lanes, (0,), (calls,))


def pin(core_ids: Sequence[int]) -> None:
    """Keep the calling thread on these cores, where the system allows it; none means anywhere."""
    if core_ids and hasattr(os, "sched_setaffinity"):
        allowed = set(core_ids) & os.sched_getaffinity(0)
        if allowed:
            os.sched_setaffinity(0, allowed)


def _taken() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock
