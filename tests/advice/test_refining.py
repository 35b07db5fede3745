"""A profile refined by runs: what helps placements that are held out, and nothing else."""

from dataclasses import replace

import numpy as np
import pytest

from placement.advice.refining import STRENGTHS, held_out, refined_by
from placement.core.profile import MOST_RUNS, Refinement, runs_of
from placement.costs.refined import refined as by_runs
from placement.simulator.simulate import step_time_s
from tests.lanes import lanes_problem, profile_of, random_schedule, run_of, with_kinds


def refined(problem, *runs):
    profile, found = profile_of(problem), None
    for run in runs:
        found = refined_by(problem, profile, run)
        profile = found.profile
    return found


def runs_in(world, num, **more):
    return [
        run_of(world, random_schedule(world, i), f"placement {i}", seed=i, **more)
        for i in range(num)
    ]


def test_one_placement_alone_is_believed_and_says_nothing_of_others():
    problem = lanes_problem(0)
    (run,) = runs_in(with_kinds(problem, {"Conv": 1.2}), 1)
    found = refined(problem, run)
    assert runs_of(found.profile) == (run,) and found.profile.refined_by.strength == 1.0
    assert found.held_out_before is None and found.held_out_after is None
    assert replace(found.profile, refined_by=None) == profile_of(problem)


@pytest.mark.parametrize("seed", range(3))
def test_what_holds_for_all_placements_is_followed(seed):
    problem = lanes_problem(seed)
    found = refined(problem, *runs_in(with_kinds(problem, {"Conv": 1.25}), 3, scatter=0.01))
    assert found.profile.refined_by.strength == 1.0
    assert found.held_out_after < found.held_out_before / 2


@pytest.mark.parametrize("seed", range(3))
def test_what_only_holds_for_one_run_is_not_followed(seed):
    """Each run is off by as much as the others, in another direction."""
    problem = lanes_problem(seed)
    runs = []
    for i, factor in enumerate((0.8, 1.25)):
        world = with_kinds(problem, dict.fromkeys(("Conv", "Relu", "Add"), factor))
        runs.append(run_of(world, random_schedule(problem, i), f"placement {i}"))
    found = refined(problem, *runs)
    assert found.profile.refined_by.strength == 0.0
    assert found.held_out_after == found.held_out_before


@pytest.mark.parametrize("strength", STRENGTHS)
def test_a_held_out_run_is_predicted_by_all_others(strength):
    problem = lanes_problem(1)
    runs = runs_in(with_kinds(problem, {"Add": 1.3}), 3)
    for i, error in enumerate(held_out(problem, runs, strength)):
        others = Refinement((*runs[:i], *runs[i + 1 :]), strength)
        costs = by_runs(problem.costs, problem.kernels, problem.machine, others)
        predicted_s = step_time_s(replace(problem, costs=costs), runs[i].schedule)
        assert error == pytest.approx(abs(np.log(predicted_s / runs[i].step_s)))


def test_a_placement_counts_once_and_the_oldest_run_leaves():
    problem = lanes_problem(2)
    world = with_kinds(problem, {"Conv": 1.1})
    runs = runs_in(world, MOST_RUNS + 1)
    again = replace(runs[3], step_s=runs[3].step_s * 1.01)
    found = refined(problem, *runs[:5], again)
    assert runs_of(found.profile) == (*runs[:3], runs[4], again)
    found = refined(problem, *runs)
    assert runs_of(found.profile) == tuple(runs[1:])


def test_a_run_of_other_kernels_is_refused():
    problem, other = lanes_problem(3), lanes_problem(3, num_ops=41)
    run = run_of(other, random_schedule(other, 0))
    with pytest.raises(ValueError, match="op40"):
        refined_by(problem, profile_of(problem), run)
