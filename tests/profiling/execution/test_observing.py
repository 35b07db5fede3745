"""What the parts of a step took, from clock times that are written down by hand."""

import numpy as np
import pytest

from placement.core.machine import Device, Machine
from placement.core.schedule import Schedule, Segment
from placement.core.verb_options import RunOptions
from placement.simulator.lowering import Tasks, Transfer
from placement.simulator.simulate import simulate
from profiling.devices.lanes import Step
from profiling.execution.execute import execute
from profiling.execution.observing import observed
from tests.lanes import lanes_problem, random_schedule, run_of
from tests.profiling import live

MACHINE = Machine("m", (Device("a"), Device("b"), Device("c", kind="gpu")))
SCHEDULE = Schedule((Segment("a", ("k0",)), Segment("b", ("k1",)), Segment("a", ("k2",))))
# k1 reads k0, k2 reads k1.
TASKS = Tasks(
    device=(0, 1, 0),
    work_s=(1.0, 1.0, 1.0),
    lanes=((0, 2), (1,), ()),
    reads=((), (0,), (1,)),
    local_reads=((), (), (0,)),
    sends=((0,), (1,), ()),
    at_start=(),
    transfers=(Transfer(0, 0, 1, 0, 0.1), Transfer(1, 1, 0, 1, 0.1)),
)


def test_a_wait_begins_when_all_that_is_read_was_made_and_the_device_was_free():
    step = Step(10.0, 16.0, (10.5, 12.25, 14.75), (12.0, 14.0, 16.0), {})
    seen = observed(SCHEDULE, MACHINE, TASKS, [step])
    assert [p.median_s for p in seen.computes] == [1.5, 1.75, 1.25]
    assert [p.median_s for p in seen.waits] == [0.5, 0.25, 0.75]
    assert seen.num_steps == 1 and seen.beside == (0.0, 0.0, 0.0)


def test_parts_have_the_median_of_steps_and_what_nine_in_ten_are_between():
    lasts = np.linspace(1.0, 3.0, 21)
    steps = [Step(0.0, 9.0, (0.0, 4.0, 6.0), (s, 5.0, 7.0), {}) for s in lasts]
    seen = observed(SCHEDULE, MACHINE, TASKS, steps)
    part = seen.computes[0]
    assert (part.median_s, part.low_s, part.high_s) == pytest.approx((2.0, 1.1, 2.9))
    assert seen.computes[1].deviation_s == 0.0 and seen.error_s(0) > seen.error_s(2) == 0.0


def test_beside_is_the_share_of_a_segment_in_which_others_compute():
    step = Step(0.0, 8.0, (0.0, 1.0, 4.0), (2.0, 5.0, 8.0), {})
    seen = observed(SCHEDULE, MACHINE, TASKS, [step])
    assert seen.beside == pytest.approx((0.5, 0.5, 0.25))


def by_counting(starts, ends, device, s):
    """Who computes beside a segment, looked at moment by moment."""
    moments = np.linspace(starts[s], ends[s], 20001)[:-1]
    others = [i for i in range(len(starts)) if device[i] != device[s]]
    return sum(((starts[i] <= moments) & (moments < ends[i])).mean() for i in others)


@pytest.mark.parametrize("seed", range(3))
def test_beside_is_what_counting_says(seed):
    problem = lanes_problem(seed, contention=0.2)
    schedule = random_schedule(problem, seed)
    run = run_of(problem, schedule)
    spans = {s.segment: s for s in simulate(problem, schedule).spans if s.kind == "compute"}
    starts, ends = ([getattr(spans[i], e) for i in range(len(spans))] for e in ("start_s", "end_s"))
    device = [s.device for s in schedule.segments]
    for s, found in enumerate(run.observed.beside):
        assert found == pytest.approx(by_counting(starts, ends, device, s), abs=1e-3)


def test_a_live_run_tells_of_each_segment(tmp_path):
    model = live.diamond(tmp_path)
    problem = live.problem_of(model, live.two_lanes())
    schedule = live.random_schedule(problem, np.random.default_rng(1))
    run = execute(problem, schedule, RunOptions(steps=5), model=model, baselines=False)
    assert run.observed is not None and run.observed.num_steps == 5
    assert len(run.observed.computes) == len(schedule.segments)
    for part in (*run.observed.computes, *run.observed.waits):
        assert 0 <= part.low_s <= part.median_s <= part.high_s <= max(run.step_s)
    assert min(part.median_s for part in run.observed.computes) > 0
