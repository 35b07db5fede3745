"""Hints against brute force: what a move is said to save is what simulating it saves."""

import itertools
import math
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement import simulate
from placement.advice import best_moves
from placement.advice.best_moves import LEAST_SHARE, covers_all, hints
from placement.core.violations import violations
from placement.schedule.order import by_priority, kernel_order, moved
from tests.instances import random_devices, random_problem
from tests.thorough import either
from tests.workloads import problem_from_workload, random_workload


def problems(most_ops):
    """Random problems of both objectives."""
    made = st.builds(
        random_problem,
        st.integers(0, 10_000),
        num_ops=st.integers(1, most_ops),
        num_devices=st.integers(2, 4),
        execution=st.sampled_from(("op", "segment")),
        link_contention=st.booleans(),
        contention=st.sampled_from((0.0, 0.25)),
        with_groups=st.booleans(),
        with_gaps=st.booleans(),
    )
    objectives = st.sampled_from(("latency", "throughput"))
    return st.builds(lambda problem, o: replace(problem, objective=o), made, objectives)


def with_limits(problem, rng):
    """The same where every device has memory for about a part of the model."""
    arrays = problem.kernels.arrays
    most = arrays.param_bytes.sum() + arrays.tensor_bytes.sum()
    devices = tuple(
        replace(d, memory_bytes=int(most * rng.uniform(0.4, 1.1))) for d in problem.machine.devices
    )
    return replace(problem, machine=replace(problem.machine, devices=devices))


def with_pins(problem, devices, rng):
    """The same with some units held where these devices have them."""
    units = rng.sample(range(problem.num_units), problem.num_units // 3)
    names = [d.name for d in problem.machine.devices]
    pins = tuple(
        (problem.graph.ops[problem.ops_of_unit[u][0]].name, names[devices[u]]) for u in units
    )
    return replace(problem, pins=pins)


def posed(seed, problem):
    """A problem with what the seed adds: limits, pins; a placement; an order of its own or none."""
    rng = random.Random(seed)
    if rng.random() < 0.35:
        problem = with_limits(problem, rng)
    devices = random_devices(problem, seed)
    if rng.random() < 0.3:
        problem = with_pins(problem, devices, rng)
    order = ()
    if rng.random() < 0.5:
        order = by_priority(problem.kernels, [rng.random() for _ in problem.kernels.ops])
    return problem, problem.placement_of(devices, order)


def worth(problem, placement):
    """Seconds of the objective, infinite where the placement breaks a rule."""
    predicted = simulate(problem, placement)
    broken = violations(problem, predicted.schedule, placement.calls)
    return math.inf if broken else predicted.value


def best_of_all_moves(problem, placement):
    """The least that a placement is worth that differs in one unit and runs in the same order.

    By definition: the order that the kernels run in, with their ops' names in its place, where the
    placement leaves it open.
    """
    order = placement.order
    if not order and problem.execution != "call":
        ranked = kernel_order(problem, placement, problem.kernel_devices(placement))
        order = tuple(problem.kernels.ops[k].name for k in ranked)
    best_s = math.inf
    for unit, d in itertools.product(range(problem.num_units), range(problem.num_devices)):
        ops = [problem.graph.ops[i].name for i in problem.ops_of_unit[unit]]
        device = problem.machine.devices[d].name
        if placement.device_of[ops[0]] != device and problem.allowed[unit, d]:
            device_of = {**placement.device_of, **dict.fromkeys(ops, device)}
            after = replace(placement, device_of=device_of, order=order)
            best_s = min(best_s, worth(problem, after))
    return best_s


@settings(max_examples=either(10, 60), deadline=None)
@given(problems(16), st.integers(0, 10_000))
def test_what_a_hint_saves_is_what_simulating_its_move_says(problem, seed):
    problem, placement = posed(seed, problem)
    now_s = worth(problem, placement)
    found = hints(problem, placement)
    assert len(found) <= 10
    for hint in found:
        after = moved(problem, placement, dict.fromkeys(hint.ops, hint.device))
        assert worth(problem, after) == pytest.approx(hint.value_s, rel=1e-9)
        saves_s = now_s - hint.value_s if math.isfinite(now_s) else 0.0
        assert hint.saves_s == pytest.approx(saves_s, abs=1e-9)
        assert hint.value_s < now_s
        assert {after.device_of[name] for name in hint.ops} == {hint.device}
        others = [op.name for op in problem.graph.ops if op.name not in hint.ops]
        assert all(after.device_of[name] == placement.device_of[name] for name in others)
    assert [h.value_s for h in found] == sorted(h.value_s for h in found)
    moves = [(hint.ops, hint.device) for hint in found]
    assert len(set(moves)) == len(moves)


def check_against_all_moves(problem, placement):
    """The best hint is at least as good as every move of one unit; with none, no move saves."""
    assert covers_all(problem)
    now_s, best_s = worth(problem, placement), best_of_all_moves(problem, placement)
    found = hints(problem, placement, most=1)
    if best_s < now_s * (1 - LEAST_SHARE):
        assert found, f"one move takes {now_s} to {best_s} and none is hinted"
    if found:
        assert found[0].value_s <= best_s * (1 + 1e-9)


@settings(max_examples=either(15, 100), deadline=None)
@given(problems(14), st.integers(0, 10_000))
def test_the_best_single_move_is_found(problem, seed):
    check_against_all_moves(*posed(seed, problem))


@settings(max_examples=either(8, 40), deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(("latency", "throughput")))
def test_the_best_single_move_of_a_workload_is_found(seed, objective):
    content = random_workload(seed, num_nodes=8)
    problem = replace(problem_from_workload(content, "random"), objective=objective)
    check_against_all_moves(problem, problem.placement_of(random_devices(problem, seed)))


@settings(max_examples=either(8, 40), deadline=None)
@given(problems(7), st.integers(0, 10_000))
def test_nothing_is_hinted_where_no_move_saves(problem, seed):
    """Follow the best hint until there is none: then no single move is better."""
    problem, placement = posed(seed, problem)
    values = [worth(problem, placement)]
    while found := hints(problem, placement, most=1):
        move = dict.fromkeys(found[0].ops, found[0].device)
        placement = moved(problem, placement, move)
        values.append(found[0].value_s)
        assert values[-1] < values[-2]
    assert best_of_all_moves(problem, placement) >= values[-1] * (1 - LEAST_SHARE)


@pytest.mark.parametrize("objective", ["latency", "throughput"])
def test_a_large_graph_gives_ten_hints_and_blocks_among_them(objective):
    problem = replace(random_problem(3, num_ops=200, num_devices=3), objective=objective)
    assert not covers_all(problem)
    placement = problem.placement_of(random_devices(problem, 3))
    found = hints(problem, placement)
    assert len(found) == 10
    assert hints(problem, placement, most=3) == found[:3]
    assert hints(problem, placement) == found
    assert any(len(hint.ops) > 1 and hint.label.startswith("block") for hint in found)


@pytest.mark.parametrize("seed", range(6))
def test_what_is_hinted_on_a_large_graph_saves_what_it_says(seed, monkeypatch):
    """Also where not all moves are looked at, which a small graph is made to need here."""
    monkeypatch.setattr(best_moves, "MOST_FINAL_VISITS", 0)
    problem = random_problem(seed, num_ops=40, num_devices=3)
    problem, placement = posed(seed, problem)
    assert not covers_all(problem)
    found = hints(problem, placement)
    for hint in found:
        after = moved(problem, placement, dict.fromkeys(hint.ops, hint.device))
        assert worth(problem, after) == pytest.approx(hint.value_s, rel=1e-9)
    assert found or math.isinf(worth(problem, placement))


@settings(max_examples=either(15, 40), deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 1000))
def test_pinned_and_unsupported_ops_stay(number, seed):
    free = random_problem(number, num_ops=12, num_devices=3, with_gaps=True)
    rng = random.Random(seed)
    devices = random_devices(free, seed)
    problem = with_pins(free, devices, rng)
    placement = problem.placement_of(devices)
    for hint in hints(problem, placement):
        after = moved(problem, placement, dict.fromkeys(hint.ops, hint.device))
        assert all(after.device_of[op] == device for op, device in problem.pins)
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


