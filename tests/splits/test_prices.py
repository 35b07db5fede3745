"""Bounds by prices: parts in a row against all subsets, and bounds against brute force."""

import itertools

import numpy as np
import pytest

from placement.splits.annealing.search import Budget
from placement.splits.annealing.throughput import best_split, greedy_start, max_load_s
from placement.splits.bounds import prices
from placement.splits.bounds import row as rows
from placement.splits.bounds.loads import throughput_bound_s
from placement.splits.bounds.prices import price_bound_s
from placement.splits.bounds.row_compiled import units_of, worth_by_load
from placement.splits.model.contract import class_units
from tests.splits import force
from tests.splits.graphs import instance_of, modules, random_instance
from tests.splits.workloads import read
from tests.thorough import either


def load_of(units, held):
    total = units.acc_s[held].sum()
    for net, cost in enumerate(units.net_cost_s):
        inside = held[units.net_units[units.net_ptr[net] : units.net_ptr[net + 1]]]
        total += cost * (inside.any() and not inside.all())
    return total


def parts(units):
    """Every part of an accelerator and its load, memory aside."""
    for choice in itertools.product((False, True), repeat=units.num_units):
        held = np.array(choice)
        if not (held & ~units.on_acc).any():
            yield held, load_of(units, held)


@pytest.mark.thorough
@pytest.mark.parametrize("training", [False, True])
def test_parts_in_a_row_are_all_parts(training):
    for seed in range(either(50, 100)):
        units = class_units(random_instance(seed, training=training))
        price = np.random.default_rng(seed).normal(size=units.num_units)
        row = rows.row_of_accelerator(units)
        cap_s = 0.6 * (units.acc_s[units.on_acc].sum() + units.net_cost_s.sum()) + 1e-3
        every = [(load, price[held].sum()) for held, load in parts(units) if load <= cap_s]
        for steps, safe in ((4, True), (5000, True), (5000, False)):
            load, worth, label, labels = worth_by_load(row, price, cap_s * (1 + 1e-9), steps, safe)
            for part_load, part_worth in every:
                at = np.searchsorted(load, part_load * (1 + 1e-9) + 1e-12, side="right") - 1
                if safe:
                    assert worth[at] >= part_worth - 1e-9, seed
            held = units_of(row, label[-1], labels)
            assert price[held].sum() == pytest.approx(worth[-1]), seed
            if steps == 5000:
                assert load_of(units, held) == pytest.approx(load[-1], rel=1e-3, abs=1e-9), seed
                assert worth[-1] == pytest.approx(max(w for _, w in every), abs=1e-9), seed


@pytest.mark.thorough
@pytest.mark.parametrize("training", [False, True])
def test_fewer_nets_make_no_part_dearer(training, monkeypatch):
    """Rows with so few states that nets are left out allow at least all parts."""
    monkeypatch.setattr(rows, "MAX_OPEN", 1)
    monkeypatch.setattr(rows, "MAX_STATES", 12)
    for seed in range(either(30, 60)):
        units = class_units(random_instance(seed, training=training))
        price = np.random.default_rng(seed).normal(size=units.num_units)
        row = rows.row_of_accelerator(units)
        assert len(row.after) <= 2 * max(12, units.num_units)
        load, worth, _, _ = worth_by_load(row, price, 1e3, 1000, True)
        for held, part_load in parts(units):
            at = np.searchsorted(load, part_load * (1 + 1e-9) + 1e-12, side="right") - 1
            assert worth[at] >= price[held].sum() - 1e-9, seed


@pytest.mark.thorough
@pytest.mark.parametrize("training", [False, True])
def test_bounds_are_never_above_the_optimum(training):
    gaps = []
    for seed in range(either(18, 150)):
        instance = random_instance(seed, training=training)
        splits = force.splits(instance)
        optimum = force.loads_s(instance, splits).max(axis=1).min(initial=np.inf)
        units = class_units(instance)
        known = None if (~units.on_acc & ~units.on_cpu).any() else greedy_start(units)
        if known is None:
            continue
        known_s = max_load_s(units, known)
        plain = throughput_bound_s(units)
        bound = price_bound_s(units, plain, known_s, more=lambda bound_s: True)
        assert plain <= bound <= optimum * (1 + 1e-9), seed
        assert price_bound_s(units, plain, optimum, more=lambda bound_s: True) <= optimum * (
            1 + 1e-9
        ), seed
        if known_s > plain * 1.01 and np.isinf(instance.limit_bytes):
            gaps.append([optimum / plain - 1.0, optimum / bound - 1.0])
    before, after = np.mean(gaps, axis=0)
    assert after < 0.3 * before


