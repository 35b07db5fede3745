"""Loads under other rules (overlap, phases apart, clusters): searches and bounds against force."""

from dataclasses import replace

import numpy as np
import pytest

from placement import simulate
from placement.bounds.lower_bound import lower_bound
from placement.core.objective import CallRules
from placement.loaders.workload import problem_from_workload
from placement.placers import placer_class
from placement.schedule.symmetry import symmetry_of
from placement.splits.annealing.search import Budget
from placement.splits.annealing.throughput import best_split, greedy_start, max_load_s
from placement.splits.bounds.configurations import configuration_bound_s
from placement.splits.bounds.crowd import crowd_bound_s
from placement.splits.bounds.loads import plain_sums, throughput_bound_s
from placement.splits.bounds.prices import price_bound_s
from placement.splits.exact.branch_priced import PricedBranchSearch
from placement.splits.exact.ideals import best_chain
from placement.splits.exact.linear import best_intervals
from placement.splits.model.contract import class_units, contiguous_units
from tests.splits import force
from tests.splits.graphs import random_instance
from tests.splits.test_split_placers import workload
from tests.thorough import either

FAR = {"cluster_size": 2, "slow_link_factor": 3.0}
RULES = {
    "overlap": CallRules(overlap=True),
    "gpipe": CallRules(gpipe=True),
    "clusters": CallRules(**FAR),
    "single": CallRules(cluster_size=1, slow_link_factor=1.5),
    "all": CallRules(overlap=True, gpipe=True, **FAR),
}


def instances(rules, num_seeds, **how):
    """Small instances, every other one of training, with the least time between samples."""
    for seed in range(num_seeds):
        drawn = random_instance(seed, training=seed % 2 == 1, **how)
        instance = replace(drawn, rules=RULES[rules])
        splits = force.splits(instance)
        yield seed, instance, force.samples_s(instance, splits).min(initial=np.inf)


@pytest.mark.thorough
@pytest.mark.parametrize("rules", RULES)
def test_branch_and_bound_and_bounds_stand_on_their_sides_of_the_optimum(rules):
    solved = 0
    for seed, instance, optimum in instances(rules, either(21, 300)):
        units = class_units(instance)
        known = None if (~units.on_acc & ~units.on_cpu).any() else greedy_start(units)
        if known is None:
            continue
        known_s = max_load_s(units, known)
        search = PricedBranchSearch(units, known, known_s)
        while not search.complete:
            search.go_on(50)
        assert search.best_s == pytest.approx(optimum, rel=1e-8, abs=1e-12), seed
        devices = units.device_of_class(search.best)[None]
        value = force.samples_s(instance, devices)[0]
        assert value == pytest.approx(search.best_s, rel=1e-9, abs=1e-12), seed
        most = optimum * (1 + 1e-9)
        assert search.bound_s <= most, seed
        bound_s = throughput_bound_s(units)
        assert bound_s <= most, seed
        plain = plain_sums(units)
        assert crowd_bound_s(plain, known_s) <= most, seed
        if seed % 10 == 0:
            packed = configuration_bound_s(plain, bound_s, known_s, more=lambda bound_s: True)
            assert packed <= max(most, bound_s), seed
            priced = price_bound_s(plain, bound_s, known_s, more=lambda bound_s: True)
            assert priced <= max(most, bound_s), seed
        solved += 1
    assert solved > either(12, 200)


@pytest.mark.thorough
@pytest.mark.parametrize("rules", RULES)
def test_annealing_finds_the_optimum_of_small_graphs(rules):
    equal = solved = 0
    for seed, instance, optimum in instances(rules, either(15, 30)):
        units = class_units(instance)
        found = best_split(units, None, budget=Budget(None, 20_000), num_chains=1)
        if found is None:
            continue
        value = force.samples_s(instance, units.device_of_class(found.device_of_unit)[None])[0]
        assert value == pytest.approx(found.load_s, rel=1e-9, abs=1e-12), seed
        assert value >= optimum * (1 - 1e-9), seed
        solved += 1
        equal += value <= optimum * (1 + 1e-9)
    assert equal >= 0.9 * solved > either(7, 15)


@pytest.mark.thorough
@pytest.mark.parametrize("rules", RULES)
def test_contiguous_splits_equal_brute_force(rules):
    solved = 0
    for seed in range(either(18, 300)):
        drawn = random_instance(seed, training=seed % 2 == 1)
        instance = replace(drawn, rules=RULES[rules])
        splits = force.splits(instance)
        splits = splits[force.contiguous(instance, splits)]
        optimum = force.samples_s(instance, splits).min(initial=np.inf)
        units = contiguous_units(instance)
        found = best_chain(units, max_ideals=1000)
        if found is None:
            assert optimum == np.inf, seed
            continue
        assert found.load_s == pytest.approx(optimum, rel=1e-8, abs=1e-12), seed
        devices = units.device_of_class(found.device_of_unit)[None]
        assert (splits == devices).all(axis=1).any(), seed
        value = force.samples_s(instance, devices)[0]
        assert value == pytest.approx(found.load_s, rel=1e-9, abs=1e-12), seed
        intervals = best_intervals(units, num_orders=2)
        assert intervals is None or intervals.load_s >= optimum * (1 - 1e-8), seed
        solved += 1
    assert solved > either(10, 200)


