"""A cluster as the executor of searches: their jobs are calls on all hosts, by way of a farm.

Where hosts leave, the others go on; where all do, or the head, the search goes on here.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from queue import Empty
from typing import Any

from placement.parallel.calls import Call
from placement.parallel.encoding import encoded
from placement.parallel.executor import ASK_EVERY_S, HERE, Executor, Job, always
from profiling.backends._ray.farm import Farm, Gone


class Hosts(Executor):
    """The lanes of a farm; `tell` hears a sentence where hosts leave."""

    def __init__(self, farm: Farm, tell: Callable[[str], object], worth_visits: float) -> None:
        self._farm, self._tell, self._worth_visits = farm, tell, worth_visits

    @property
    def num_lanes(self) -> int:
        return self._farm.num_lanes or HERE.num_lanes

    def num_parts(self, visits: float) -> int:
        if not self._farm.is_alive:
            return 1
        return int(min(self._farm.num_lanes, visits // max(1.0, self._worth_visits)))

    def prepare(self, call: Call) -> None:
        asked = call.name, encoded(call.args)
        if asked not in self._farm.prepared:
            self._farm.prepared.add(asked)
            job = Job(here=lambda _: None, away=lambda: call)
            self.each([job] * self._farm.num_lanes)

    def each(
        self,
        jobs: Sequence[Job],
        going_on: Callable[[], bool] = always,
        every_s: float = ASK_EVERY_S,
    ) -> list[Any]:
        if not self._farm.is_alive:
            self._pass_on()
            return HERE.each(jobs, going_on, every_s)
        away, next_s = _Away(self._farm, jobs), time.monotonic() + every_s
        try:
            while away.left:
                away.settle(next_s)
                if away.left and time.monotonic() >= next_s:
                    next_s = time.monotonic() + every_s
                    self._pass_on()
                    if not going_on():
                        return away.found
        finally:
            away.cancel()
        self._pass_on()
        done_here = HERE.each([jobs[i] for i in away.undone], going_on, every_s)
        for i, value in zip(away.undone, done_here, strict=True):
            away.found[i] = value
        return away.found

    def _pass_on(self) -> None:
        """Tell what was said of hosts since."""
        with suppress(Empty):
            while True:
                self._tell(self._farm.said.get_nowait())


class _Away:
    """Jobs that are with the hosts: what is `found` of each, which ones nobody did, and the answers
    that are `left` to come."""

    def __init__(self, farm: Farm, jobs: Sequence[Job]) -> None:
        self._farm, self._jobs = farm, jobs
        self._calls = [job.away() for job in jobs]
        asked = [
            farm.ask(call, job.until_s, job.whole)
            for call, job in zip(self._calls, jobs, strict=True)
        ]
        self._numbers = [number for number, _ in asked]
        self._job_of: dict[Future[bytes], int] = {future: i for i, (_, future) in enumerate(asked)}
        self.left = set(self._job_of)
        self.found: list[Any] = [None] * len(jobs)
        self.undone = list[int]()

    def settle(self, until_s: float) -> None:
        """Take the answers that come next, which is waited for until then."""
        seconds = max(0.0, until_s - time.monotonic())
        done, self.left = wait(self.left, seconds, FIRST_COMPLETED)
        for future in sorted(done, key=self._job_of.__getitem__):
            i = self._job_of[future]
            try:
                answer = self._calls[i].answer(future.result())
            except Gone:
                self.undone.append(i)
            else:
                self.found[i] = self._jobs[i].back(answer)

    def cancel(self) -> None:
        """Wait no more for what is left."""
        self._farm.cancel([self._numbers[self._job_of[future]] for future in self.left])
