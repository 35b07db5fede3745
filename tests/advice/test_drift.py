"""How far a computer has drifted since it was measured, from runs of the model alone."""

from dataclasses import replace

import numpy as np
import pytest

from placement.advice.drift import drift
from placement.api.results import RunResult
from placement.api.wording import drift_in_words
from placement.core.decoding import decode
from tests.fuzz.kinds import run_result
from tests.instances import random_problem


def measured():
    problem = random_problem(3, num_ops=12, num_devices=3, execution="segment")
    return replace(problem, costs=replace(problem.costs, origin="measured"))


def alone_s(problem):
    """By the definition: one call of all kernels, on each device."""
    costs = problem.costs
    return {
        device.name: costs.call_s[d] + sum(costs.compute_s[:, d])
        for d, device in enumerate(problem.machine.devices)
    }


def test_it_is_the_median_over_devices():
    problem = measured()
    factors = dict(zip(alone_s(problem), (1.3, 0.9, 1.1), strict=True))
    now_s = {name: seconds * factors[name] for name, seconds in alone_s(problem).items()}
    assert drift(problem, now_s) == pytest.approx(1.1)


def test_devices_that_were_not_timed_or_that_some_kernel_lacks_say_nothing():
    problem = measured()
    first, second, third = alone_s(problem)
    compute_s = np.array(problem.costs.compute_s)
    compute_s[0, 1] = np.inf
    problem = replace(problem, costs=replace(problem.costs, compute_s=compute_s))
    now_s = {first: alone_s(problem)[first] * 2, second: 1.0, third: None}
    assert drift(problem, now_s) == pytest.approx(2.0)
    assert drift(problem, {}) is None


def test_estimates_do_not_drift():
    problem = random_problem(3, num_ops=12, num_devices=3, execution="segment")
    assert problem.costs.origin != "measured"
    assert drift(problem, alone_s(problem)) is None


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
