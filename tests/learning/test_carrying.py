"""What carries to other graphs: places by hand, and networks that begin as others ended."""

import zlib
from dataclasses import replace

import numpy as np
import pytest
import torch

from placement.learning.carrying import (
    LAYOUT,
    NUM_ALIKE,
    NUM_DEVICES,
    NUM_KINDS,
    Axis,
    Carried,
    devices,
    groups,
    joined,
    kinds,
    plain,
)
from placement.learning.features import feature_axis, unit_features
from placement.learning.planner_features import (
    group_features,
    scaled_axis,
    scaled_features,
    summed_axis,
    summed_features,
)
from placement.learning.simulated import simulated
from tests.instances import random_problem


def places(*numbers, size):
    return Axis(np.array(numbers), size)


def test_kinds_have_places_by_their_names_and_none_without_one():
    found = kinds(["Conv", "", "Relu"])
    assert found.place.tolist() == [
        zlib.crc32(b"Conv") % NUM_KINDS,
        -1,
        zlib.crc32(b"Relu") % NUM_KINDS,
    ]
    assert found.size == NUM_KINDS


def test_devices_stand_by_speed_the_lower_number_first_of_equals():
    environment = simulated(random_problem(1, num_ops=4, num_devices=4))
    unit_s = np.array([[4.0, 1.0, 1.0, 9.0]] * 4)
    allowed = np.ones((4, 4), dtype=bool)
    given = replace(environment, unit_s=unit_s, allowed=allowed)
    assert devices(given).place.tolist() == [2, 0, 1, 3]
    # Two of four units may not be on device 1 and count ten times the slowest there.
    allowed[:2, 1] = False
    assert devices(replace(given, allowed=allowed)).place.tolist() == [1, 3, 0, 2]


def test_devices_beyond_the_places_of_a_file_have_none():
    environment = simulated(random_problem(1, num_ops=2, num_devices=2))
    num = NUM_DEVICES + 3
    many = replace(
        environment,
        unit_s=np.arange(1.0, 2 * num + 1).reshape(2, num),
        allowed=np.ones((2, num), dtype=bool),
        limit_bytes=np.full(num, np.inf),
    )
    assert devices(many).place.tolist() == [*range(NUM_DEVICES), -1, -1, -1]


def test_groups_stand_by_the_device_that_they_prefer():
    by_speed = places(1, 0, -1, size=NUM_DEVICES)
    found = groups(7, by_speed)
    alike = NUM_DEVICES
    assert found.place.tolist() == [1, 0, -1, alike + 1, alike, -1, 2 * alike + 1]
    assert found.size == NUM_ALIKE * NUM_DEVICES == LAYOUT["groups"] * LAYOUT["devices"]


def test_axes_join_with_places_one_after_another():
    found = joined(places(1, -1, size=3), plain(2, is_told=False), plain(2))
    assert found.place.tolist() == [1, -1, 5, 6]
    assert found.size == 7


def test_every_column_of_the_features_has_a_place():
    environment = simulated(random_problem(3, num_ops=12, num_devices=3))
    for without in ("", "shape", "id", "structure"):
        axis = feature_axis(environment, without)
        assert len(axis.place) == unit_features(environment, without).shape[1]
        assert axis.size == feature_axis(environment).size
    assert len(scaled_axis(environment).place) == scaled_features(environment).shape[1]
    axis = summed_axis(environment)
    assert len(axis.place) == summed_features(environment).shape[1]
    rows = group_features(environment, np.zeros(environment.num_units, dtype=np.int64), 4)
    assert len(axis.place) + 2 * 4 == rows.shape[1]


def network(rows, axes, by_speed):
    return Carried({"w": torch.nn.Parameter(torch.tensor(rows))}, {"w": axes}, by_speed)


def test_numbers_of_one_place_are_averaged_and_what_has_none_is_left_out():
    by_speed = places(2, 0, size=4)
    inputs = places(1, 1, -1, 0, size=3)
    given = network([[1.0, 3.0, 7.0, 5.0], [0.0, 2.0, 7.0, 4.0]], (by_speed, inputs), by_speed)
    assert given.shapes == {"w": (4, 3)}
    file = given.arrays()["w"]
    assert file.tolist() == [[4, 1, 0], [0, 0, 0], [5, 2, 0], [0, 0, 0]]
    before = {"w": np.full((4, 3), 9.0, dtype=np.float32)}
    assert given.arrays(before)["w"].tolist() == [[4, 1, 9], [9, 9, 9], [5, 2, 9], [9, 9, 9]]
    assert (before["w"] == 9.0).all()


def test_outputs_that_a_file_does_not_know_begin_anew_and_such_inputs_count_nothing():
    file = {"w": np.array([[4, 1, 0], [0, 0, 0], [5, 2, 0]], dtype=np.float32)}
    by_speed = places(2, 1, -1, 0, size=3)
    taking = network([[0.5, 0.25, 0.125]] * 4, (by_speed, places(1, 2, -1, size=3)), by_speed)
    assert taking.begin(file) == 2
    assert taking.parameters["w"].tolist() == [
        [2, 0, 0],
        [0.5, 0.25, 0.125],
        [0.5, 0.25, 0.125],
        [1, 0, 0],
    ]


@pytest.mark.parametrize("num_devices", [1, 2, 5])
def test_what_is_written_is_what_the_same_network_reads(num_devices):
    environment = simulated(random_problem(2, num_ops=8, num_devices=num_devices))
    by_speed = devices(environment)
    chance = np.random.default_rng(0)
    rows = chance.random((num_devices, 3)).astype(np.float32).tolist()
    one = network(rows, (by_speed, None), by_speed)
    other = network(np.zeros((num_devices, 3), np.float32).tolist(), (by_speed, None), by_speed)
    assert other.begin(one.arrays()) == 0
    assert other.parameters["w"].tolist() == one.parameters["w"].tolist()
