"""Replicated stages and transfers that overlap compute, against brute force."""

from dataclasses import replace

import numpy as np
import pytest

from placement import place, simulate
from placement.core.objective import CallRules
from placement.loaders.workload import problem_from_workload
from placement.placers import placer_class
from placement.simulator.call_costs import loads_s
from placement.splits.bounds.loads import throughput_bound_s
from placement.splits.exact.ideals import best_chain
from placement.splits.exact.linear import best_intervals
from placement.splits.model.contract import class_units, contiguous_units
from tests.contiguity import contiguity
from tests.splits import force
from tests.splits.graphs import random_instance
from tests.splits.test_split_placers import workload
from tests.thorough import either

OVERLAP = CallRules(overlap=True)


def contiguous_splits(instance):
    splits = force.splits(instance)
    return splits[force.contiguous(instance, splits)]


@pytest.mark.thorough
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("overlap", [False, True])
def test_replicated_stages_equal_brute_force(training, overlap):
    solved = shared = 0
    for seed in range(either(20, 100)):
        instance = replace(
            random_instance(seed, training=training, most=6), rules=CallRules(overlap=overlap)
        )
        most = instance.num_accelerators
        values = [force.replicated_s(instance, d, most) for d in contiguous_splits(instance)]
        units = contiguous_units(instance)
        found = best_chain(units, max_ideals=1000, most_replicas=most)
        if found is None:
            assert not values, seed
            continue
        optimum = min(values)
        assert found.load_s == pytest.approx(optimum, rel=1e-9, abs=1e-12), seed
        devices = units.device_of_class(found.device_of_unit)
        loads = force.loads_s(instance, devices[None])[0] / found.replicas
        assert loads.max() == pytest.approx(optimum, rel=1e-9, abs=1e-12), seed
        used = np.unique(devices)
        assert found.replicas[used[used < most]].sum() <= most, seed
        assert throughput_bound_s(class_units(instance), most) <= optimum * (1 + 1e-9), seed
        intervals = best_intervals(units, num_orders=3, most_replicas=most)
        assert intervals is None or intervals.load_s >= optimum * (1 - 1e-9), seed
        solved += 1
        shared += found.replicas.max() > 1
    assert solved > either(12, 70)
    assert shared > either(1, 5)


@pytest.mark.thorough
@pytest.mark.parametrize("training", [False, True])
def test_overlapping_transfers_equal_brute_force(training):
    for seed in range(either(50, 100)):
        instance = replace(random_instance(seed, training=training), rules=OVERLAP)
        splits = contiguous_splits(instance)
        optimum = force.loads_s(instance, splits).max(axis=1).min(initial=np.inf)
        found = best_chain(contiguous_units(instance), max_ideals=1000)
        assert (np.inf if found is None else found.load_s) == pytest.approx(optimum), seed


@pytest.mark.thorough
@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_the_placer_is_valued_as_it_optimised(training, overlap):
    for seed in range(either(2, 8)):
        content = workload(seed, training=training, num_accelerators=4, limit=30.0)
        given = replace(
            problem_from_workload(content, "w"),
            objective="throughput",
            rules=CallRules(overlap=overlap),
        )
        placed = place(given, "replicate")
        assert placed.violations == (), seed
        assert placed.value >= placed.lower_bound, seed
        assert placed.value <= place(given, "ideals_dp").value * (1 + 1e-9), seed
        assert contiguity(given, given.kernel_devices(placed.placement)) == (), seed
        heard = []
        placer_class("replicate")().place(given, lambda p, h=heard: not h.append(p))
        assert heard[-1].best_s == pytest.approx(placed.value), seed


def test_one_replica_is_the_plain_split():
    content = workload(3, num_accelerators=3)
    given = replace(problem_from_workload(content, "w"), objective="throughput")
    alone = place(given, "replicate", settings={"replicas": 1})
    assert alone.value == pytest.approx(place(given, "ideals_dp").value)
    assert set(alone.placement.replicas.values()) == {1}
    with pytest.raises(ValueError, match="-1"):
        place(given, "replicate", settings={"replicas": -1})


def test_overlap_takes_the_longer_of_compute_and_transfers():
    given = problem_from_workload(workload(1), "w")
    half = np.arange(len(given.kernels.ops)) // 7
    summed = loads_s(given, half)
    longer = loads_s(replace(given, rules=OVERLAP), half)
    nothing = np.zeros((len(half), given.num_devices))
    moves = loads_s(replace(given, costs=replace(given.costs, compute_s=nothing)), half)
    for name, total in summed.items():
        assert longer[name] == pytest.approx(max(moves[name], total - moves[name]))


def test_replicas_take_idle_accelerators_only():
    given = replace(problem_from_workload(workload(1), "w"), objective="throughput")
    everywhere = given.placement_of(np.arange(given.num_units) % 2)
    with pytest.raises(ValueError, match="need 1 more accelerators, but 0 are idle"):
        simulate(given, replace(everywhere, replicas={"acc:0": 2}))
    with pytest.raises(ValueError, match="is a CPU"):
        simulate(given, replace(everywhere, replicas={given.machine.devices[-1].name: 2}))
