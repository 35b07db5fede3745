"""Worker threads of a pipeline: samples stream through, each device working on several in turn.

In round r a device runs each of its segments once, for sample r minus the segment's stage. A sample
in flight has a slot of its own, sample n the slot n modulo depth; a slot is taken again when its
sample has come out. Locks stand for what is there, as in `lanes.py`: one per producing segment,
waiting device and slot, and per device and slot one for "the sample may begin" and one for "this
device is done with it". Lanes poll nothing. Where the segments are native calls, so are many rounds
at once (`profiling.devices.native`), and only what lets samples begin and awaits them is Python.
"""

import itertools
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from profiling.devices.lanes import Clock, Lane, arriving, pin
from profiling.devices.native import ENDLESS, MOST_AT_ONCE, NativeCalls, NativeRounds

Locks = tuple[threading.Lock, ...]


@dataclass(frozen=True)
class Ran:
    """One run of one segment, for one sample."""

    sample: int
    segment: int
    start_s: float
    end_s: float


@dataclass(frozen=True)
class _Task:
    """A segment with its locks by slot: those it waits for, and those it opens."""

    segment: int
    stage: int
    waits: tuple[Locks, ...]
    signals: tuple[Locks, ...]


class Lock(Protocol):
    """Whoever releases one lets another go on."""

    def acquire(self, *, timeout: float = ...) -> bool: ...

    def release(self) -> None: ...