@pytest.mark.thorough
def test_bounds_hold_and_rise_where_steps_are_few(monkeypatch):
    """Loads told far too low prove little; finer steps come where dearest parts are not true."""
    monkeypatch.setattr(prices, "LEAST_STEPS", 2)
    monkeypatch.setattr(prices, "MOST_UNTRUE", 1)
    monkeypatch.setattr(prices, "COARSE", (1, 1))
    sums = []
    for seed in range(either(15, 120)):
        instance = random_instance(seed, training=seed % 2 == 1)
        units = class_units(instance)
        splits = force.splits(instance)
        optimum = force.loads_s(instance, splits).max(axis=1).min(initial=np.inf)
        if not 0.0 < optimum < np.inf:
            continue
        bounds = []
        for fine in ((1, 1), (512, 1_000_000)):
            monkeypatch.setattr(prices, "FINE", fine)
            plain = throughput_bound_s(units)
            bounds.append(price_bound_s(units, plain, optimum, more=lambda bound_s: True))
            assert bounds[-1] <= optimum * (1 + 1e-9), seed
        sums.append([bound / optimum for bound in bounds])
    coarse, fine = np.mean(sums, axis=0)
    assert len(sums) > either(8, 80)
    assert fine > coarse


def test_a_search_for_prices_ends_when_told():
    units = class_units(modules(4, 3, 3, k=3, cpus=1))
    known_s = max_load_s(units, greedy_start(units))
    plain = throughput_bound_s(units)
    heard = []

    def more(bound_s):
        heard.append(bound_s)
        return len(heard) < 3

    assert plain <= price_bound_s(units, plain, known_s, more=more) <= known_s
    assert len(heard) == 3
    late = price_bound_s(units, plain, known_s, more=lambda bound_s: True, left_s=lambda: 0.0)
    assert plain <= late <= known_s


@pytest.mark.only_thorough
def test_prices_come_near_the_best_split_of_an_attention_graph():
    units = class_units(read("throughput/op_bert3_inference"))
    plain = throughput_bound_s(units)
    bound = price_bound_s(units, plain, 21.9084, more=lambda bound_s: True)
    assert 21.8 < bound <= 21.9084


def test_a_unit_with_nets_to_everywhere_leaves_the_row_narrow():
    """A chain, each pair of which has a net with one unit: all nets count, with few states."""
    num = 24
    pairs = [[i, i + 1] for i in range(num - 1)]
    nets = pairs + [[num, i, i + 1] for i in range(0, num, 2)]
    rng = np.random.default_rng(0)
    acc, costs = rng.uniform(0.5, 2.0, num + 1), rng.uniform(0.1, 0.5, len(nets))
    units = class_units(instance_of(acc, acc, nets, costs, k=3, cpus=0))
    row = rows.row_of_accelerator(units)
    assert np.diff(row.first).max() <= 12
    cap_s = acc.sum() / 2
    for _ in range(10):
        price = rng.normal(size=num + 1)
        load, _, label, labels = worth_by_load(row, price, cap_s, 5000, False)
        for i in range(len(load)):
            assert load_of(units, units_of(row, label[i], labels)) == pytest.approx(load[i])


# Rows of modules whose best split prices prove, and only after more than four rounds.
PROVEN = (((3, 2, 3), 2), ((4, 2, 2), 3))


def test_thresholds_that_take_many_rounds_are_tried_again(monkeypatch):
    """However few rounds a threshold gets at first, the bound comes as near as the prices allow."""
    monkeypatch.setattr(prices, "ROUNDS", 4)
    for sizes, k in PROVEN:
        units = class_units(modules(*sizes, k=k, cpus=1, seed=1))
        known_s = best_split(units, None, budget=Budget(None, 20_000), num_chains=1).load_s
        plain = throughput_bound_s(units)
        bound_s = price_bound_s(units, plain, known_s, more=lambda _: True)
        assert known_s * 0.9999 <= bound_s <= known_s, sizes
        with monkeypatch.context() as patched:
            patched.setattr(prices, "MOST_ROUNDS", 4)
            once_s = price_bound_s(units, plain, known_s, more=lambda _: True)
        assert once_s < known_s * 0.99, "so many rounds are no use here"
