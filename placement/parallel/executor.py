"""Who carries out work that can be done side by side: the threads of this process, or others.

A search says what it has to do as jobs. Each can be done here, in place, or as a call of a function
of values that travel; both lead to the same, to the bit, where no clock decides. So a search does
not know where its chains are.
"""

import math
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from placement.parallel.calls import Call

# How often whoever waits for jobs is asked whether to go on.
ASK_EVERY_S = 0.5
Stop = Callable[[], bool]


def as_they_come(value: Any) -> Any:
    """The default of what becomes of an answer: nothing else."""
    return value


def always() -> bool:
    """The default of whoever may end jobs: they go on."""
    return True


@dataclass(frozen=True, eq=False, kw_only=True)
class Job:
    """A piece of work: `here` does it on this computer and ends early once it is told to.

    `away` is the same as a call, made when its turn comes, and `back` takes what that answers. What
    has until `until_s` on the monotonic clock is told how long that is. One that is `whole` keeps
    all cores of a computer busy.
    """

    here: Callable[[Stop], Any]
    away: Callable[[], Call]
    back: Callable[[Any], Any] = as_they_come
    until_s: float = math.inf
    whole: bool = False

    @property
    def seconds_left(self) -> float:
        return max(0.0, self.until_s - time.monotonic())


class Executor(ABC):
    """Carries out jobs, as many at once as it has lanes."""

    @property
    @abstractmethod
    def num_lanes(self) -> int:
        """Cores that it has for jobs."""

    @abstractmethod
    def each(
        self,
        jobs: Sequence[Job],
        going_on: Callable[[], bool] = always,
        every_s: float = ASK_EVERY_S,
    ) -> list[Any]:
        """What all jobs come to, in their order; an error of any of them is raised.

        While they are at work `going_on` is asked now and then. Once it says no they end early, and
        of one that was away nothing comes back: None.
        """

    def prepare(self, call: Call) -> None:
        """Have a call carried out on each lane that is elsewhere, and wait for that."""
        return

    @abstractmethod
    def num_parts(self, visits: float) -> int:
        """Into how many jobs work is worth being split, by the kernels and tensors that it visits.

        Fewer than two where it is best done in one piece, here.
        """


@dataclass(frozen=True)
class Threads(Executor):
    """The threads of this process; with `most_lanes` not all cores of the computer are for it."""

    most_lanes: int = 0

    @property
    def num_lanes(self) -> int:
        return min(self.most_lanes or num_cores(), num_cores())

    def each(
        self,
        jobs: Sequence[Job],
        going_on: Callable[[], bool] = always,
        every_s: float = ASK_EVERY_S,
    ) -> list[Any]:
        if not jobs:
            return []
        stopped = threading.Event()
        num = 1 if any(job.whole for job in jobs) else len(jobs)
        with ThreadPoolExecutor(num) as pool:
            works = [pool.submit(job.here, stopped.is_set) for job in jobs]
            while wait(works, every_s).not_done:
                if not going_on():
                    stopped.set()
        return [work.result() for work in works]

    def num_parts(self, visits: float) -> int:
        return 1


HERE = Threads()


def num_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
