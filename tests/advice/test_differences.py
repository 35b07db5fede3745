"""Why a step differs from its prediction: against simulations in which one segment differs."""

from dataclasses import replace

import pytest

from placement.advice.differences import explained
from placement.core.schedule import Schedule, Segment
from placement.core.timeline import Observed, PartTime, Span, Timeline
from placement.simulator.simulate import simulate, step_time_s
from tests.lanes import lanes_problem, random_schedule, run_of, with_kinds


@pytest.mark.parametrize("seed", range(5))
def test_what_went_as_predicted_explains_nothing(seed):
    problem = lanes_problem(seed, crossing_s=3e-5)
    schedule = random_schedule(problem, seed)
    run, predicted = run_of(problem, schedule), simulate(problem, schedule)
    found = explained(predicted, run.observed, run.step_s)
    assert len(found.rows) == len(schedule.segments)
    assert found.step_s == pytest.approx(0, abs=1e-12) and not found.is_tie
    for row in found.rows:
        assert row.seconds == pytest.approx(0, abs=1e-9), row.span
        assert row.explains_s == pytest.approx(0, abs=1e-9), row.span


@pytest.mark.parametrize("seed", range(5))
def test_a_segment_explains_what_the_step_would_be_if_it_alone_were_as_measured(seed):
    """On a machine where nothing slows anything else, an independent simulation says how much."""
    problem = lanes_problem(seed, num_ops=25, crossing_s=3e-5)
    schedule, index = random_schedule(problem, seed), problem.kernels.index
    world = with_kinds(problem, {"Conv": 1.4, "Add": 0.8})
    run, predicted = run_of(world, schedule), simulate(problem, schedule)
    found = explained(predicted, run.observed, run.step_s)
    assert found.step_s == pytest.approx(run.step_s - predicted.step_s)
    alike = [row for row in found.rows if row.waits[0] == pytest.approx(row.waits[1], abs=1e-12)]
    assert any(row.explains_s > 0 for row in alike)
    for row in alike:
        slower_s = problem.costs.compute_s.copy()
        of = [index[name] for name in schedule.segments[row.span.segment].kernels]
        slower_s[of] = world.costs.compute_s[of]
        alone = replace(problem, costs=replace(problem.costs, compute_s=slower_s))
        expected = step_time_s(alone, schedule) - predicted.step_s
        assert row.explains_s == pytest.approx(expected, abs=1e-9), row.span
    explaining = [abs(row.explains_s) for row in found.rows]
    assert explaining == sorted(explaining, reverse=True)


@pytest.mark.parametrize("seed", range(5))
def test_all_segments_together_explain_the_whole_step(seed):
    problem = lanes_problem(seed, num_ops=25, crossing_s=3e-5)
    schedule = random_schedule(problem, seed)
    world = with_kinds(problem, {"Conv": 1.4, "Relu": 1.2})
    run, predicted = run_of(world, schedule), simulate(problem, schedule)
    found = explained(predicted, run.observed, run.step_s)
    # What arrives later or earlier than predicted may be waited for elsewhere.
    assert found.together_s == pytest.approx(found.step_s, rel=0.1)


def part(median_s, scatter_s=0.0):
    return PartTime(median_s, median_s - scatter_s, median_s + scatter_s)


def two_lanes(waits_s):
    """A on one device, its value under way for 1 s, B on the other."""
    spans = (
        Span("compute", "a", "x", 0.0, 3.0, 0),
        Span("transfer", "t", "x->y", 3.0, 4.0, 0, 8, (0,)),
        Span("compute", "b", "y", 4.0, 6.0, 1, 0, (1,)),
    )
    seen = Observed(9, (part(3.0, 0.2), part(2.5, 0.2)), (part(0.0), part(waits_s)), (0.0, 0.0))
    return Timeline(spans, 6.0, "predicted"), seen


def test_a_wait_counts_with_the_segment_that_waits():
    predicted, seen = two_lanes(1.5)
    found = explained(predicted, seen, 7.0, (5.5, 6.5))
    first, second = found.rows
    assert (first.span.name, first.predicted_s, first.measured_s) == ("b", 3.0, 4.0)
    assert first.waits == (1.0, 1.5) and first.explains_s == pytest.approx(1.0)
    assert not first.is_noise and second.is_noise and second.explains_s == 0.0
    assert found.together_s == pytest.approx(1.0) and not found.is_tie


def test_within_the_predicted_range_is_a_tie_and_within_its_scatter_is_noise():
    predicted, seen = two_lanes(0.6)
    found = explained(predicted, seen, 6.1, (5.5, 6.5))
    assert found.is_tie and all(row.is_noise for row in found.rows)


def test_a_run_of_other_segments_is_refused():
    predicted, seen = two_lanes(1.0)
    fewer = Timeline(predicted.spans[:1], 3.0, "predicted")
    with pytest.raises(ValueError, match="other segments"):
        explained(fewer, seen, 6.0)


def test_a_schedule_of_one_segment_explains_all():
    problem = lanes_problem(0)
    names = tuple(op.name for op in problem.kernels.ops)
    schedule = Schedule((Segment("cpu:0", names),))
    run = run_of(with_kinds(problem, {"Conv": 1.5}), schedule)
    found = explained(simulate(problem, schedule), run.observed, run.step_s)
    assert found.rows[0].explains_s == pytest.approx(found.step_s)
