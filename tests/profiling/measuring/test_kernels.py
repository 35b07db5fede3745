"""Profiles: the arithmetic of the call overhead, a small model end to end, cancelling."""

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest
from onnx import helper

from placement.core.machine import Machine
from placement.core.profile import profile_from_json
from placement.core.schedule import Schedule, Segment
from placement.simulator.simulate import step_time_s
from profiling import backends
from profiling.devices.lanes import Step
from profiling.measuring import kernels
from profiling.measuring import siblings as looking
from profiling.measuring.crossings import drawn_borders
from profiling.measuring.kernels import (
    Cancelled,
    as_one_call,
    call_overhead_s,
    moved_s,
    profile,
)
from profiling.measuring.reference import MOST_TO_SETTLE, SETTLING_S, settled
from profiling.measuring.siblings import Look
from tests.instances import random_problem
from tests.profiling.live import diamond, measure_briefly, saved, two_lanes


@pytest.fixture(autouse=True)
def briefly(monkeypatch):
    """What is measured to the end is shown by tests/remote/test_remote.py."""
    measure_briefly(monkeypatch)


def test_overhead_makes_kernels_and_one_call_the_whole():
    kernel_s = np.array([5.0, 7.0, 9.0])
    assert call_overhead_s(kernel_s, 17.0) == pytest.approx(2.0)
    assert call_overhead_s(kernel_s, 30.0) == pytest.approx(0.0), "no slower one by one"


def test_no_kernel_takes_less_than_nothing():
    assert call_overhead_s(np.array([1.0, 50.0, 100.0]), 100.0) == pytest.approx(1.0)
    assert call_overhead_s(np.array([3.0]), 2.0) == 0.0, "one call says nothing about calls"


@pytest.mark.parametrize(
    ("cores", "keeps_order", "by_parts", "contention"),
    [
        ((), True, 0.3, 1.1 * 1.3 - 1.0),
        ((), True, None, 1.1 * 1.2 - 1.0),
        ((), False, 0.3, 0.2),
        ((1,), True, 0.3, 0.2),
        ((2,), True, 0.3, 0.2),
    ],
)
def test_parts_and_their_order_count_where_an_order_is_kept_on_all_two_lanes(
    cores, keeps_order, by_parts, contention, tmp_path, monkeypatch
):
    """With a third lane, of as many cores or of others, what does not grow with lanes would count
    twice."""
    model, machine = diamond(tmp_path), two_lanes()
    more = [replace(machine.devices[0], name="cpu:2", cores=num) for num in cores]
    machine = replace(machine, devices=(*machine.devices, *more))
    kind = type(backends.compiled(model, machine))
    monkeypatch.setattr(kind, "keeps_order", keeps_order)
    monkeypatch.setattr(kernels, "contention_of_parts", lambda *_: by_parts)
    monkeypatch.setattr(kernels, "contention_of_wholes", lambda *_: 0.2)
    monkeypatch.setattr(kernels, "cost_of_rank_order", lambda *_: 1.1)
    assert profile(model, machine).contention == pytest.approx(contention)


@pytest.mark.parametrize("num", [8, 9, 30, 1000])
def test_borders_are_drawn_apart_and_always_the_same(num):
    starts = drawn_borders(num)
    assert starts == drawn_borders(num) and starts[0] == 0 and len(starts) > 2
    assert all(a < b for a, b in itertools.pairwise(starts)) and starts[-1] < num
    assert num < 1000 or 1000 / 6 < len(starts) < 1000 / 3


@pytest.mark.parametrize(
    ("num_lanes", "more_s", "scatter_s", "call_s"),
    [
        (2, 1e-4, 0.0, 1e-4),
        (2, 1e-4, 1e-2, 1e-5),
        (2, 1e-6, 0.0, 1e-5),
        (2, 1.0, 0.0, 0.1 * 0.02001),
        (1, None, 0.0, 1e-5),
    ],
)
def test_a_call_costs_what_a_cut_model_surely_takes_longer(
    num_lanes, more_s, scatter_s, call_s, tmp_path, monkeypatch
):
    """Twenty kernels of a millisecond, calls of them 10 us each, and further ones `more_s`."""
    nodes = [helper.make_node("Exp", [f"v{i}"], [f"v{i + 1}"]) for i in range(20)]
    model = saved(tmp_path, nodes, {"v0": [2, 3]}, {"v20": [2, 3]})
    num_calls = len(drawn_borders(20)) - 1

    def timed(lanes, programs, beside):
        each = tuple(np.arange(20) * 0.00101)
        single = Step(0.0, 0.0202, each, tuple(np.array(each) + 0.00101), {})
        whole = Step(0.0, 0.02001, (0.0,), (0.02001,), {})
        longer_s = [] if more_s is None else [0.02001 + num_calls * more_s]
        cut = [
            [replace(whole, ended_s=s + sign * scatter_s) for sign in (-1, 0, 1) * 4]
            for s in longer_s
        ]
        assert len(lanes) == len(programs) == 3 + len(cut)
        return [[single] * 12, [whole] * 12, *cut, [whole] * 12]

    monkeypatch.setattr(kernels, "_timed", timed)
    monkeypatch.setattr(kernels, "contention_of_parts", lambda *_: 0.2)
    monkeypatch.setattr(kernels, "contention_of_wholes", lambda *_: 0.2)
    monkeypatch.setattr(kernels, "cost_of_rank_order", lambda *_: 1.1)
    machine = two_lanes()
    alone = replace(machine, devices=machine.devices[:1], links=())
    found = profile(model, machine if num_lanes == 2 else alone)
    assert found.call_s[0] == pytest.approx(call_s)
    kernels_s = [row[0] for row in found.compute_s]
    assert found.call_s[0] + sum(kernels_s) == pytest.approx(0.02001) and min(kernels_s) > 0


