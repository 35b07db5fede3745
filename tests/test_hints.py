"""Hints against brute force: what a move is said to save is what simulating it saves."""

import itertools
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.hints import LEAST_SHARE, hints, moved
from placement.pipeline import simulate
from tests.instances import random_devices, random_problem


def problems(most_ops):
    """Random problems of both objectives."""
    made = st.builds(
        random_problem,
        st.integers(0, 10_000),
        num_ops=st.integers(1, most_ops),
        num_devices=st.integers(2, 3),
        execution=st.sampled_from(("op", "segment")),
        link_contention=st.booleans(),
        contention=st.sampled_from((0.0, 0.25)),
        with_groups=st.booleans(),
        with_gaps=st.booleans(),
    )
    objectives = st.sampled_from(("latency", "throughput"))
    return st.builds(lambda problem, o: replace(problem, objective=o), made, objectives)


def single_moves(problem, placement):
    """Value of every placement that differs in one unit, by (unit, device name)."""
    values = {}
    for unit, d in itertools.product(range(problem.num_units), range(problem.num_devices)):
        ops = tuple(problem.graph.ops[i].name for i in problem.ops_of_unit[unit])
        device = problem.machine.devices[d].name
        if placement.device_of[ops[0]] != device and problem.allowed[unit, d]:
            values[unit, device] = simulate(problem, moved(placement, ops, device)).value
    return values


@settings(max_examples=80, deadline=None)
@given(problems(16), st.integers(0, 1000))
def test_what_a_hint_saves_is_what_simulating_its_move_says(problem, seed):
    placement = problem.placement_of(random_devices(problem, seed))
    now_s = simulate(problem, placement).value
    found = hints(problem, placement)
    assert len(found) <= 10
    for hint in found:
        after = moved(placement, hint.ops, hint.device)
        assert simulate(problem, after).value == pytest.approx(hint.value_s, rel=1e-9)
        assert hint.saves_s == pytest.approx(now_s - hint.value_s, abs=1e-9)
        assert hint.value_s < now_s
        assert {after.device_of[name] for name in hint.ops} == {hint.device}
        others = [op.name for op in problem.graph.ops if op.name not in hint.ops]
        assert all(after.device_of[name] == placement.device_of[name] for name in others)
    assert [h.value_s for h in found] == sorted(h.value_s for h in found)
    moves = [(hint.ops, hint.device) for hint in found]
    assert len(set(moves)) == len(moves)


@settings(max_examples=120, deadline=None)
@given(problems(6), st.integers(0, 1000))
def test_the_best_single_move_of_a_tiny_problem_is_found(problem, seed):
    placement = problem.placement_of(random_devices(problem, seed))
    now_s = simulate(problem, placement).value
    values = single_moves(problem, placement)
    best_s = min(values.values(), default=now_s)
    found = hints(problem, placement)
    if best_s < now_s * (1 - LEAST_SHARE):
        assert found
        assert found[0].value_s <= best_s * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(problems(6), st.integers(0, 1000))
def test_nothing_is_hinted_where_no_move_saves(problem, seed):
    """Follow the best hint until there is none: then no single move is better."""
    placement = problem.placement_of(random_devices(problem, seed))
    values = [simulate(problem, placement).value]
    while found := hints(problem, placement, most=1):
        placement = moved(placement, found[0].ops, found[0].device)
        values.append(found[0].value_s)
        assert values[-1] < values[-2]
    best_s = min(single_moves(problem, placement).values(), default=values[-1])
    assert best_s >= values[-1] * (1 - LEAST_SHARE)


@pytest.mark.parametrize("objective", ["latency", "throughput"])
def test_a_large_graph_gives_ten_hints_and_blocks_among_them(objective):
    problem = replace(random_problem(3, num_ops=120, num_devices=3), objective=objective)
    placement = problem.placement_of(random_devices(problem, 3))
    found = hints(problem, placement)
    assert len(found) == 10
    assert hints(problem, placement, most=3) == found[:3]
    assert hints(problem, placement) == found
    assert any(len(hint.ops) > 1 and hint.label.startswith("block") for hint in found)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 1000))
def test_pinned_and_unsupported_ops_stay(number, seed):
    free = random_problem(number, num_ops=12, num_devices=3, with_gaps=True)
    rng = random.Random(seed)
    devices = random_devices(free, seed)
    fixed = rng.sample(range(free.num_units), 4)
    names = [d.name for d in free.machine.devices]
    pins = tuple((free.graph.ops[free.ops_of_unit[u][0]].name, names[devices[u]]) for u in fixed)
    problem = replace(free, pins=pins)
    placement = problem.placement_of(devices)
    for hint in hints(problem, placement):
        after = moved(placement, hint.ops, hint.device)
        assert all(after.device_of[op] == device for op, device in pins)
        for name in hint.ops:
            unit = problem.unit_of_op[problem.graph.index[name]]
            assert problem.allowed[unit, problem.machine.index[hint.device]]


def test_ops_of_one_group_move_together():
    problem = random_problem(8, num_ops=30, num_devices=2, with_groups=True)
    together = {
        frozenset(problem.graph.ops[i].name for i in unit)
        for unit in problem.ops_of_unit
        if len(unit) > 1
    }
    assert together
    for seed in range(5):
        for hint in hints(problem, problem.placement_of(random_devices(problem, seed))):
            assert all(group <= set(hint.ops) or not group & set(hint.ops) for group in together)


def test_what_the_placement_says_about_order_is_given_up():
    problem = random_problem(2, num_ops=10, num_devices=2)
    ordered = problem.placement_of(random_devices(problem, 2), range(10))
    for hint in hints(problem, ordered):
        after = moved(ordered, hint.ops, hint.device)
        assert after.order == ()
        assert simulate(problem, after).value == pytest.approx(hint.value_s, rel=1e-9)
