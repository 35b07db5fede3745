"""Everything on one device: of devices that are alike one is simulated for all."""

from dataclasses import replace

import pytest

from placement.core.objective import Objective
from placement.costs.offload import with_offload
from placement.placers.single import Single, _value_s
from tests.instances import hosts_problem, random_problem


@pytest.mark.parametrize("with_cards", [False, True])
@pytest.mark.parametrize("objective", list(Objective))
def test_alone_on_a_device_is_worth_what_it_is_on_any_that_is_alike(objective, with_cards):
    for seed in range(12):
        problem = hosts_problem(
            seed,
            num_odd=seed % 3,
            with_groups=seed % 2 == 0,
            contention=0.3 * (seed % 4 == 1),
            with_cards=with_cards,
        )
        pin = problem.graph.ops[seed].name, problem.machine.devices[seed % 9].name
        problem = replace(problem, pins=(pin,) if seed % 2 else ())
        problem = replace(problem, objective=objective)
        by_device = {d: _value_s(problem, d) for d in range(problem.num_devices)}
        assert Single()._values_s(problem) == by_device


def test_devices_that_stream_are_apart_from_others():
    problem = random_problem(2, num_devices=3)
    limits = tuple(replace(d, memory_bytes=100) for d in problem.machine.devices)
    streams = with_offload(replace(problem, machine=replace(problem.machine, devices=limits)))
    by_device = {d: _value_s(streams, d) for d in range(streams.num_devices)}
    assert streams.num_devices == 5
    assert Single()._values_s(streams) == by_device
