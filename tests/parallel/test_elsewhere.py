"""Searches whose jobs are done elsewhere, as bytes: the same answers, to the bit."""

import math
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from placement.core.problem import Objective, Problem
from placement.parallel.calls import Call, performed, travels
from placement.parallel.encoding import decoded, encoded
from placement.parallel.executor import HERE, Job, Threads
from placement.placers import names, placer_class
from placement.placers.base import quiet
from placement.search import windows
from placement.search.chain import Chain, Leg, start_of
from placement.search.coarsening import blocks
from placement.splits.annealing import search as splits_search
from placement.splits.annealing.throughput import Rounds, greedy_start
from placement.splits.model.contract import class_units
from tests.instances import random_devices, random_problem
from tests.parallel.by_wire import ByWire
from tests.splits.graphs import modules
from tests.thorough import either
from tests.workloads import random_workload_problem

MOVES = either(200, 400)
# What each method is asked for, so that its work is fixed and small; all that use all cores.
FIXED = {
    "annealing": {"max_iterations": MOVES},
    "auto": {"max_iterations": MOVES},
    "genetic": {"max_iterations": 3, "population": 8},
    "local_search": {"max_iterations": MOVES},
    "group_pg": {"max_iterations": 2},
    "hierarchical": {"max_iterations": 2},
    "hsdag": {"max_iterations": 2},
    "list_policy": {"max_iterations": 3, "batch": 8},
    "mutation": {"max_iterations": 3, "batch": 8},
    "placeto": {"max_iterations": 1},
    "random_search": {"max_iterations": 3, "batch": 8},
    "rnn": {"max_iterations": 2},
}


SPLITS = ("annealing_split", "branch_and_bound")


def rough(seed, **kind):
    """A random problem whose times are no whole numbers, so that every sum is rounded."""
    problem = random_problem(seed, num_ops=24, num_devices=3, with_groups=True, **kind)
    shares = 0.5 + np.random.default_rng(seed).random(problem.costs.compute_s.shape)
    costs = replace(problem.costs, compute_s=problem.costs.compute_s * shares)
    return replace(problem, costs=costs)


def by_turns(names):
    """Each with all its objectives, or in `make test` with the one or the other."""
    asked = []
    for number, name in enumerate(names):
        known = placer_class(name).objectives
        one = known[number % len(known)]
        asked += [(name, objective) for objective in either((one,), known)]
    return asked


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "objective"), by_turns(FIXED))
def test_a_method_finds_the_same_elsewhere(name, objective):
    kind, problem = placer_class(name), replace(rough(3), objective=objective)
    for seed in range(either(1, 2)):
        away = ByWire()
        here = kind(seed=seed, **FIXED[name]).place(problem)
        there = kind(seed=seed, executor=away, **FIXED[name]).place(problem)
        assert there == here, seed
        assert away.calls.total() > 0


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "objective"), by_turns((*SPLITS, "auto", "list_policy", "random_search"))
)
def test_a_workload_is_split_the_same_elsewhere(name, objective):
    problem = replace(random_workload_problem(5, num_nodes=either(11, 14)), objective=objective)
    asked = FIXED.get(name, {"max_iterations": 90_000})
    for seed in range(either(1, 2)):
        away = ByWire()
        here = placer_class(name)(seed=seed, **asked).place(problem)
        there = placer_class(name)(seed=seed, executor=away, **asked).place(problem)
        assert there == here, seed
        assert away.calls.total() > 0


def test_every_method_that_uses_all_cores_is_tried_elsewhere():
    several = {name for name in names() if placer_class(name).all_cores}
    assert several == {*FIXED, *SPLITS}


@pytest.mark.parametrize("objective", Objective)
@pytest.mark.parametrize("how", [{"kick": 2}, {"hot": 0.1, "cold": 1e-4}])
def test_a_chain_that_changes_computers_is_the_same_to_the_bit(how, objective):
    """Legs here and as calls in turn, beside a chain that stays: all that it goes on from."""
    for seed in range(4):
        problem = replace(rough(seed, contention=0.1 * (seed % 2)), objective=objective)
        start = start_of(problem, problem.placement_of(random_devices(problem, 1)))
        chains = [Chain(problem, start, blocks(problem), seed=seed, **how) for _ in range(2)]
        for number in range(8):
            leg = Leg(
                num_moves=150,
                since=number / 8,
                until=(number + 1) / 8,
                limit_s=math.inf,
                turns=True,
            )
            stays, goes = chains
            stays.go(leg, math.inf)
            job = Job(here=lambda _: None, away=partial(goes.going, leg), back=goes.resume)
            ByWire().each([job])
            assert encoded(goes.state) == encoded(replace(stays.state, move_s=goes.state.move_s))


