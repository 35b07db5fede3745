"""Is a core alone, and where has a host put it? Fixed pieces of work tell.

A core's sibling is its other hardware thread. A physical core gives each of two busy threads about
two thirds of what it gives one. The other one may run a program here, or another machine on the
same host, of which this system counts nothing: no load, no time taken. It comes and goes within
seconds, on each core by itself, and what is measured meanwhile takes a third longer, so that a
profile of one second says little of the next.

Work that has an instruction for every slot of a core takes half as long again beside a busy
sibling, a chain in which each instruction waits for the last takes the same; so their ratio is a
constant of the core as long as it is alone, at whatever clock. What was measured while the ratio
was higher, before or after, is measured again while patience lasts. All cores are looked at
together: those of a virtual machine may be siblings of each other for a while.

Or they share no cache for a while: then the core-to-core latency, how long a cache line takes from
one core to another, is a multiple, and what several cores compute together takes longer, while each
by itself is as fast as ever. So a look times it, too. Cores stay where they are for seconds to
minutes, so it is kept with what was measured, for later measurements to be held against, and a run
waits for a while for the latency of its profile.

Where a core is seldom alone, the moments when it is say little of what people will see, and a
profile that caught them would not agree with a run that did not. So all counts there, as it comes.
"""

import functools
import math
import statistics
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from placement.core.load import MOVED
from placement.core.machine import Device
from profiling import backends
from profiling.devices.cores import can_pin, usable_cores
from profiling.devices.lanes import Lane, Lanes
from profiling.devices.native import functions_of, why_not
from profiling.measuring.load import patience

# Rounds of the two pieces: some 50 us and 10 us. The middle one of so many counts, for the first
# and the last may not be beside those of another core, and one may be interrupted.
_SLOTS, _LINKS, _TIMES = 30_000, 5_000, 3
_TIMEOUT_S = 10.0
# So many times a cache line goes from core to core, in each of so many parts of a look, if it can
# in so many ns. Of lines of 64 bytes cores fetch two at once.
_PASSES, _PARTS, _MOST_NS, _LINE = 200, 3, 10_000_000, 16
# A core that is alone hardly ever shows so much more than the least that it shows.
MOST_ABOVE = 0.12
# Threads of one core have a latency below these ns, which is no measure for that of cores.
_NEAREST_NS = 30.0
# One that is beside a busy sibling in more than this share of so many looks is seldom alone; fewer
# say nothing.
_SELDOM_ALONE, _RECENT_LOOKS, _TELLING_LOOKS = 0.5, 400, 20
_FIRST_LOOKS, _MOST_LOOKS = 40, 4000
# A look holds for so long: from the end of one step to the start of the next.
_FRESH_S = 0.001
# Steps that are looked at together take about so long, and twice that where they are repeated.
_STRETCH_S = 0.02
# Where fewer than these were alone, all count.
_FEWEST_SHARE, _FEWEST = 0.2, 3
# For each that is wanted so many are tried, and so long is waited before one that is tried again;
# longer, and as often as patience lasts, for the latency of an earlier measurement.
MOST_TRIES, _PAUSE_S, _MOVED_PAUSE_S = 3, 0.005, 0.25
T = TypeVar("T")
# By core and those that are looked at together, what looks of this process have shown; and those
# at work alone, for the first ones are within a few milliseconds. By cores the latencies in ns.
_latencies: dict[tuple[int, ...], deque[float]] = defaultdict(lambda: deque(maxlen=_MOST_LOOKS))
_seen: dict[tuple[int, ...], deque[float]] = defaultdict(lambda: deque(maxlen=_MOST_LOOKS))
_at_work: dict[tuple[int, ...], deque[float]] = defaultdict(lambda: deque(maxlen=_RECENT_LOOKS))


@dataclass(frozen=True)
class Look:
    """By core the ratio of both pieces, and the core-to-core latency in ns, None for one core.

    As limits the highest that count; what is not there has none.
    """

    ratios: Mapping[int, float]
    latency_ns: float | None = None


