"""How a lane in Python waits for another one: asleep, or awake without the interpreter's lock."""

import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from placement.core.graph import Ints
from profiling.devices import native
from profiling.devices.native import ENDLESS, NativeLock, functions_of

# By so long after it has begun a segment a lane in Python has let go of the interpreter's lock
# (5 to 15 us); one that wants to come back to the interpreter waits for that, and at most so long.
CLEAR_NS, MOST_CLEAR_NS = 20_000, 200_000


class Waiting(Protocol):
    """Asked in each step by the lane's own thread; locks are of the kind that it makes."""

    def made(self) -> Any:
        """A taken lock."""

    def begin(self) -> None:
        """A step begins."""

    def take(self, lock: Any) -> bool:
        """Take a lock; whether it had to be waited for."""

    def compute(self, run: Callable[[int], None], segment: int) -> None:
        """Run a segment."""

    def end(self) -> None:
        """A step is over."""


class AsleepLane:
    """A lane that sleeps in the operating system while it waits for another one."""

    def made(self) -> threading.Lock:
        lock = threading.Lock()
        lock.acquire()
        return lock

    def begin(self) -> None:
        pass

    def take(self, lock: threading.Lock) -> bool:
        if lock.acquire(blocking=False):
            return False
        lock.acquire()
        return True

    def compute(self, run: Callable[[int], None], segment: int) -> None:
        run(segment)

    def end(self) -> None:
        pass


class AwakeLane:
    """A lane that tries for a while before it sleeps, as native ones do.

    `until_ns` (L,) is shared by all lanes: when each of them will have let go of the interpreter's
    lock, 0 where it has.
    """

    def __init__(self, lane: int, until_ns: Ints) -> None:
        from profiling.devices.lanes_compiled import take_for_python

        self._lane, self._until_ns, self._compiled = lane, until_ns, take_for_python
        self._functions = functions_of()
        self._status, self._now = np.zeros(2, np.int64), np.zeros(1, np.int64)
        # What is compiled here no step waits for.
        free = self.made()
        free.release()
        self._wait(free)

    def made(self) -> NativeLock:
        return NativeLock()

    def begin(self) -> None:
        self._status[1] = max(self._status[1] - 1, 0)
        self._until_ns[self._lane] = ENDLESS

    def take(self, lock: NativeLock) -> bool:
        if lock.take_if_free():
            return False
        self._wait(lock)
        return True

    def _wait(self, lock: NativeLock) -> None:
        self._compiled(
            lock.address,
            self._functions,
            native.PATIENCE_NS,
            self._status,
            self._now,
            self._lane,
            self._until_ns,
            MOST_CLEAR_NS,
        )

    def compute(self, run: Callable[[int], None], segment: int) -> None:
        """Run a segment, which needs the interpreter's lock at its begin and its end."""
        self._until_ns[self._lane] = time.perf_counter_ns() + CLEAR_NS
        run(segment)
        self._until_ns[self._lane] = ENDLESS

    def end(self) -> None:
        self._until_ns[self._lane] = 0
