"""Placing anew from the current placement: never worse than staying, and only where it pays."""

from dataclasses import replace

import numpy as np
import pytest

from placement import simulate
from placement.advice.replacing import Policy, Slowdown, alone, decide, prepare, unslowed, updated
from placement.placers import placer_class
from tests.instances import random_problem
from tests.thorough import either

POLICY = Policy(time_limit_s=60.0, max_moves=200)


def decided(problem, current, *, steps=1000, switch_s=0.0, policy=POLICY, **known):
    prepare(problem, policy)
    return decide(
        problem, current, known=known, remaining_steps=steps, switch_s=switch_s, policy=policy
    )


def scattered(problem, seed):
    rng = np.random.default_rng(seed)
    draws = [rng.choice(np.flatnonzero(allowed)) for allowed in problem.allowed]
    return problem.placement_of(np.array(draws))


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(either(4, 8)))
def test_never_worse_than_staying(seed):
    problem = random_problem(seed)
    rng = np.random.default_rng(seed)
    factors = rng.uniform(1.0, 3.0, problem.num_devices)
    slowed = updated(problem, Slowdown(factors, 2.0, problem.costs.contention))
    current = scattered(slowed, seed)
    found = decided(slowed, current)
    staying_s = simulate(slowed, current).value
    assert found.before_s == pytest.approx(staying_s)
    assert simulate(slowed, found.placement).value == pytest.approx(found.after_s)
    assert found.after_s <= staying_s
    if found.moves:
        assert found.after_s < staying_s * (1 - POLICY.margin)
        quick = [placement for _, placement in alone(slowed)]
        quick.append(placer_class("ceft_pbqp")().place(slowed))
        assert found.after_s <= min(simulate(slowed, p).value for p in quick) * (1 + 1e-9)
    else:
        assert found.placement == current


def test_a_margin_keeps_what_is_nearly_as_good():
    problem = random_problem(1)
    current = scattered(problem, 0)
    free = decided(problem, current)
    share = 1 - free.after_s / free.before_s
    assert free.moves and share > 0.02
    strict = decided(problem, current, policy=replace(POLICY, margin=min(0.99, share + 0.005)))
    assert not strict.moves and strict.placement == current
    assert "a move must save more than" in strict.reason


def test_a_move_must_pay_in_the_steps_that_are_left():
    problem = random_problem(1)
    current = scattered(problem, 0)
    free = decided(problem, current)
    saved_s = free.before_s - free.after_s
    assert decided(problem, current, steps=11, switch_s=10 * saved_s).moves
    late = decided(problem, current, steps=9, switch_s=10 * saved_s)
    assert not late.moves and "in 9 more steps does not pay for moving" in late.reason


def test_a_known_placement_may_be_the_one_to_go_back_to():
    problem = random_problem(2)
    best = placer_class("local_search")(max_iterations=20_000).place(problem)
    hasty = Policy(placer="round_robin", time_limit_s=1e-9)
    found = decided(problem, scattered(problem, 5), policy=hasty, **{"the old one": best})
    assert found.moves and found.placement == best and found.reason.endswith("(the old one)")


def test_the_profile_is_brought_up_to_date():
    problem = random_problem(3)
    factors = np.arange(1.0, problem.num_devices + 1)
    costs = updated(problem, Slowdown(factors, 3.0, 0.5)).costs
    assert np.array_equal(costs.compute_s, problem.costs.compute_s * factors)
    assert np.array_equal(costs.call_s, problem.costs.call_s * factors)
    assert np.array_equal(costs.latency_s, problem.costs.latency_s * 3.0)
    assert costs.contention == 0.5 and costs.origin == problem.costs.origin
    kernels = np.ones(problem.costs.compute_s.shape)
    links = np.ones(problem.costs.latency_s.shape)
    kernels[2, 1], links[0, 1] = 5.0, 7.0
    parts = updated(problem, replace(unslowed(problem), kernels=kernels, links=links)).costs
    assert np.array_equal(parts.compute_s, problem.costs.compute_s * kernels)
    assert np.array_equal(parts.latency_s, problem.costs.latency_s * links)
    assert np.array_equal(parts.s_per_byte, problem.costs.s_per_byte * links)
    same = updated(problem, unslowed(problem))
    assert same.fingerprint == problem.fingerprint


def test_policies_that_mean_nothing_are_refused():
    with pytest.raises(ValueError, match="nosuch"):
        Policy(placer="nosuch")
    with pytest.raises(ValueError, match="margin is 1"):
        Policy(margin=1.0)