NOTHING = Look({})


@dataclass(frozen=True)
class Looked(Generic[T]):
    """What a measurement gave, and the looks before and after it."""

    value: T
    before: Look
    after: Look

    @property
    def ratios(self) -> dict[int, float]:
        """The higher of both, by core."""
        after = self.after.ratios
        return {core: max(ratio, after[core]) for core, ratio in self.before.ratios.items()}

    @property
    def latency_ns(self) -> float | None:
        """The longer of both."""
        both = (self.before.latency_ns, self.after.latency_ns)
        return max((ns for ns in both if ns is not None), default=None)

    def is_below(self, limits: Look) -> bool:
        """Whether nothing was higher than its limit, where it has one."""
        most_ns, latency_ns = limits.latency_ns, self.latency_ns
        if most_ns is not None and latency_ns is not None and latency_ns > most_ns:
            return False
        ratios = self.ratios
        return all(ratios[core] <= limit for core, limit in limits.ratios.items())


@dataclass(frozen=True)
class Stretch(Generic[T]):
    """Some steps in a row between two looks, after one that does not count: a look sends threads to
    sleep that keep trying for the next step.
    """

    step: Callable[[], T]
    num: int
    num_before: int

    def __call__(self) -> list[T]:
        for _ in range(self.num_before):
            self.step()
        return [self.step() for _ in range(self.num)]


