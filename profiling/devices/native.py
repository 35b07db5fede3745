"""Lanes in native code: all segments of a lane run in one call, without the interpreter's lock.

Only what a program's segments are themselves, calls of one native function, can run like this. The
locks by which lanes hand values over and the clock are the interpreter's own, called by address.
"""

import ctypes
import functools
import math
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.core.costs import Floats
from placement.core.formatting import counted
from placement.core.graph import Ints, starts
from placement.core.machine import Device
from profiling.devices.cores import usable_cores

if TYPE_CHECKING:
    from profiling.devices.lanes import Lane
    from profiling.devices.lanes_compiled import LaneRecord, LaneSegments

# How long a lane tries before it sleeps: most waits of placements are shorter than this. Waking a
# core that sleeps takes 25 to 80 us, for who wakes it, too, and it computes slower at first: what
# it had in its caches may be gone.
PATIENCE_NS = 20_000_000
# More samples than there can be.
ENDLESS = 2**62
# Rounds of a pipeline between which the interpreter looks at what a lane did.
MOST_AT_ONCE = 32
# Seconds after which who waits for a lock looks whether a signal has come to another thread.
HEARING_S = 0.5
_ACQUIRE, _RELEASE = "PyThread_acquire_lock", "PyThread_release_lock"
_ACQUIRE_TIMED, _TAKEN = "PyThread_acquire_lock_timed", 1
_LOCKS = (_ACQUIRE, _ACQUIRE_TIMED, _RELEASE, "PyThread_allocate_lock", "PyThread_free_lock")
# Neither needs the interpreter's lock; the first is there from Python 3.13 on, the second before.
_CLOCK_THAT_WRITES, _CLOCK = "PyTime_PerfCounterRaw", "_PyTime_GetPerfCounter"


@dataclass(frozen=True, eq=False)
class NativeCalls:
    """A program's segments as calls of one native function of three addresses.

    `arguments` (segments, 3) are those of each segment. The function returns 0, or an address of
    which `error` makes the exception that `Program.run` would raise.
    """

    function: int
    arguments: Ints
    error: Callable[[int], Exception]


def why_not() -> str:
    """What of this interpreter keeps lanes from running natively, as a sentence; or nothing."""
    offered = ctypes.pythonapi
    clocks = (hasattr(offered, name) for name in (_CLOCK_THAT_WRITES, _CLOCK))
    if sys.maxsize < 2**32 or not all(hasattr(offered, name) for name in _LOCKS) or not any(clocks):
        return "this interpreter does not offer its locks and its clock to native code"
    import numba

    disabled = numba.config.DISABLE_JIT  # type: ignore[attr-defined]
    return "numba is told to compile nothing" if disabled else ""


def share_cores(devices: Iterable[Device]) -> str:
    """Which lanes of these devices have to share cores, as a sentence; or nothing.

    A lane that tries instead of sleeping would take the time of the one that it waits for.
    """
    lanes = list({device.name: device for device in devices}.values())
    if len(lanes) < 2:
        return ""
    here = set(usable_cores())
    threads = sum(lane.cores for lane in lanes)
    if threads > len(here):
        return (
            f"{len(lanes)} lanes of {counted(threads, 'thread')} share {counted(len(here), 'core')}"
        )
    lane_of: dict[int, str] = {}
    for lane in lanes:
        for core in here.intersection(lane.core_ids):
            if core in lane_of:
                return f"{lane_of[core]} and {lane.name} share core {core}"
            lane_of[core] = lane.name
    return ""


class NativeLanes:
    """The lanes of a schedule, with what they hand over; each is run by a thread of its own.

    A sample of a pipeline has a slot, sample n the slot n modulo their number, with calls of its
    own (`slots`); `stage_of` says in which round after its first one a sample's segment runs. A
    schedule that runs step by step has one slot and no stages.
    """

    def __init__(
        self, lanes: "Sequence[Lane]", stage_of: Sequence[int], slots: Sequence[NativeCalls]
    ) -> None:
        self._error = slots[0].error
        keys = [(p, lane.device.name) for lane in lanes for a in lane.awaits for p in a]
        self._locks = _Locks(dict.fromkeys(keys), len(slots))
        self._functions, self._over = functions_of(slots[0].function), np.zeros(1, np.int64)
        arguments = np.stack([calls.arguments for calls in slots], axis=1)
        self.by_lane = tuple(
            _NativeLane.of(lane, stage_of, arguments, self._locks) for lane in lanes
        )

    def stop(self) -> None:
        """End all lanes at their next segment, and those that wait; none can run afterwards."""
        self._over[0] = 1
        self._locks.release_all()


