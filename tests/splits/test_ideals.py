"""The exact contiguous split against brute force and the published optima."""

import numpy as np
import pytest

from placement.splits.bounds.loads import throughput_bound_s
from placement.splits.exact.ideals import TooManyIdeals, best_chain
from placement.splits.model.contract import class_units, contiguous_units
from tests.splits import force
from tests.splits.graphs import instance_of, modules, random_instance
from tests.splits.workloads import read
from tests.thorough import either

OPTIMA_MS = {
    "layer_bert24_inference": 17.7899,
    "layer_bert24_training": 41.7458,
    "layer_gnmt_inference": 32.9107,
    "layer_gnmt_training": 107.0044,
    "layer_resnet50_inference": 33.7747,
    "op_bert3_inference": 27.9186,
    "op_bert3_training": 65.3031,
    "op_bert12_inference": 147.478,
}


@pytest.mark.thorough
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("block", range(either(2, 5)))
def test_equals_brute_force(training, block):
    for seed in range(60 * block, 60 * block + 60):
        instance = random_instance(seed, training=training)
        splits = force.splits(instance)
        splits = splits[force.contiguous(instance, splits)]
        optimum = force.loads_s(instance, splits).max(axis=1).min(initial=np.inf)
        units = contiguous_units(instance)
        found = best_chain(units, max_ideals=1000)
        if found is None:
            assert optimum == np.inf, seed
            continue
        assert found.load_s == pytest.approx(optimum, rel=1e-9, abs=1e-12), seed
        devices = units.device_of_class(found.device_of_unit)[None]
        assert (splits == devices).all(axis=1).any(), seed
        load = force.loads_s(instance, devices).max()
        assert load == pytest.approx(found.load_s, rel=1e-9, abs=1e-12), seed


@pytest.mark.thorough
@pytest.mark.parametrize("training", [False, True])
def test_the_bound_is_never_above_the_optimum(training):
    for seed in range(either(120, 300)):
        instance = random_instance(seed, training=training)
        splits = force.splits(instance)
        optimum = force.loads_s(instance, splits).max(axis=1).min(initial=np.inf)
        bound = throughput_bound_s(class_units(instance))
        assert bound <= optimum * (1 + 1e-9), seed


@pytest.mark.parametrize("name", OPTIMA_MS)
def test_published_optimum(name):
    instance = read(f"throughput/{name}")
    units = contiguous_units(instance)
    found = best_chain(units, max_ideals=50_000)
    assert found.load_s == pytest.approx(OPTIMA_MS[name], rel=1e-5)
    devices = units.device_of_class(found.device_of_unit)[None]
    assert force.loads_s(instance, devices).max() == pytest.approx(found.load_s, rel=1e-9)
    assert force.contiguous(instance, devices).all()
    assert throughput_bound_s(class_units(instance)) <= found.load_s


def test_too_many_ideals_are_refused():
    with pytest.raises(TooManyIdeals, match="more than 500"):
        best_chain(contiguous_units(modules(1, 4, 5, k=2, cpus=1)), max_ideals=500)


def test_work_that_only_moves_data_is_split_too():
    nets, costs = [[0, 1], [1, 2]], [1.0, 2.0]
    allowed = np.array([[True, False], [True, True], [False, True]])
    instance = instance_of([0, 0, 0], [9, 9, 9], nets, costs, k=2, cpus=0, allowed=allowed)
    found = best_chain(contiguous_units(instance), max_ideals=10)
    assert found.load_s == pytest.approx(1.0)
