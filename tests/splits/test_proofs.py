"""Bounds and proofs for throughput without contiguity, against brute force and reference values."""

import numpy as np
import pytest

from placement.splits.annealing.throughput import greedy_start, max_load_s
from placement.splits.bounds.configurations import configuration_bound_s
from placement.splits.bounds.crowd import crowd_bound_s
from placement.splits.bounds.loads import throughput_bound_s
from placement.splits.exact.branch import BranchSearch
from placement.splits.exact.program import Effort, Program
from placement.splits.model.contract import class_units
from tests.splits import force
from tests.splits.graphs import instance_of, modules, random_instance
from tests.splits.workloads import read
from tests.thorough import either


def starts(num_seeds, training):
    """Small instances with a greedy split, its load and the optimum by brute force."""
    for seed in range(num_seeds):
        instance = random_instance(seed, training=training)
        splits = force.splits(instance)
        optimum = force.loads_s(instance, splits).max(axis=1).min(initial=np.inf)
        units = class_units(instance)
        known = None if (~units.on_acc & ~units.on_cpu).any() else greedy_start(units)
        if known is not None:
            yield seed, units, known, max_load_s(units, known), optimum


@pytest.mark.thorough
@pytest.mark.parametrize("training", [False, True])
def test_branch_and_bound_equals_brute_force(training):
    solved = 0
    for seed, units, known, known_s, optimum in starts(either(60, 250), training):
        search = BranchSearch(units, known, known_s)
        while not search.complete:
            search.go_on(50)
        assert search.best_s == pytest.approx(optimum, rel=1e-9, abs=1e-12), seed
        assert max_load_s(units, search.best) == pytest.approx(optimum, rel=1e-9, abs=1e-12), seed
        assert search.bound_s <= optimum * (1 + 1e-9), seed
        solved += 1
    assert solved > either(35, 150)


@pytest.mark.thorough
@pytest.mark.parametrize("training", [False, True])
def test_bounds_are_never_above_the_optimum(training):
    gaps = []
    for seed, units, _, known_s, optimum in starts(either(18, 60), training):
        plain = throughput_bound_s(units)
        crowd = crowd_bound_s(units, known_s)
        assert crowd <= optimum * (1 + 1e-9), seed
        # What is not better than the optimum itself serves as a known value as well.
        assert crowd_bound_s(units, optimum) <= optimum * (1 + 1e-9), seed
        packed = configuration_bound_s(units, plain, known_s, more=lambda bound_s: True)
        assert plain <= packed <= optimum * (1 + 1e-9), seed
        if known_s > plain * 1.01:
            gaps.append([optimum / plain - 1.0, optimum / packed - 1.0])
    before, after = np.mean(gaps, axis=0)
    assert after < 0.1 * before


@pytest.mark.parametrize(
    ("name", "optimum_ms"),
    [("layer_bert24_inference", 17.71472), ("layer_bert24_training", 39.78954)],
)
def test_crowds_prove_bert_to_the_last_digit(name, optimum_ms):
    units = class_units(read(f"throughput/{name}"))
    known_s = optimum_ms * (1 + 1e-4)
    bound = crowd_bound_s(units, known_s)
    assert bound == pytest.approx(optimum_ms, rel=1e-6)


def test_configurations_close_most_of_the_gap_on_a_recurrent_network():
    units = class_units(read("throughput/layer_gnmt_inference"))
    plain = throughput_bound_s(units)
    bound = configuration_bound_s(units, plain, 31.6873, more=lambda bound_s: True)
    assert 31.5 < bound <= 31.6873 * (1 + 1e-6)


def test_a_search_for_prices_ends_when_told():
    units = class_units(modules(4, 3, 3, k=3, cpus=1))
    known_s = max_load_s(units, greedy_start(units))
    plain = throughput_bound_s(units)
    heard = []

    def more(bound_s):
        heard.append(bound_s)
        return len(heard) < 3

    assert configuration_bound_s(units, plain, known_s, more=more) == plain
    # Once more before the next threshold, then it is over.
    assert len(heard) == 4
    late = configuration_bound_s(
        units, plain, known_s, more=lambda bound_s: True, left_s=lambda: 0.0
    )
    assert late == plain


def test_one_device_leaves_nothing_to_choose():
    units = class_units(instance_of([1.0, 2.0], [9, 9], [[0, 1]], [0.5], k=1, cpus=0))
    known = np.zeros(2, dtype=np.int64)
    search = BranchSearch(units, known, 3.0)
    search.go_on(100)
    assert search.complete
    assert search.bound_s == pytest.approx(3.0)
    assert crowd_bound_s(units, 3.0) == pytest.approx(3.0)


def test_a_program_is_solved_for_one_objective_after_the_other():
    """A knapsack: weights 3, 4, 5 within 7; then the third alone counts."""
    program = Program()
    items = [program.whole() for _ in range(3)]
    program.row([(i, w) for i, w in zip(items, (3.0, 4.0, 5.0), strict=True)], upper=7.0)
    program.set_costs(np.array([-4.0, -5.0, -6.0]))
    assert program.solve(Effort()).bound == pytest.approx(-9.0)
    program.set_costs(np.array([0.0, 0.0, -1.0]))
    values, bound = program.solve(Effort())
    assert bound == pytest.approx(-1.0)
    assert values[2] == pytest.approx(1.0)
    program = Program()
    program.row([(program.whole(allowed=False), 1.0)], lower=1.0)
    assert program.solve(Effort()).bound == np.inf