class NativeSteps(NativeLanes):
    """Lanes that run step by step."""

    def __init__(self, lanes: "Sequence[Lane]", calls: NativeCalls) -> None:
        from profiling.devices.lanes_compiled import run_step

        super().__init__(lanes, (0,) * len(calls.arguments), (calls,))
        self._run_step, self._met = run_step, np.zeros(len(lanes), np.int64)
        self._given = tuple(
            (*own.segments, *own.record, self._functions, self._over) for own in self.by_lane
        )
        # Nothing runs, but all is compiled before the first step's time begins.
        for lane in range(len(lanes)):
            self.run(lane, limit=0)

    def run(self, lane: int, *, limit: int = 1, again: int = 0) -> bool:
        """Run a lane's segments once, after `again` rounds that do not count; none where `limit` is
        0. False where `stop` has ended it; a segment's error passes on.
        """
        own, given = self.by_lane[lane], self._given[lane]
        ended = self._run_step(*given, PATIENCE_NS, limit, own.bounds_s, lane, self._met, again)
        if 0 <= ended < len(own.segments.stages):
            raise self._error(int(own.record.status[0]))
        return bool(ended >= 0)


class NativeRounds(NativeLanes):
    """Lanes through which samples stream, many rounds in one call.

    `go[lane][slot]` are locks for "the sample may begin", `done[lane][slot]` for "this lane is done
    with it", since `ended_s[lane][slot]`. Samples end below `limit[0]`.
    """

    def __init__(
        self, lanes: "Sequence[Lane]", stage_of: Sequence[int], slots: Sequence[NativeCalls]
    ) -> None:
        from profiling.devices.lanes_compiled import LaneSamples, run_rounds

        super().__init__(lanes, stage_of, slots)
        self._run_rounds = run_rounds
        self.limit = np.full(1, ENDLESS)
        self.go = [[NativeLock() for _ in slots] for _ in lanes]
        self.done = [[NativeLock() for _ in slots] for _ in lanes]
        self.ended_s = [np.zeros(len(slots)) for _ in lanes]
        # A lane looks back on what it has run at once; who awaits a sample looks back on all of its
        # rounds, behind which that lane is ahead by no more samples than there are slots.
        num_rows = max(MOST_AT_ONCE, len(slots) + max(stage_of, default=0) + 1)
        self._samples = tuple(
            LaneSamples(
                self.limit,
                addresses(go),
                addresses(done),
                ended_s,
                np.zeros((num_rows, len(lane.segments), 2)),
            )
            for lane, go, done, ended_s in zip(lanes, self.go, self.done, self.ended_s, strict=True)
        )
        for lane in range(len(lanes)):
            self.run(lane, 0, 0)

    def run(self, lane: int, first: int, most: int = MOST_AT_ONCE) -> int:
        """Run a lane's rounds from `first` on, `most` or until there are no samples or `stop` ends
        it: how many. A segment's error passes on.
        """
        own = self.by_lane[lane]
        num_run = self._run_rounds(
            own.segments,
            own.record,
            self._samples[lane],
            self._functions,
            self._over,
            PATIENCE_NS,
            first,
            most,
        )
        if failed := int(own.record.status[0]):
            raise self._error(failed)
        return int(num_run)

    def times_s(self, lane: int, rounds: Sequence[int] | Ints) -> Floats:
        """Start and end (rounds, segments, 2) of a lane's segments in rounds that are not long
        over. A segment that had no sample in one has the times of its last sample there."""
        all_s = self._samples[lane].times_s
        found: Floats = all_s[np.asarray(rounds) % len(all_s)]
        return found

    def stop(self) -> None:
        super().stop()
        for lock in chain.from_iterable((*self.go, *self.done)):
            lock.release()