SHARING = {
    "sync": CallRules(sync_bytes_per_ms=2.0),
    "sync overlapped": CallRules(overlap=True, sync_bytes_per_ms=5.0),
    "sync in phases": CallRules(gpipe=True, sync_bytes_per_ms=10.0),
}


@pytest.mark.thorough
@pytest.mark.parametrize("rules", SHARING)
def test_replicas_that_keep_their_weights_alike_equal_brute_force(rules):
    solved = shared = alone = 0
    for seed in range(either(60, 300)):
        drawn = random_instance(seed, training=seed % 2 == 1, most=6)
        # Times of seconds beside bytes per millisecond: the exchange counts, and not too much.
        instance = replace(drawn, rules=SHARING[rules], size_bytes=drawn.size_bytes * 1000)
        instance = replace(instance, limit_bytes=drawn.limit_bytes * 1000)
        most = instance.num_accelerators
        splits = force.splits(instance)
        splits = splits[force.contiguous(instance, splits)]
        values = [force.replicated_s(instance, d, most) for d in splits]
        units = contiguous_units(instance)
        found = best_chain(units, max_ideals=1000, most_replicas=most)
        if found is None:
            assert not values, seed
            continue
        optimum = min(values)
        assert found.load_s == pytest.approx(optimum, rel=1e-8, abs=1e-12), seed
        devices = units.device_of_class(found.device_of_unit)[None]
        value = force.samples_s(instance, devices, found.replicas)[0]
        assert value == pytest.approx(optimum, rel=1e-8, abs=1e-12), seed
        assert throughput_bound_s(class_units(instance), most) <= optimum * (1 + 1e-9), seed
        intervals = best_intervals(units, num_orders=2, most_replicas=most)
        assert intervals is None or intervals.load_s >= optimum * (1 - 1e-8), seed
        free = replace(instance, rules=replace(instance.rules, sync_bytes_per_ms=None))
        without = best_chain(contiguous_units(free), max_ideals=1000, most_replicas=most)
        assert without is not None and without.load_s <= optimum * (1 + 1e-8), seed
        alone += found.load_s > without.load_s * (1 + 1e-6)
        shared += found.replicas.max() > 1
        solved += 1
    assert solved > either(40, 200)
    assert shared > either(2, 10)
    assert alone > either(2, 10)


WORKLOAD_PLACERS = ("ideals_dp", "linear_dp", "annealing_split", "branch_and_bound", "pipedream")
ASKED = [
    (name, rules)
    for name in (*WORKLOAD_PLACERS, "auto", "greedy_fill", "replicate")
    for rules in RULES
]
# Of the placers in turn every other pair, so that each meets two kinds of rules or three.
BY_TURNS = ASKED[::2]


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "rules"), either(BY_TURNS, ASKED))
def test_placers_are_valued_by_the_rules_that_they_were_asked_for(name, rules):
    """Found, simulated and bounded by one cost model; what the best finds is proven or better."""
    # Phases are apart in training alone; what lies on other clusters is charged in both. So in
    # `make test` rules with phases and with clusters are tried with training, the others without.
    trains = RULES[rules].gpipe or rules == "clusters"
    for seed in either((int(trains),), (0, 1)):
        content = workload(seed, training=seed == 1, num_accelerators=3, limit=30.0)
        plain = replace(problem_from_workload(content, "w"), objective="throughput")
        given = replace(plain, rules=RULES[rules])
        assert given.fingerprint != plain.fingerprint
        heard = []
        kind = placer_class(name)
        fewer = {"max_iterations": 3_000} if hasattr(kind, "max_iterations") else {}
        if name == "replicate" and given.rules.has_clusters:
            with pytest.raises(ValueError, match="--cluster-size"):
                kind().place(given)
            continue
        placement = kind(**fewer).place(given, lambda p, h=heard: not h.append(p))
        value = simulate(given, placement).value
        if name in WORKLOAD_PLACERS:
            assert min(p.best_s for p in heard) == pytest.approx(value), (name, seed)
        assert max(p.bound_s for p in heard) <= value * (1 + 1e-9), (name, seed)
        assert lower_bound(given, placement) <= value * (1 + 1e-9), (name, seed)


def test_accelerators_of_other_clusters_are_not_equal():
    plain = problem_from_workload(workload(1, num_accelerators=4), "w")
    given = replace(plain, objective="throughput", rules=RULES["clusters"])
    assert symmetry_of(replace(given, rules=CallRules())).classes == ((0, 1, 2, 3), (4,))
    assert symmetry_of(given).classes == ((0, 1), (2, 3), (4,))
