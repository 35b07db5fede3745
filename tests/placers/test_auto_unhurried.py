"""Without a time limit the answer of `auto` does not depend on which thread is quicker."""

import time
from collections import Counter
from dataclasses import replace

import pytest

from placement.parallel.executor import ASK_EVERY_S, HERE, Executor, always
from placement.placers import placer_class
from tests.placers.test_placers import instance


class Late(Executor):
    """The threads of this process, of which one begins late; whoever waits asks all the time."""

    def __init__(self, late):
        self.late, self.begun = late, Counter()

    @property
    def num_lanes(self):
        return HERE.num_lanes

    def num_parts(self, visits):
        return HERE.num_parts(visits)

    def each(self, jobs, going_on=always, every_s=ASK_EVERY_S):
        def begin(number, job, stop):
            time.sleep(0.02 if number == self.late else 0.0)
            self.begun[number] += 1
            return job.here(stop)

        jobs = [
            replace(job, here=lambda stop, i=i, job=job: begin(i, job, stop))
            for i, job in enumerate(jobs)
        ]
        return HERE.each(jobs, going_on, 1e-3)


@pytest.mark.parametrize("late", [0, 1])
def test_a_chain_that_starts_late_is_waited_for(late):
    """Equal devices give two best placements, and each chain finds another of them."""
    problem = instance(26, "call", "latency", num_ops=12, num_devices=3, with_groups=True)
    auto, executor = placer_class("auto"), Late(late)
    assert auto(executor=executor).place(problem) == auto().place(problem)
    assert executor.begun[0] == executor.begun[1] > 0