class NativeLock:
    """A taken lock that native lanes know by its address; Python's own can be taken like it."""

    def __init__(self) -> None:
        self.address = _taken()
        # Not at the end of the process, when a thread that was given up may still hold it.
        weakref.finalize(self, _free, self.address).atexit = False

    def release(self) -> None:
        _at_once(_RELEASE, None, ctypes.c_void_p)(self.address)

    def take_if_free(self) -> bool:
        """Take it if nobody has it; whether it was so."""
        given = (ctypes.c_void_p, ctypes.c_int)
        return bool(_at_once(_ACQUIRE, ctypes.c_int, *given)(self.address, 0) == _TAKEN)

    def acquire(self, *, timeout: float = math.inf) -> bool:
        """Whether it could be taken within some seconds, in which signals are heard."""
        given = (ctypes.c_void_p, ctypes.c_longlong, ctypes.c_int)
        take = _python(_ACQUIRE_TIMED, ctypes.c_int, *given)
        deadline_s = time.monotonic() + timeout
        # It may also say that a signal has come, which is heard here.
        while take(self.address, int(1e6 * min(max(timeout, 0.0), HEARING_S)), 1) != _TAKEN:
            timeout = deadline_s - time.monotonic()
            if timeout <= 0:
                return False
        return True


@dataclass(frozen=True, eq=False)
class _NativeLane:
    """A lane as compiled code wants it, what it tells, and the times between which its step ran."""

    producers: tuple[int, ...]
    segments: "LaneSegments"
    record: "LaneRecord"
    bounds_s: Floats

    @classmethod
    def of(
        cls, lane: "Lane", stage_of: Sequence[int], arguments: Ints, locks: "_Locks"
    ) -> "_NativeLane":
        from profiling.devices.lanes_compiled import LaneRecord, LaneSegments

        waits = [[locks.number[p, lane.device.name] for p in awaits] for awaits in lane.awaits]
        signals = [
            [number for (producer, _), number in locks.number.items() if producer == segment]
            for segment in lane.segments
        ]
        num = len(lane.segments)
        segments = LaneSegments(
            stages=np.array([stage_of[segment] for segment in lane.segments], np.int64),
            arguments=np.ascontiguousarray(arguments[list(lane.segments)]),
            first_wait=starts([len(some) for some in waits]),
            waits=locks.addresses[list(chain.from_iterable(waits))],
            first_signal=starts([len(some) for some in signals]),
            signals=locks.addresses[list(chain.from_iterable(signals))],
        )
        record = LaneRecord(
            start_s=np.zeros(num),
            end_s=np.zeros(num),
            resumed_s=np.zeros(sum(map(len, waits))),
            status=np.zeros(2, np.int64),
            now=np.zeros(1, np.int64),
        )
        return cls(tuple(chain.from_iterable(lane.awaits)), segments, record, np.zeros(2))


class _Locks:
    """Taken locks by key and slot, with their addresses (keys, slots)."""

    def __init__(self, keys: Iterable[tuple[int, str]], slots: int) -> None:
        self.number = {key: i for i, key in enumerate(keys)}
        self._locks = [NativeLock() for _ in range(len(self.number) * slots)]
        self.addresses = addresses(self._locks).reshape(len(self.number), slots)

    def release_all(self) -> None:
        for lock in self._locks:
            lock.release()


def addresses(locks: Sequence[NativeLock]) -> Ints:
    return np.array([lock.address for lock in locks], np.int64)


@functools.cache
def _at_once(name: str, result: Any, *given: Any) -> Any:
    """A function of the interpreter that waits for nobody, called with its lock: to let go of it
    for a moment is to wait for whoever has it then."""
    return ctypes.PYFUNCTYPE(result, *given)(_address(name))


@functools.cache
def _python(name: str, result: Any, *given: Any) -> Any:
    """A function of the interpreter, called without its lock."""
    return ctypes.CFUNCTYPE(result, *given)(_address(name))


def _address(name: str) -> int:
    """Where a function of the interpreter is; 0 for one that this interpreter lacks."""
    found = getattr(ctypes.pythonapi, name, None)
    return 0 if found is None else int(ctypes.cast(found, ctypes.c_void_p).value or 0)


def functions_of(segment: int = 0) -> Ints:
    """The addresses that compiled lanes call: of a segment, of locks, of a clock, and of what gives
    the core away."""
    writes = _address(_CLOCK_THAT_WRITES)
    returns = 0 if writes else _address(_CLOCK)
    names = (_address(_ACQUIRE), _address(_RELEASE))
    gives = ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p).value
    return np.array([segment, *names, returns, writes, gives], np.int64)


def _taken() -> int:
    made = _python("PyThread_allocate_lock", ctypes.c_void_p)()
    if not made:
        raise MemoryError("no lock could be made")
    _python(_ACQUIRE, ctypes.c_int, ctypes.c_void_p, ctypes.c_int)(made, 1)
    return int(made)


def _free(lock: int) -> None:
    _python("PyThread_free_lock", None, ctypes.c_void_p)(lock)
