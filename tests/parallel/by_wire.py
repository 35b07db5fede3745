"""An executor that does nothing in place: jobs are calls in bytes, performed in this process."""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from placement.parallel.calls import performed
from placement.parallel.encoding import encoded
from placement.parallel.executor import ASK_EVERY_S, Executor, Job, always


class ByWire(Executor):
    """Counts the calls that it performs, by the name of the function."""

    def __init__(self, num_lanes: int = 3) -> None:
        self._num_lanes = num_lanes
        self.calls: Counter[str] = Counter()

    @property
    def num_lanes(self) -> int:
        return self._num_lanes

    def num_parts(self, visits: float) -> int:
        return self._num_lanes

    def each(
        self,
        jobs: Sequence[Job],
        going_on: Callable[[], bool] = always,
        every_s: float = ASK_EVERY_S,
    ) -> list[object]:
        # The last first: nothing depends on who is done when.
        found = [self._done(job) for job in reversed(jobs)]
        return found[::-1]

    def _done(self, job: Job) -> object:
        call = job.away()
        self.calls[call.name] += 1
        content = [encoded(value) for value in call.shared]
        shared = {hashlib.sha256(c).hexdigest(): partial(bytes, c) for c in content}
        args = [encoded(value) for value in call.args]
        return job.back(call.answer(performed(call.name, shared, args, job.seconds_left, 1)))