def test_a_chain_without_a_deadline_ends_once_it_is_told():
    """Where all moves of a leg were made at once nobody could end a task before them."""
    problem = rough(0)
    start = start_of(problem, problem.placement_of(random_devices(problem, 1)))
    chain = Chain(problem, start, blocks(problem), seed=0, kick=2)
    asked = iter((False, False, True, True))
    leg = Leg(num_moves=10**7, since=0.0, until=1.0, limit_s=math.inf, turns=True)
    chain.go(leg, math.inf, lambda: next(asked))
    assert 0 < chain.num_moves < leg.num_moves


def test_a_chain_of_splits_that_changes_computers_is_the_same_to_the_bit():
    """It leaves in every stage of its rounds: after the first fall, among pairs, while it cools."""
    units = class_units(modules(3, 2, 3, k=2, cpus=1))
    annealing, seen, num_legs = Rounds(units), set(), 60
    stays, goes = (annealing.chain(greedy_start(units), seed=7) for _ in range(2))
    for number in range(1, num_legs + 1):
        leg = splits_search.Leg(
            until=number / num_legs, max_iterations=1_200_000, time_limit_s=None, proven_s=0.0
        )
        annealing.go(stays, leg, math.inf)
        job = Job(here=lambda _: None, away=partial(annealing.going, goes, leg), back=goes.become)
        ByWire().each([job])
        assert encoded(goes) == encoded(stays), number
        at = goes.round
        seen.add((min(at.number, 2), at.stage, bool(at.stale.any())))
    assert {(0, 0, False), (0, 1, True), (1, 0, False), (2, 0, False), (2, 1, True)} <= seen


def test_windows_of_a_large_graph_are_searched_the_same_elsewhere():
    problem = rough(1)
    start = start_of(problem, problem.placement_of(random_devices(problem, 1)))
    away = ByWire()
    asked = {"seed": 4, "num_parts": 3, "max_iterations": 3000}
    here = windows.improve_along(problem, start, quiet, **asked)
    there = windows.improve_along(problem, start, quiet, executor=away, **asked)
    assert here.tolist() == there.tolist()
    assert away.calls == {"placement.search.windows:moved": 3}


def test_a_problem_is_read_as_it_was_written():
    for problem in (rough(2), random_workload_problem(1)):
        found = decoded(encoded(problem), Problem)
        assert found.fingerprint == problem.fingerprint
        assert found.costs.compute_s.tobytes() == problem.costs.compute_s.tobytes()


@travels
def halved(value: int, seconds: float) -> float:
    if value % 2:
        raise ValueError(f"{value} is odd; use an even number.")
    return value / 2 + seconds


def test_calls_answer_or_refuse_in_words():
    call, odd = Call(halved, (), (6,)), Call(halved, (), (7,))
    assert call.answer(performed(call.name, {}, [encoded(6)], 10.0, 1)) == 13.0
    with pytest.raises(ValueError, match="7 is odd; use an even number"):
        odd.answer(performed(odd.name, {}, [encoded(7)], 10.0, 1))


def test_nothing_is_called_that_does_not_travel_nor_with_what_it_does_not_take():
    with pytest.raises(ValueError, match="os:system cannot be called from another computer"):
        performed("os:system", {}, [encoded("true")], 0.0, 1)
    with pytest.raises(ValueError, match="Expected `int`, got `str`"):
        performed(Call(halved).name, {}, [encoded("six")], 0.0, 1)


def test_threads_give_answers_in_order_and_raise_what_a_job_raises():
    jobs = [Job(here=lambda stop, i=i: i * i, away=lambda: Call(halved)) for i in range(5)]
    assert HERE.each(jobs) == [0, 1, 4, 9, 16]
    assert HERE.each([]) == []
    with pytest.raises(ZeroDivisionError):
        Threads(1).each([*jobs, Job(here=lambda stop: 1 / 0, away=lambda: Call(halved))])


def test_threads_end_early_once_whoever_waits_says_no():
    def until_told(stop):
        while not stop():
            time.sleep(0.001)
        return "told"

    jobs = [Job(here=until_told, away=lambda: Call(halved)) for _ in range(2)]
    assert HERE.each(jobs, lambda: False, 0.01) == ["told", "told"]