class Siblings:
    """Looks at cores before and after what is measured there, for as long as patience lasts.

    Nothing is looked at where threads cannot be pinned, or nobody has patience. `num` counts what
    was measured and kept, `num_beside` what of it was beside a busy sibling, `num_again` how often
    there was another try. What was measured at a longer latency than others, or than
    `core_to_core_s`, that of an earlier measurement, is made anew, too, but is beside nothing.
    """

    def __init__(
        self,
        cores: Iterable[int],
        *,
        core_to_core_s: float | None = None,
        patience_s: float | None = None,
        look: Callable[[Sequence[int]], Look] | None = None,
        clock: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._left_s = patience() if patience_s is None else patience_s
        self._look, self._clock, self._sleep = look or _look, clock, sleep
        looks = self._left_s > 0 and (look is not None or (can_pin() and not why_not()))
        self._cores = tuple(cores) if looks else ()
        self._earlier_ns = math.inf if core_to_core_s is None else core_to_core_s * 1e9
        self._kept_ns: list[float] = []
        self._last = NOTHING
        self._last_s = self._asked_s = -1.0
        self.num = self.num_beside = self.num_again = 0
        while any(len(self._seen(core)) < _FIRST_LOOKS for core in self._cores):
            self._now()

    def around(self, work: Callable[[], T]) -> Looked[T]:
        """What the work returns, with what its cores looked like."""
        fresh = self._clock() - self._last_s < _FRESH_S
        before = self._last if fresh else self._now()
        value = work()
        after = self._now()
        for core, ratio in after.ratios.items():
            _at_work[core, *self._cores].append(ratio)
        return Looked(value, before, after)

    def goes_on(self, wanted: int, *rows: Sequence[Looked[T]]) -> bool:
        """Whether to measure once more, to have so many in each row that were alone, where cores
        often are.

        Waits a moment before one that is beyond those.
        """
        tried, now_s = max(map(len, rows), default=0), self._clock()
        if tried > wanted:
            self._left_s -= now_s - self._asked_s
        self._asked_s = now_s
        if tried < wanted:
            return True
        if not self._cores or self._left_s <= 0:
            return False
        limits = self._often_alone()
        if _have_enough(rows, limits, wanted):
            return False
        moved = math.isfinite(self._earlier_ns) and _have_enough(rows, Look(limits.ratios), wanted)
        if not moved and tried >= MOST_TRIES * wanted:
            return False
        away = moved and not Looked(None, self._last, self._last).is_below(limits)
        self._sleep(_MOVED_PAUSE_S if away else _PAUSE_S)
        self.num_again += 1
        return True

    def kept(self, row: Sequence[Looked[T]], wanted: int) -> list[T]:
        """So many values that were alone at the usual latency, by all that is known by now; where
        those are too few to say anything, at any latency; where cores are seldom alone, the first
        of all.
        """
        limits, fewest = self._often_alone(), max(_FEWEST, _FEWEST_SHARE * wanted)
        for calm in (
            [looked for looked in row if looked.is_below(limits)],
            [looked for looked in row if looked.is_below(Look(limits.ratios))],
            row,
        ):
            if len(calm) >= min(len(row), wanted, fewest):
                break
        kept, alone = calm[:wanted], Look(self._limits().ratios)
        self.num += len(kept)
        self._kept_ns += [looked.latency_ns for looked in kept if looked.latency_ns is not None]
        self.num_beside += sum(not looked.is_below(alone) for looked in kept)
        return [looked.value for looked in kept]

    def stretch(self, step: Callable[[], T], step_s: float, most: int) -> "Stretch[T]":
        """Steps of about so many seconds, as many as fill the time between two looks."""
        if not self._cores:
            return Stretch(step, 1, 0)
        num = max(1, min(most, round(_STRETCH_S / max(step_s, 1e-9))))
        return Stretch(step, num, int(num > 1))

    def measured(self, work: Callable[[], T], wanted: int) -> list[T]:
        """Values of the work that were alone: as many as are wanted, if patience allows."""
        (found,) = self.in_turns([work], wanted)
        return found

    def with_looks_at(self, devices: Iterable[Device], work: Callable[["Siblings"], T]) -> T:
        """What the work returns, which measures on some devices by the looks that it is given.

        Where these are the cores of this, its looks count here, too; else one before and one after.
        """
        cores = _cores_of(devices)
        if cores == self._cores:
            return work(self)
        return self.measured_once(lambda: work(Siblings(cores)))

    def measured_once(self, work: Callable[[], T]) -> T:
        """What the work returns, of which the latency before and after it is kept."""
        (value,) = self.kept([self.around(work)], 1)
        return value

    def in_turns(self, works: Sequence[Callable[[], T]], wanted: int) -> list[list[T]]:
        """The same of several works, one after the other in each round."""
        rows: list[list[Looked[T]]] = [[] for _ in works]
        while self.goes_on(wanted, *rows):
            for row, work in zip(rows, works, strict=True):
                row.append(self.around(work))
        return [self.kept(row, wanted) for row in rows]

    @property
    def share(self) -> float | None:
        """Of what was kept, the share that was beside a busy sibling; None where nobody looked."""
        return self.num_beside / max(1, self.num) if self._cores else None

    @property
    def core_to_core_s(self) -> float | None:
        """The core-to-core latency in the middle of what was kept."""
        known = [found for found in self._kept_ns if math.isfinite(found)]
        return statistics.median(known) * 1e-9 if known else None

    def _limits(self) -> Look:
        """The highest ratios of cores that are alone, and the longest latency of usual places."""
        ratios = {c: (1 + MOST_ABOVE) * least(self._seen(c)) for c in self._last.ratios}
        known_ns = [ns for ns in _latencies[self._cores] if ns >= _NEAREST_NS]
        usual_ns = least(known_ns) if known_ns else math.inf
        earlier_ns = self._earlier_ns if self._earlier_ns >= _NEAREST_NS else math.inf
        return Look(ratios, MOVED * min(usual_ns, earlier_ns))

    def _often_alone(self) -> Look:
        """The same without the cores that are alone less than half of the time, by recent looks."""
        limits = self._limits()
        return Look(
            {
                core: limit
                for core, limit in limits.ratios.items()
                if _share_above(limit, _at_work[core, *self._cores]) <= _SELDOM_ALONE
            },
            limits.latency_ns,
        )

    def _seen(self, core: int) -> deque[float]:
        return _seen[core, *self._cores]

    def _now(self) -> Look:
        self._last = self._look(self._cores) if self._cores else NOTHING
        self._last_s = self._clock()
        for core, ratio in self._last.ratios.items():
            self._seen(core).append(ratio)
        if self._last.latency_ns is not None:
            _latencies[self._cores].append(self._last.latency_ns)
        return self._last


def siblings(devices: Iterable[Device] | None, *, core_to_core_s: float | None = None) -> Siblings:
    """Of the cores of this computer on which devices compute; of all that may be used for None.

    `core_to_core_s` is the latency of a measurement that this is held against.
    """
    return Siblings(_cores_of(devices), core_to_core_s=core_to_core_s)


def _cores_of(devices: Iterable[Device] | None) -> tuple[int, ...]:
    if devices is None:
        return usable_cores()
    listed = tuple(devices)
    away = backends.elsewhere(listed)
    here = [d for d in listed if d.on_host and d.name not in away]
    if not all(d.core_ids for d in here):
        return usable_cores()
    return tuple(sorted({core for d in here for core in d.core_ids}))


def warm_up() -> None:
    """Have the pieces compiled, so that no first look waits for it."""
    if not why_not():
        _look(usable_cores()[:2])


def least(ratios: Iterable[float]) -> float:
    """The least of some ratios but for a few that may be wrong: two, or a hundredth of many."""
    found = sorted(ratios)
    return found[min(len(found) - 1, max(2, len(found) // 100))]


def _have_enough(rows: Iterable[Sequence[Looked[T]]], limits: Look, wanted: int) -> bool:
    return all(sum(looked.is_below(limits) for looked in row) >= wanted for row in rows)


def _share_above(limit: float, ratios: deque[float]) -> float:
    if len(ratios) < _TELLING_LOOKS:
        return 0.0
    return sum(ratio > limit for ratio in ratios) / len(ratios)


class _Looker:
    """A thread for each of some cores that times the pieces there, all at once."""

    def __init__(self, cores: tuple[int, ...]) -> None:
        self._cores, self._functions = cores, functions_of()
        self._now = np.zeros((len(cores), 1), np.int64)
        self._found = np.zeros((len(cores), _TIMES + 1, 2), np.int64)
        self._lines = np.zeros((len(cores), _LINE), np.int64)
        self._rounds, self._took_ns = max(1, _PASSES // len(cores)), np.zeros(_PARTS, np.int64)
        devices = [Device(f"core {core}", core_ids=(core,)) for core in cores]
        lanes = [Lane(device, (i,), ((),)) for i, device in enumerate(devices)]
        self._lanes = Lanes(lanes, len(lanes), self._time)

    def look(self) -> Look:
        self._lines[:], self._took_ns[:] = 0, -1
        self._lanes.step(_TIMEOUT_S)
        filling, following = np.median(self._found[:, :_TIMES], axis=1).T
        ratios = dict(zip(self._cores, (filling / following).tolist(), strict=True))
        told_ns: list[int] = self._took_ns[self._took_ns >= 0].tolist()
        # The quickest, for what interrupts one core keeps all waiting.
        latency_ns = min(told_ns, default=math.inf) / (self._rounds * len(ratios))
        return Look(ratios, latency_ns if len(ratios) > 1 else None)

    def _time(self, number: int) -> None:
        from profiling.measuring.siblings_compiled import pass_on, time_pieces

        called = self._functions, self._now[number]
        if len(self._cores) > 1:
            pass_on(number, self._rounds, _MOST_NS, self._lines, *called, self._took_ns)
        time_pieces(_SLOTS, _LINKS, *called, self._found[number])


_looker = functools.cache(_Looker)


def _look(cores: Sequence[int]) -> Look:
    """Both pieces on all of these cores at once, and the latency between them."""
    return _looker(tuple(cores)).look()
