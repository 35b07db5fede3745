"""Values of many placements at once, against the simulator and the definitions of memory."""

import random
from dataclasses import replace

import numpy as np
import pytest

from placement import simulate
from placement.core.objective import PLAIN, CallRules
from placement.core.violations import needed_bytes
from placement.learning.simulated import simulated
from placement.learning.workload import workload
from placement.schedule.segments import make_schedule
from placement.search.feasible import final_s
from placement.simulator.evaluator import Evaluator
from tests.instances import random_problem
from tests.thorough import either
from tests.workloads import diamond, problem_from_workload, random_workload_problem

CLOSE = 1e-9
RULES = [
    PLAIN,
    CallRules(overlap=True),
    CallRules(gpipe=True),
    CallRules(overlap=True, gpipe=True, cluster_size=1, slow_link_factor=3.0),
]
SEEDS = range(either(4, 8))
NUM = 12


def rows(environment, seed):
    """Placements whose units are where they may be, whether there is room or not."""
    chance = random.Random(seed)
    may = [np.flatnonzero(row).tolist() for row in environment.allowed]
    return np.array([[chance.choice(devices) for devices in may] for _ in range(NUM)])


def with_memory(problem, num_bytes):
    devices = tuple(replace(d, memory_bytes=num_bytes) for d in problem.machine.devices)
    return replace(problem, machine=replace(problem.machine, devices=devices))


@pytest.mark.thorough
@pytest.mark.parametrize("execution", ["op", "segment"])
@pytest.mark.parametrize("objective", ["latency", "throughput"])
def test_simulated_values_are_the_evaluators_and_never_below_the_final_ones(execution, objective):
    for seed in SEEDS:
        problem = random_problem(seed, num_devices=3, execution=execution, with_groups=True)
        problem = replace(problem, objective=objective)
        environment = simulated(problem)
        devices = rows(environment, seed)
        own = Evaluator(problem, environment.order)
        values_s = environment.values_s(devices)
        assert values_s.tolist() == [own.value_s(row) for row in devices]
        for row, value_s in zip(devices, values_s, strict=True):
            assert simulate(problem, environment.placement_of(row)).value <= value_s + CLOSE


def test_what_a_device_does_not_support_or_a_pin_forbids_takes_forever():
    problem = random_problem(3, num_devices=3, with_gaps=True)
    problem = replace(problem, pins=(("op1", "d2"),))
    environment = simulated(problem)
    devices = np.random.default_rng(0).integers(3, size=(300, environment.num_units))
    devices[:150, problem.unit_of_op[1]] = 2
    may = [all(problem.allowed[u, d] for u, d in enumerate(row)) for row in devices.tolist()]
    assert np.isfinite(environment.values_s(devices)).tolist() == may
    assert 0 < sum(may) < 150


@pytest.mark.thorough
@pytest.mark.parametrize("model", ["live", "sum"])
@pytest.mark.parametrize("num_bytes", [100, 160, 260])
def test_memory_of_simulated_placements_is_that_of_their_unmerged_schedules(model, num_bytes):
    for seed in SEEDS:
        problem = with_memory(random_problem(seed, num_devices=3), num_bytes)
        problem = replace(problem, memory_model=model)
        environment = simulated(problem)
        devices = rows(environment, seed)
        fits = []
        for row in devices:
            placement = environment.placement_of(row)
            schedule = make_schedule(problem, placement, merge=False)
            peaks = needed_bytes(problem, schedule)
            fits.append(max(peaks) <= num_bytes)
        assert np.isfinite(environment.values_s(devices)).tolist() == fits, seed


@pytest.mark.thorough
@pytest.mark.parametrize("objective", ["latency", "throughput"])
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("num_bytes", [100, 12])
def test_values_of_workloads_are_the_final_ones(objective, rules, training, num_bytes):
    """Infinite where memory is short or calls wait for each other, which is a violation too."""
    num_possible = 0
    for seed in SEEDS:
        problem = random_workload_problem(seed, training=training)
        devices = tuple(
            d if d.on_host else replace(d, memory_bytes=num_bytes) for d in problem.machine.devices
        )
        problem = replace(
            problem,
            machine=replace(problem.machine, devices=devices),
            objective=objective,
            rules=rules,
        )
        environment = workload(problem)
        placements = rows(environment, seed)
        values_s = environment.values_s(placements)
        final = [final_s(problem, environment.placement_of(row)) for row in placements]
        assert values_s.tolist() == pytest.approx(final, rel=CLOSE), seed
        num_possible += int(np.isfinite(values_s).sum())
    assert num_possible > 0


def test_the_largest_load_of_a_diamond_by_hand():
    """Moving the output of node n costs n ms, running it n on an accelerator, 10 n on the CPU."""
    problem = replace(problem_from_workload(diamond(), "diamond"), objective="throughput")
    environment = workload(problem)
    names = [d.name for d in problem.machine.devices]
    assert names == ["acc:0", "acc:1", "cpu:0"] and environment.num_units == 4
    values_s = environment.values_s(np.array([[0, 0, 2, 1], [0, 0, 0, 0], [0, 0, 1, 1]]))
    # In the last acc:1 computes 3 + 4 and takes in the outputs of 1 and 2.
    assert values_s.tolist() == pytest.approx([30e-3, 10e-3, 10e-3])


def test_calls_that_wait_for_each_other_take_forever():
    """2 waits for 1 and 4 for 2: with 2 elsewhere, {1, 3, 4} is no single call."""
    problem = replace(problem_from_workload(diamond(), "diamond"), objective="latency")
    environment = workload(problem)
    assert environment.num_devices == 3 and environment.num_units == 4
    values_s = environment.values_s(np.array([[0, 1, 0, 0], [0, 0, 0, 0], [2, 2, 2, 2]]))
    # On the CPU 2 and 3 run side by side: 10 + 30 + 40.
    assert values_s.tolist() == pytest.approx([np.inf, 10e-3, 80e-3])
