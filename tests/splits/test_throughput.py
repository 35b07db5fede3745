"""Throughput: linearised splits and annealing against brute force and the reference values."""

import numpy as np
import pytest

from placement.splits.annealing.search import Budget
from placement.splits.annealing.throughput import best_split, greedy_start
from placement.splits.bounds.loads import throughput_bound_s
from placement.splits.exact.linear import best_intervals
from placement.splits.model.contract import class_units, contiguous_units
from tests.splits import force
from tests.splits.graphs import modules, random_instance
from tests.splits.test_ideals import OPTIMA_MS
from tests.splits.workloads import read
from tests.thorough import either

# Loads to reach without contiguity, in milliseconds, and the reference bounds.
GOALS_MS = {
    "layer_bert24_inference": (17.7148, 15.1485),
    "layer_bert24_training": (39.7896, 35.707),
    "layer_gnmt_inference": (31.69, 29.928),
    "layer_gnmt_training": (88.47, 85.320),
}


def valued(instance, units, device_of_unit):
    """Largest load of a split by the definition; the split must be among the allowed ones."""
    devices = units.device_of_class(device_of_unit)[None]
    assert instance.allowed[np.arange(instance.num_classes), devices[0]].all()
    held = np.zeros(instance.num_devices)
    np.add.at(held, devices[0], instance.class_sums(instance.size_bytes))
    assert (held[: instance.num_accelerators] <= instance.limit_bytes).all()
    return force.loads_s(instance, devices).max(), devices


@pytest.mark.thorough
@pytest.mark.parametrize("training", [False, True])
def test_intervals_are_contiguous_and_never_below_the_optimum(training):
    equal = solved = 0
    for seed in range(either(120, 200)):
        instance = random_instance(seed, training=training)
        splits = force.splits(instance)
        splits = splits[force.contiguous(instance, splits)]
        optimum = force.loads_s(instance, splits).max(axis=1).min(initial=np.inf)
        units = contiguous_units(instance)
        found = best_intervals(units, num_orders=5)
        if found is None:
            continue
        value, devices = valued(instance, units, found.device_of_unit)
        assert value == pytest.approx(found.load_s, rel=1e-9, abs=1e-12), seed
        assert force.contiguous(instance, devices).all(), seed
        assert value >= optimum * (1 - 1e-9), seed
        solved += 1
        equal += value <= optimum * (1 + 1e-9)
    assert equal >= 0.9 * solved > either(60, 100)


@pytest.mark.parametrize("name", OPTIMA_MS)
def test_intervals_reach_the_contiguous_optimum_of_the_files(name):
    instance = read(f"throughput/{name}")
    found = best_intervals(contiguous_units(instance), num_orders=9)
    assert found.load_s == pytest.approx(OPTIMA_MS[name], rel=1e-5)


def test_intervals_of_a_large_graph():
    instance = modules(60, 4, 4, k=4, cpus=1)
    units = contiguous_units(instance)
    found = best_intervals(units, num_orders=1)
    value, devices = valued(instance, units, found.device_of_unit)
    assert force.contiguous(instance, devices).all()
    assert value == pytest.approx(found.load_s)
    assert value <= 1.1 * throughput_bound_s(units)


@pytest.mark.thorough
@pytest.mark.parametrize("training", [False, True])
def test_annealing_finds_the_optimum_of_small_graphs(training):
    equal = solved = 0
    for seed in range(either(18, 60)):
        instance = random_instance(seed, training=training)
        splits = force.splits(instance)
        optimum = force.loads_s(instance, splits).max(axis=1).min(initial=np.inf)
        units = class_units(instance)
        found = best_split(units, None, budget=Budget(None, 60_000), num_chains=1)
        if found is None:
            continue
        value, _ = valued(instance, units, found.device_of_unit)
        assert value == pytest.approx(found.load_s, rel=1e-9, abs=1e-12), seed
        assert value >= optimum * (1 - 1e-9), seed
        solved += 1
        equal += value <= optimum * (1 + 1e-9)
    assert equal >= 0.95 * solved > either(8, 30)


# The one that needs fewer steps.
FEW_GOALS = ("layer_bert24_training",)


@pytest.mark.thorough
@pytest.mark.parametrize("name", either(FEW_GOALS, [*GOALS_MS]))
def test_annealing_reaches_the_reference_values(name):
    instance = read(f"throughput/{name}")
    units = class_units(instance)
    goal, reference_bound = GOALS_MS[name]
    assert reference_bound * (1 - 1e-4) <= throughput_bound_s(units) <= goal
    budget = Budget(None, 600_000 if "bert" in name else 1_500_000)
    found = best_split(units, greedy_start(units), budget=budget)
    value, _ = valued(instance, units, found.device_of_unit)
    assert value <= goal


def test_the_same_answer_for_the_same_budget_of_steps():
    units = class_units(read("throughput/op_bert3_inference"))
    found = [best_split(units, None, budget=Budget(None, 60_000), seed=5) for _ in range(2)]
    assert (found[0].device_of_unit == found[1].device_of_unit).all()
