"""Is the computer busy with something else? Processor time of others while something is measured.

The system counts for each core how long it was busy, and for this process how long it computed
(`/proc/stat` and its like elsewhere); the difference on the cores that are measured is what others
took there, time that a hypervisor gave to others (steal) included. So a busy computer is told apart
from a placement whose own steps differ. A core that is slower by itself (heat) shows in a fixed
piece of work before and after, one whose other hardware thread is busy in another (`siblings.py`).
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from placement.core.events import say_nothing
from placement.core.load import Load
from placement.core.machine import Machine
from profiling import backends
from profiling.backends.base import Core, Counted
from profiling.devices.cores import usable_cores

# How long a measurement waits for others to be done, where nobody says, and how it looks meanwhile.
PATIENCE_S, LOOK_S = 10.0, 0.2
PATIENCE = "PLACEMENT_STUDIO_PATIENCE_S"
_PIECE, _PIECES = bytes(2**20), 5
# Busy seconds by core, and those that this process computed; None where the system does not tell.
Counters = Callable[[], Counted | None]
Clock = Callable[[], float]


def counters() -> Counted | None:
    """What the system has counted up to now."""
    import psutil

    with suppress(OSError, RuntimeError, NotImplementedError):
        rows = psutil.cpu_times(percpu=True)
        if rows and any(row.idle for row in rows):
            busy: dict[Core, float] = {
                core: row.user + getattr(row, "nice", 0.0) + row.system + getattr(row, "steal", 0.0)
                for core, row in enumerate(rows)
            }
            return ((busy, time.process_time()),)
    return None


def piece_s() -> float:
    """Seconds of a fixed piece of work, the least of some: what interrupts it does not count."""
    taken_s = []
    for _ in range(_PIECES):
        begun_s = time.perf_counter()
        hashlib.sha256(_PIECE).digest()
        taken_s.append(time.perf_counter() - begun_s)
    return min(taken_s)


@dataclass
class Watch:
    """Counts what others compute on some cores from when it is made."""

    cores: tuple[Core, ...]
    read: Counters = counters
    clock: Clock = time.perf_counter
    piece: Callable[[], float] = piece_s

    def __post_init__(self) -> None:
        self._piece_s = self.piece()
        self.begin()

    @property
    def seconds(self) -> float:
        """How long it has counted."""
        return self.clock() - self._begun_s

    def begin(self) -> None:
        """Count from here on."""
        self._begun_s, self._before = self.clock(), self.read()

    def load(self) -> Load:
        """The load up to now."""
        ended_s, after = self.clock(), self.read()
        piece_s = self.piece()
        others_s = _others_s(self.cores, self._before, after)
        slowdown = piece_s / self._piece_s if self._piece_s > 0 else 1.0
        return Load(ended_s - self._begun_s, others_s, len(self.cores), slowdown)


def watch(machine: Machine, read: Counters = counters) -> Watch:
    """A watch over the cores on which the host devices of a machine compute; of other computers
    over all cores that they have for it, of which each counts what is not of this work.
    """
    cores, read, is_here = _watched(machine, read)
    # A fixed piece of work on this computer says nothing of others.
    return Watch(cores, read) if is_here else Watch(cores, read, piece=lambda: 0.0)


def _watched(machine: Machine, read: Counters) -> tuple[tuple[Core, ...], Counters, bool]:
    """The cores to be watched, who reads them, and whether they are this computer's."""
    away = backends.elsewhere(machine.devices)
    if not away or len(away) < len(machine.devices):
        return cores_of(machine), read, True
    runtime = backends.of(machine.devices)[machine.devices[0].runtime]
    there = partial(runtime.counters, away)
    cores = tuple(core for busy_s, _ in there() or () for core in busy_s)
    return cores, there, False


def cores_of(machine: Machine) -> tuple[int, ...]:
    """The cores that the host's devices are pinned to; all that can be used where one is not."""
    on_host = [d for d in machine.devices if d.on_host]
    pinned = sorted({core for d in on_host for core in d.core_ids})
    if on_host and all(d.core_ids for d in on_host):
        return tuple(pinned)
    return usable_cores()


def await_quiet(
    machine: Machine,
    on_wait: Callable[[str], None] = say_nothing,
    *,
    patience_s: float | None = None,
    read: Counters = counters,
    clock: Clock = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> float:
    """Wait until nobody else computes on a machine's cores, for a while; the seconds waited.

    `on_wait` is told for what; an exception from it ends the waiting.
    """
    patience_s = patience() if patience_s is None else patience_s
    begun_s, told = clock(), False
    cores, read, _ = _watched(machine, read)
    while clock() - begun_s < patience_s:
        looking = Watch(cores, read, clock, piece=lambda: 0.0)
        sleep(LOOK_S)
        found = looking.load()
        if not found.is_busy:
            break
        if not told:
            on_wait(f"Waiting up to {patience_s:g} s for a quiet computer: {found.words}.")
            told = True
    return clock() - begun_s


def patience() -> float:
    """Seconds to wait for others: those of the environment, where it names any."""
    with suppress(ValueError):
        return max(0.0, float(os.environ.get(PATIENCE, PATIENCE_S)))
    return PATIENCE_S


def together(loads: Iterable[Load]) -> Load:
    """The load of several stretches on the same cores."""
    listed: Sequence[Load] = tuple(loads)
    known = [load.others_s for load in listed if load.others_s is not None]
    return Load(
        sum(load.seconds for load in listed),
        sum(known) if known else None,
        max((load.num_cores for load in listed), default=0),
        max((load.slowdown for load in listed), default=1.0),
        _most(load.beside for load in listed),
        _most(load.core_to_core_s for load in listed),
    )


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _others_s(cores: Sequence[Core], before: Counted | None, after: Counted | None) -> float | None:
    """Busy seconds of the cores that were not of this work, on each computer."""
    if before is None or after is None or not cores or len(before) != len(after):
        return None
    known = {core for busy_s, _ in after for core in busy_s}
    if not all(core in known for core in cores):
        return None
    others_s = 0.0
    for (begun, own_begun_s), (ended, own_ended_s) in zip(before, after, strict=True):
        busy_s = sum(ended[core] - begun.get(core, 0.0) for core in cores if core in ended)
        others_s += max(0.0, busy_s - (own_ended_s - own_begun_s))
    return others_s