def test_the_order_of_the_placement_is_kept():
    problem = random_problem(2, num_ops=10, num_devices=2)
    backwards = by_priority(problem.kernels, -np.arange(10.0))
    ordered = problem.placement_of(random_devices(problem, 2), backwards)
    found = hints(problem, ordered)
    assert found
    for hint in found:
        after = moved(problem, ordered, dict.fromkeys(hint.ops, hint.device))
        assert after.order == ordered.order
        assert simulate(problem, after).value == pytest.approx(hint.value_s, rel=1e-9)


def test_a_move_is_a_tie_where_the_ranges_of_before_and_after_say_so():
    """As whoever makes the move is told then: one of the two lies in the range of the other."""
    judged = set()
    for seed in range(6):
        given = random_problem(seed, num_ops=14)
        spread = np.full(given.costs.compute_s.shape, 0.2)
        problem = replace(given, costs=replace(given.costs, origin="measured", spread=spread))
        placement = problem.placement_of(random_devices(problem, seed))
        now = simulate(problem, placement)
        for hint in hints(problem, placement):
            after = simulate(
                problem, moved(problem, placement, dict.fromkeys(hint.ops, hint.device))
            )
            low_s, high_s = now.range_s
            within = low_s <= after.value <= high_s
            low_s, high_s = after.range_s
            assert hint.is_tie == (within or low_s <= now.value <= high_s), (seed, hint)
            judged.add(hint.is_tie)
    assert judged == {True, False}


def test_a_move_that_makes_everything_fit_is_no_tie():
    """However little it changes of the step, which no run can take before."""
    met = 0
    for seed in range(20):
        tight = with_limits(random_problem(seed, num_ops=14), random.Random(seed))
        spread = np.full(tight.costs.compute_s.shape, 0.2)
        problem = replace(tight, costs=replace(tight.costs, origin="measured", spread=spread))
        placement = problem.placement_of(random_devices(problem, seed))
        if math.isinf(worth(problem, placement)):
            found = hints(problem, placement)
            met += len(found)
            assert not any(hint.is_tie or hint.saves_s for hint in found), seed
    assert met