class StreamLanes:
    """Threads that run samples one behind the other until closed.

    `stage_of[s]` belongs to segment s, never falls along a lane and lies below `depth`, or a slot
    would wait for itself. `run(segment, slot)` computes; where the segments of each slot are the
    calls `native`, these are used instead. The caller lets samples begin in order,
    and awaits them in order, each before the one that takes its slot begins. What lanes elsewhere
    make is told by `arrive`. `ran` keeps what the samples from `watched.start` to `watched.stop`
    did, `busy_s` the seconds that each lane computed by round.
    """

    def __init__(
        self,
        lanes: Sequence[Lane],
        stage_of: Sequence[int],
        depth: int,
        run: Callable[[int, int], None],
        *,
        native: Sequence[NativeCalls] = (),
        watched: range = range(0),
        clock: Clock = time.perf_counter,
    ) -> None:
        assert max(stage_of, default=0) < depth, f"{depth} slots, stages {stage_of}"
        self._run, self._clock, self._watched = run, clock, watched
        self._depth, self._limit, self._over = depth, ENDLESS, threading.Event()
        self._error: BaseException | None = None
        self._lanes, self._stage_of = tuple(lanes), tuple(stage_of)
        self._native = NativeRounds(lanes, stage_of, native) if native else None
        self._ran = defaultdict[int, list[Ran]](list)
        self.busy_s: dict[str, list[float]] = {lane.device.name: [] for lane in lanes}
        self._there = {
            (producer, lane.device.name): _taken(depth)
            for lane in lanes
            for awaits in lane.awaits
            for producer in awaits
        }
        self._arriving = arriving(lanes, self._there)
        assert not (native and self._arriving), "native lanes await nothing from elsewhere"
        self._go: Sequence[Sequence[Lock]] = [_taken(depth) for _ in lanes]
        self._done: Sequence[Sequence[Lock]] = [_taken(depth) for _ in lanes]
        self._ended_s = [np.zeros(depth) for _ in lanes]
        if self._native is not None:
            self._go, self._done = self._native.go, self._native.done
            self._ended_s = self._native.ended_s
        # Who waits for the lane that is done with a sample last sleeps but once.
        by_stage = sorted(range(len(lanes)), key=lambda i: (-stage_of[lanes[i].segments[-1]], i))
        self._last_first = tuple(self._done[i] for i in by_stage)
        self._threads = [
            threading.Thread(
                target=self._work,
                args=(i, lane),
                name=f"{lane.device.name} pipeline",
                daemon=True,
            )
            for i, lane in enumerate(lanes)
        ]
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:  # those that began wait for a sample that never comes
            self._stop()
            raise

    def begin(self, sample: int) -> None:
        """Let a sample begin; its inputs are in its slot."""
        for go in self._go:
            with suppress(RuntimeError):  # a lane has failed and opened all
                go[sample % self._depth].release()

    def end(self, limit: int) -> None:
        """Let no sample begin from this number on; those before it run to their end."""
        self._limit = limit
        if self._native is not None:
            self._native.limit[0] = limit
        self.begin(limit)

    def completed_s(self, sample: int, timeout_s: float) -> float:
        """Wait until a sample has come out; when the last device was done with it.

        TimeoutError if that takes too long; errors of segments pass on.
        """
        slot, deadline_s = sample % self._depth, time.monotonic() + timeout_s
        for done in self._last_first:
            if not done[slot].acquire(timeout=max(0.0, deadline_s - time.monotonic())):
                self._stop()
                raise TimeoutError(f"A sample took longer than {timeout_s:g} s and was given up.")
        if self._error is not None:
            raise self._error
        if self._native is not None and sample in self._watched and not self.is_over:
            self._ran[sample] = self._told(self._native, sample)
        return float(max((ended[slot] for ended in self._ended_s), default=self._clock()))

    @property
    def is_over(self) -> bool:
        """Whether the lanes were told to end, or one of them has failed."""
        return self._over.is_set()

    @property
    def ran(self) -> list[Ran]:
        """What the watched samples did so far."""
        return [ran for runs in self._ran.values() for ran in runs]

    def ran_by(self, sample: int) -> list[Ran]:
        """What a watched sample that has come out did; it is kept no longer."""
        return self._ran.pop(sample, [])

    def arrive(self, producer: int, slot: int) -> None:
        """What a segment that runs elsewhere makes of the sample in a slot is there."""
        for there in self._arriving.get(producer, ()):
            try:
                there[slot].release()
            except RuntimeError:
                # All are opened at the end; else a sample's would be the next one's.
                if not self.is_over:
                    raise

    def close(self, timeout_s: float = 5.0) -> bool:
        """End the threads; False if one is still inside a segment after `timeout_s`."""
        self._stop()
        deadline_s = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, deadline_s - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _stop(self) -> None:
        self._over.set()
        if self._native is not None:
            self._native.stop()
            return
        for locks in (*self._go, *self._there.values(), *self._done):
            for lock in locks:
                with suppress(RuntimeError):  # it was free already
                    lock.release()

    def _work(self, number: int, lane: Lane) -> None:
        pin(lane.device.core_ids)
        try:
            if self._native is not None:
                self._rounds_natively(self._native, number, lane)
            else:
                self._rounds(number, lane)
        except BaseException as error:  # handed to the thread that waits for the sample
            self._error = self._error or error
            self._stop()

    def _rounds(self, number: int, lane: Lane) -> None:
        tasks = [
            _Task(
                segment,
                self._stage_of[segment],
                _by_slot([self._there[p, lane.device.name] for p in awaits], self._depth),
                _by_slot([w for (p, _), w in self._there.items() if p == segment], self._depth),
            )
            for segment, awaits in zip(lane.segments, lane.awaits, strict=True)
        ]
        busy_s = self.busy_s[lane.device.name]
        for number_of_round in itertools.count():
            if not self._round(number, tasks, busy_s, number_of_round):
                return

    def _round(
        self, number: int, tasks: Sequence[_Task], busy_s: list[float], number_of_round: int
    ) -> bool:
        """Run each segment for its sample; False when there is nothing more to come."""
        clock, run, total_s, more = self._clock, self._run, 0.0, False
        first, last = tasks[0], tasks[-1]
        for task in tasks:
            sample = number_of_round - task.stage
            slot = sample % self._depth
            if sample >= 0 and task is first and sample < self._limit:
                self._go[number][slot].acquire()
            if self._over.is_set():
                return False
            if not 0 <= sample < self._limit:
                more = more or sample < 0
                continue
            for there in task.waits[slot]:
                there.acquire()
            if self._over.is_set():
                return False
            start_s = clock()
            run(task.segment, slot)
            end_s = clock()
            more, total_s = True, total_s + end_s - start_s
            for there in task.signals[slot]:
                there.release()
            if sample in self._watched:
                self._ran[sample].append(Ran(sample, task.segment, start_s, end_s))
            if task is last:
                self._ended_s[number][slot] = end_s
                self._done[number][slot].release()
        busy_s.append(total_s)
        return more

    def _rounds_natively(self, native: NativeRounds, number: int, lane: Lane) -> None:
        """The same, many rounds in one native call."""
        stages = native.by_lane[number].segments.stages
        first, num_run = 0, MOST_AT_ONCE
        while num_run == MOST_AT_ONCE:
            num_run = native.run(number, first)
            rounds = np.arange(first, first + num_run)
            samples = rounds[:, None] - stages
            computed = (samples >= 0) & (samples < self._limit)
            seconds = np.diff(native.times_s(number, rounds), axis=2)[:, :, 0]
            self.busy_s[lane.device.name].extend((seconds * computed).sum(axis=1).tolist())
            first += num_run

    def _told(self, native: NativeRounds, sample: int) -> list[Ran]:
        """What a sample did that has just come out."""
        found = []
        for number, lane in enumerate(self._lanes):
            stages = native.by_lane[number].segments.stages
            times_s = native.times_s(number, sample + stages)
            for i, segment in enumerate(lane.segments):
                start_s, end_s = times_s[i, i].tolist()
                found.append(Ran(sample, segment, start_s, end_s))
        return found


def _by_slot(locks: Sequence[Locks], depth: int) -> tuple[Locks, ...]:
    return tuple(tuple(lock[slot] for lock in locks) for slot in range(depth))


def _taken(depth: int) -> Locks:
    locks = tuple(threading.Lock() for _ in range(depth))
    for lock in locks:
        lock.acquire()
    return locks
