"""Episodes: relations and returns by hand, start times by the simulator, gains by definition."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from placement.core.machine import Machine
from placement.learning.budget import Budget
from placement.learning.episodes import Episodes, _Cost, _returns, learn
from placement.learning.networks.placeto import Placeto, relations_of
from placement.learning.sequential import course_of
from placement.learning.simulated import simulated
from placement.learning.training import Elite, at_random
from placement.placers.placeto import PRESETS
from placement.simulator.evaluator import Evaluator
from tests.instances import random_problem


def reads_of(problem):
    index = problem.kernels.index
    return {
        (index[reader], index[tensor.producer])
        for tensor in problem.kernels.tensors
        if tensor.producer is not None
        for reader in tensor.consumers
    }


def test_relations_are_reads_their_closure_and_the_rest():
    problem = random_problem(3, num_ops=9, execution="op")
    reads = reads_of(problem)

    def is_before(a, b):
        return (b, a) in reads or any((b, c) in reads and is_before(a, c) for c in range(9))

    found = relations_of(course_of(simulated(problem)), averaged=False)
    before, after, parallel = found.around
    for u in range(9):
        for v in range(9):
            assert found.into[u, v] == found.out_of[v, u] == float((u, v) in reads)
            assert before[u, v] == after[v, u] == float(is_before(v, u))
            assert parallel[u, v] == float(u != v and not is_before(u, v) and not is_before(v, u))
    means = relations_of(course_of(simulated(problem)), averaged=True)
    assert set(means.around.sum(dim=2).flatten().round(decimals=6).tolist()) <= {0.0, 1.0}


def test_returns_are_sums_of_what_is_still_to_come():
    gains = np.array([[1.0, 0.0], [2.0, 4.0], [4.0, -8.0]])
    assert _returns(gains, 1.0).tolist() == [[7.0, -4.0], [6.0, -4.0], [4.0, -8.0]]
    assert _returns(gains, 0.5).tolist() == [[3.0, 0.0], [4.0, 0.0], [4.0, -8.0]]


@pytest.mark.parametrize("seed", range(6))
def test_start_times_are_the_simulators_where_links_carry_all_at_once(seed):
    from placement.learning.compiled.sequential import start_each

    problem = random_problem(seed, num_ops=12, num_devices=3, execution="op", link_contention=False)
    course = course_of(simulated(problem))
    devices = at_random(simulated(problem), 5, np.random.default_rng(seed))
    start_s = np.empty(devices.shape)
    start_each(course, devices, start_s)
    for row, starts_s in zip(devices, start_s, strict=True):
        evaluator = Evaluator(problem, course.order)
        evaluator.value_s(row)
        assert starts_s == pytest.approx(evaluator.state.start_s)


def episodes_of(problem, num=4):
    environment = simulated(problem)
    devices = at_random(environment, num, np.random.default_rng(0))
    return Episodes(environment, course_of(environment), devices, _Cost(100.0, True))


def test_a_step_gains_what_the_logarithm_of_the_time_loses():
    episodes = episodes_of(random_problem(2, num_ops=10, num_devices=3))
    environment = episodes.environment
    before_s, before = environment.values_s(episodes.devices), episodes.devices.copy()
    chosen = np.array([0, 1, 2, 0])
    gains, num_valued = episodes.move(4, chosen, Elite(1))
    after = before.copy()
    after[:, 4] = chosen
    assert (episodes.devices == after).all()
    assert gains == pytest.approx(np.log(before_s / environment.values_s(after)))
    assert num_valued == int((before[:, 4] != chosen).sum())


def test_units_stay_or_go_where_there_is_room():
    problem = random_problem(1, num_ops=10, num_devices=3)
    weights = sum(op.param_bytes for op in problem.graph.ops)
    devices = tuple(replace(d, memory_bytes=weights // 2) for d in problem.machine.devices)
    machine = Machine("tight", devices, problem.machine.links)
    episodes = episodes_of(replace(problem, machine=machine))
    environment = episodes.environment
    for unit in range(environment.num_units):
        for row, may in zip(episodes.devices, episodes.mask(unit), strict=True):
            for d in range(3):
                moved = row.copy()
                moved[unit] = d
                held = environment.size_bytes[moved == d].sum()
                fits = environment.allowed[unit, d] and held <= weights // 2
                assert may[d] == (fits or d == row[unit])


def test_the_network_knows_units_by_what_they_are_and_not_by_number():
    problem = random_problem(5, num_ops=8, num_devices=2)
    relations = relations_of(course_of(simulated(problem)), averaged=True)
    torch.manual_seed(0)
    network = Placeto(relations, 7, 2, 4, stay=1.0)
    states = torch.rand(3, 8, 7)
    units, present = torch.tensor([0, 3, 7]), torch.tensor([0, 1, 1])
    logits = network(states, units, present)
    old = torch.randperm(8)
    network.relations = relations._replace(
        into=relations.into[old][:, old],
        out_of=relations.out_of[old][:, old],
        around=relations.around[:, old][:, :, old],
    )
    renumbered = network(states[:, old], torch.argsort(old)[units], present)
    assert torch.allclose(logits, renumbered, atol=1e-5)
    stayed = network(states[:, old], torch.argsort(old)[units], 1 - present)
    assert torch.allclose((renumbered - stayed)[0], torch.tensor([1.0, -1.0]), atol=1e-5)


@pytest.mark.parametrize("preset", PRESETS)
def test_learning_finds_better_placements_and_repeats(preset):
    environment = simulated(random_problem(8, num_ops=10, num_devices=3, execution="op"))

    def learned():
        return learn(
            environment,
            PRESETS[preset],
            Budget(None, 10**6),
            seed=1,
            max_rounds=6,
            tell=lambda *heard: True,
            start=None,
        )

    first, again = learned(), learned()
    assert first.curve == again.curve and (first.devices == again.devices).all()
    assert len(first.curve) == 6
    assert environment.values_s(first.devices[None])[0] == first.value_s
    drawn = at_random(environment, PRESETS[preset].batch, np.random.default_rng(1))
    assert first.value_s < environment.values_s(drawn).min()