def test_what_moves_to_an_accelerator_and_back_is_what_a_step_of_no_work_takes():
    """By the simulator, of everything on one device with memory of its own."""
    for seed in range(20):
        problem = random_problem(seed, num_ops=9, with_overhead=True)
        nothing = np.zeros_like(problem.costs.compute_s)
        costs = replace(problem.costs, compute_s=nothing, call_s=np.zeros(2))
        for device in problem.machine.devices:
            whole = Schedule((Segment(device.name, tuple(op.name for op in problem.kernels.ops)),))
            step_s = step_time_s(replace(problem, costs=costs), whole)
            assert moved_s(problem.kernels, device, problem.machine) == pytest.approx(step_s)


def test_short_steps_are_repeated_until_they_are_settled():
    def num_steps(seconds):
        begun = []

        def step():
            begun.append(seconds)
            return len(begun)

        last = settled(step, lambda _: seconds)
        assert last == len(begun)
        return last

    assert num_steps(SETTLING_S * 100) == 2
    assert num_steps(SETTLING_S / 4) == 5
    assert num_steps(0.0) == 1 + MOST_TO_SETTLE


@pytest.mark.parametrize("step_s", [100.0, 147.0, 149.0, 160.0])
def test_one_call_of_all_kernels_takes_what_it_was_measured_to(step_s):
    """Also where threads that sleep between calls make each cost more than the quickest kernel."""
    kernel_s = np.array([1.0, 50.0, 100.0])
    overhead_s = call_overhead_s(kernel_s, step_s)
    compute_s = as_one_call(kernel_s, overhead_s, step_s)
    assert overhead_s + compute_s.sum() == pytest.approx(step_s)
    assert (compute_s >= 0).all() and (np.diff(compute_s) > 0).all()


def test_a_small_model(tmp_path):
    model, machine = diamond(tmp_path), two_lanes()
    said = []
    found = profile(model, machine, said.append)
    assert found.graph == model.graph.fingerprint
    assert found.machine.fingerprint == machine.fingerprint
    assert found.coverage == 1.0 and found.origin == "measured"
    costs = found.costs()
    assert costs.compute_s.shape == (4, 2) and (costs.compute_s >= 0).all()
    assert (costs.compute_s[:, 0] == costs.compute_s[:, 1]).all(), "lanes share a measurement"
    assert all(s > 0 for s in found.step_s) and found.all_cores_s > 0 and found.contention >= 0
    assert profile_from_json(found.to_json()) == found
    assert [e["step"] for e in said] == list(range(said[-1]["of"]))


def test_one_device_alone(tmp_path):
    machine = Machine("one", two_lanes().devices[:1])
    found = profile(diamond(tmp_path), machine)
    assert found.all_cores_s is None and found.contention == 0.0


def test_it_can_be_cancelled(tmp_path):
    with pytest.raises(Cancelled):
        profile(diamond(tmp_path), two_lanes(), lambda event: event["step"] < 2)


def test_the_step_is_that_of_the_unplaced_model(tmp_path, monkeypatch):
    """Independent of what the call overhead is fitted to."""
    model, machine = diamond(tmp_path), Machine("one", two_lanes().devices[:1])
    compiled = backends.get("onnxruntime").compile(model, machine)
    unplaced = type(compiled).unplaced

    def slow(self, device, feeds):
        program = unplaced(self, device, feeds)
        run = program.run
        program.run = lambda i: (time.sleep(0.02), run(i))
        return program

    monkeypatch.setattr(type(compiled), "unplaced", slow)
    found = profile(model, machine)
    assert found.step_s[0] > 0.02
    assert sum(row[0] for row in found.compute_s) < 0.01


@pytest.mark.parametrize("num_more", [0, 1])
def test_a_profile_has_the_latency_between_the_cores_of_its_machine(
    num_more, tmp_path, monkeypatch
):
    """Of all of them together, as a run has it: two of three may be nearer to each other."""
    model, machine = diamond(tmp_path), two_lanes()
    pair = [replace(d, core_ids=(30_000 + i,)) for i, d in enumerate(machine.devices)]
    more = [replace(pair[0], name="cpu:2", cores=2, core_ids=(30_002, 30_003))] * num_more
    machine = replace(machine, devices=(*pair, *more))

    def look(cores):
        ns = {1: None, 2: 40.0, 4: 90.0}[len(cores)]
        return Look(dict.fromkeys(cores, 1.0), ns)

    monkeypatch.setenv("PLACEMENT_STUDIO_PATIENCE_S", "1")
    monkeypatch.setattr(looking, "can_pin", lambda: True)
    monkeypatch.setattr(looking, "_look", look)
    load = profile(model, machine).load
    assert load.core_to_core_s == pytest.approx(90e-9 if num_more else 40e-9)
