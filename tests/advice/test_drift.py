"""How far a computer has drifted since it was measured, from runs of the model alone."""

from dataclasses import replace

import pytest

from placement.advice.drift import drift, have_moved, profiled_core_to_core_s
from placement.api.results.running import RunResult
from placement.api.wording import drift_in_words
from placement.core.decoding import decode
from placement.core.load import Load
from placement.core.schedule import Schedule, Segment
from tests.fuzz.kinds import run_result
from tests.instances import random_problem
from tests.lanes import profile_of
from tests.profiling.live import two_lanes


def measured(step_s):
    """The profile of a computer with a device for each of these steps of the model alone."""
    problem = random_problem(3, num_ops=12, num_devices=len(step_s), execution="segment")
    return replace(profile_of(problem), step_s=step_s)


def names(profile):
    return [device.name for device in profile.machine.devices]


def test_it_is_the_median_over_devices():
    profile = measured((1.0, 2.0, 4.0))
    assert drift(profile, dict(zip(names(profile), (1.3, 1.8, 4.4), strict=True))) == (
        pytest.approx(1.1)
    )


def test_devices_that_were_not_timed_say_nothing():
    profile = measured((1.0, None, 4.0))
    first, second, third = names(profile)
    assert drift(profile, {first: 2.0, second: 1.0, third: None}) == pytest.approx(2.0)
    assert drift(profile, {}) is None
    assert drift(None, {first: 2.0}) is None


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        (None, ""),
        (1.01, "The model alone takes what it took when it was measured."),
        (1.25, "This computer is 25% slower now"),
        (0.8, "This computer is 20% faster now"),
    ],
)
def test_a_person_reads_it_with_the_step_to_be_expected(factor, said):
    words = drift_in_words(decode(run_result(predicted_s=0.004, drift=factor), RunResult))
    assert words.startswith(said) if said else words == ""
    if factor == 1.25:
        assert words.endswith("5 ms were to be expected.")


@pytest.mark.parametrize(
    ("then_ns", "now_ns", "moved"),
    [
        (40, 45, False),
        (33, 50, False),
        (40, 160, True),
        (160, 40, True),
        (40, 15, True),
        (None, 40, False),
        (40, None, False),
    ],
)
def test_cores_have_moved_where_a_line_takes_another_time_between_them(then_ns, now_ns, moved):
    then_s, now_s = (None if ns is None else ns * 1e-9 for ns in (then_ns, now_ns))
    assert have_moved(then_s, now_s) is moved
    load = Load(1.0, 0.0, 2, core_to_core_s=now_s)
    told = run_result(predicted_s=0.004, profiled_core_to_core_s=then_s, load=load.to_json())
    words = drift_in_words(decode(told, RunResult))
    assert (f"{now_ns} ns from core to core, and took {then_ns} ns" in words) is moved
    assert moved or words == ""


def test_one_core_has_no_distance():
    problem = random_problem(3, num_ops=12, num_devices=2, execution="segment")
    load = Load(1.0, 0.0, 2, core_to_core_s=40e-9)
    costs = replace(problem.costs, load=load)
    problem = replace(problem, costs=costs, machine=two_lanes())
    first, second = (d.name for d in problem.machine.devices)
    assert profiled_core_to_core_s(problem, Schedule((Segment(first, ("a",)),))) is None
    both = Schedule((Segment(first, ("a",)), Segment(second, ("b",))))
    assert profiled_core_to_core_s(problem, both) == 40e-9
