"""The simulator for searches against the one for schedules: values, moves, loads and memory."""

import itertools
import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.core.graph import Graph, Op, Tensor
from placement.core.machine import Device
from placement.core.objective import Objective
from placement.core.violations import needed_bytes
from placement.schedule.order import by_priority
from placement.schedule.segments import make_schedule
from placement.simulator.compiled.loads import find_loads
from placement.simulator.compiled.moves import try_group
from placement.simulator.evaluator import Evaluator, values_s
from placement.simulator.run_state import STRIDE
from placement.simulator.simulate import simulate, step_time_s
from placement.simulator.throughput import loads_s, seconds_per_sample
from tests.checker import timeline_faults
from tests.instances import random_devices, random_problem, with_state
from tests.thorough import either

CLOSE = 1e-9


def instance(seed, num_cpus=1, workspace=False, objective="latency", model="live", **settings):
    """A random problem whose first `num_cpus` devices compute in host memory."""
    problem = random_problem(seed, **settings)
    devices = tuple(
        replace(d, kind="cpu" if i < num_cpus else "gpu")
        for i, d in enumerate(problem.machine.devices)
    )
    costs, rng = problem.costs, np.random.default_rng(seed)
    if not num_cpus:
        costs = replace(costs, contention=0.0)
    if workspace:
        scratch = rng.integers(0, 40, len(problem.kernels.ops))
        costs = replace(costs, workspace_bytes=scratch)
    return replace(
        problem,
        machine=replace(problem.machine, devices=devices),
        costs=costs,
        objective=objective,
        memory_model=model,
    )


def instances(**fixed):
    """Problems of up to five checkpoints, on every kind of machine."""
    choices = {
        "num_cpus": st.integers(0, 3),
        "num_ops": st.integers(1, 5 * STRIDE),
        "num_devices": st.integers(1, 4),
        "execution": st.sampled_from(("op", "segment")),
        "link_contention": st.booleans(),
        "contention": st.sampled_from((0.0, 0.25)),
        "with_groups": st.booleans(),
        "with_cards": st.booleans(),
        "with_overhead": st.booleans(),
    }
    given_ = {key: st.just(value) for key, value in fixed.items()}
    return st.builds(instance, st.integers(0, 10_000), **(choices | given_))


def random_order(problem, rng):
    """A random topological order of kernels."""
    keys = [rng.random() for _ in problem.kernels.ops]
    return np.array(by_priority(problem.kernels, keys), dtype=np.int64)


def schedule_of(problem, devices, order):
    """The unmerged schedule of a placement that runs in this very order."""
    placement = problem.placement_of(devices, order.tolist())
    return make_schedule(problem, placement, merge=False)


def fully_s(problem, devices, order):
    return step_time_s(problem, schedule_of(problem, devices, order))


def random_moves(problem, rng, number):
    """Units and where they go, one unit half of the time."""
    for _ in range(number):
        size = min(problem.num_units, rng.choice((1, 1, 2, 5)))
        units = rng.sample(range(problem.num_units), size)
        yield np.array(units), rng.randrange(problem.num_devices)


@settings(max_examples=either(50, 150), deadline=None)
@given(instances(), st.integers(0, 1000))
def test_a_value_is_the_step_of_the_unmerged_schedule(problem, seed):
    rng = random.Random(seed)
    devices, order = random_devices(problem, seed), random_order(problem, rng)
    schedule = schedule_of(problem, devices, order)
    timeline = simulate(problem, schedule)
    if sum(d.on_host for d in problem.machine.devices) == 1:
        assert timeline_faults(problem, schedule, timeline) == []
    found = Evaluator(problem, order).value_s(np.array(devices))
    assert found == pytest.approx(timeline.step_s, abs=CLOSE)


@settings(max_examples=either(50, 150), deadline=None)
@given(instances(), st.integers(0, 1000))
def test_a_move_tried_or_kept_is_worth_what_a_new_run_says(problem, seed):
    rng = random.Random(seed)
    devices, order = np.array(random_devices(problem, seed)), random_order(problem, rng)
    own = Evaluator(problem, order)
    own.value_s(devices)
    for units, dest in random_moves(problem, rng, 12):
        moved = devices.copy()
        moved[units] = dest
        expected = pytest.approx(fully_s(problem, moved, order), abs=CLOSE)
        assert own.after_move_s(units, dest) == expected
        if rng.random() < 0.4:
            assert try_group(own.flat, own.state, units, dest, np.inf, True) == expected
            devices = moved
    assert own.value_s(devices) == pytest.approx(fully_s(problem, devices, order), abs=CLOSE)


def test_a_device_that_waited_for_what_moves_away_could_have_gone_on():
    """On d0 a chain, on d1 a reader of a late op and then a long op that needs nothing."""
    at = STRIDE + STRIDE // 4
    chain = [f"chain{i}" for i in range(2 * STRIDE)]
    ops = (*chain[:at], "reader", "long", *chain[at:])
    tensors = (
        Tensor("read", chain[at - 1], ("reader",), 1),
        *(Tensor(f"t{i}", a, (b,), 1) for i, (a, b) in enumerate(itertools.pairwise(chain))),
    )
    small = random_problem(0, num_ops=len(ops), num_devices=2, contention=0.25)
    devices = (Device("d0"), Device("d1"))
    graph = Graph("waiting", tuple(Op(name, "op") for name in ops), tensors)
    work_s = np.array([[1000.0] * 2 if name == "long" else [1.0] * 2 for name in ops])
    problem = replace(
        small,
        graph=graph,
        kernels=graph,
        machine=replace(small.machine, devices=devices),
        costs=replace(small.costs, compute_s=work_s),
    )
    on_d1 = np.array([name in ("reader", "long") for name in ops], dtype=np.int64)
    order = np.arange(len(ops))
    own = Evaluator(problem, order)
    own.value_s(on_d1)
    moved = on_d1.copy()
    moved[at] = 0
    expected_s = fully_s(problem, moved, order)
    assert expected_s < own.value_s(on_d1) - STRIDE
    assert own.after_move_s(np.array([at]), 0) == pytest.approx(expected_s, abs=CLOSE)


@settings(max_examples=either(30, 100), deadline=None)
@given(instances(), st.integers(0, 1000))
def test_only_moves_above_the_limit_are_given_up(problem, seed):
    rng = random.Random(seed)
    devices, order = np.array(random_devices(problem, seed)), random_order(problem, rng)
    own = Evaluator(problem, order)
    base_s = own.value_s(devices)
    for units, dest in random_moves(problem, rng, 8):
        moved = devices.copy()
        moved[units] = dest
        true_s = fully_s(problem, moved, order)
        for limit_s in (base_s * rng.uniform(0.8, 1.2), true_s):
            found_s = own.after_move_s(units, dest, limit_s)
            assert found_s == pytest.approx(true_s, abs=CLOSE) or limit_s < true_s, limit_s
            if found_s == np.inf:
                assert try_group(own.flat, own.state, units, dest, limit_s, True) == np.inf
        # Nothing that was given up has left a trace.
        assert own.after_move_s(units, dest) == pytest.approx(true_s, abs=CLOSE)


@settings(max_examples=either(20, 60), deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(0, 1000))
def test_units_stay_where_the_destination_cannot_run_them(number, num_devices, seed):
    problem = random_problem(number, num_ops=40, num_devices=num_devices, with_gaps=True)
    rng = random.Random(seed)
    devices, order = np.array(random_devices(problem, seed)), random_order(problem, rng)
    own = Evaluator(problem, order)
    own.value_s(devices)
    for units, dest in random_moves(problem, rng, 10):
        moved = devices.copy()
        moved[units[problem.allowed[units, dest]]] = dest
        expected = fully_s(problem, moved, order)
        assert own.after_move_s(units, dest) == pytest.approx(expected, abs=CLOSE)


@settings(max_examples=either(30, 100), deadline=None)
@given(instances(objective="throughput", contention=0.0), st.integers(0, 1000))
def test_loads_are_those_of_the_unmerged_schedule(problem, seed):
    rng = random.Random(seed)
    devices, order = np.array(random_devices(problem, seed)), random_order(problem, rng)
    own = Evaluator(problem, order)
    value_s = own.value_s(devices)
    expected = loads_s(problem, schedule_of(problem, devices, order))
    of_devices_s, of_links_s = find_loads(own.flat, own.state)
    names = [d.name for d in problem.machine.devices]
    links = [f"{a}->{b}" for a in names for b in names]
    assert of_devices_s == pytest.approx([expected[name] for name in names])
    assert of_links_s == pytest.approx([expected.get(link, 0.0) for link in links])
    assert value_s == pytest.approx(max(expected.values()))
    for units, dest in random_moves(problem, rng, 3):
        moved = devices.copy()
        moved[units] = dest
        after_s = seconds_per_sample(problem, schedule_of(problem, moved, order))
        assert own.after_move_s(units, dest) == pytest.approx(after_s)
    assert own.value_s(devices) == value_s


@settings(max_examples=either(50, 150), deadline=None)
@given(
    st.one_of(instances(workspace=True), instances(workspace=True, model="sum")),
    st.integers(0, 1000),
)
def test_peaks_are_those_of_the_unmerged_schedule(problem, seed):
    rng = random.Random(seed)
    devices, order = np.array(random_devices(problem, seed)), random_order(problem, rng)
    own = Evaluator(problem, order)
    own.value_s(devices)
    expected = list(needed_bytes(problem, schedule_of(problem, devices, order)))
    assert own.peak_bytes().tolist() == expected
    limit = rng.choice(expected)
    limited = replace(
        problem.machine,
        devices=tuple(replace(d, memory_bytes=limit) for d in problem.machine.devices),
    )
    within = Evaluator(replace(problem, machine=limited), order)
    within.value_s(devices)
    assert within.fits() == (max(expected) <= limit)


@settings(max_examples=either(20, 60), deadline=None)
@given(
    st.one_of(instances(workspace=True), instances(workspace=True, model="sum")),
    st.sampled_from(Objective),
    st.integers(0, 1000),
)
def test_peaks_with_state_are_those_of_the_unmerged_schedule(problem, objective, seed):
    problem = replace(with_state(problem, seed), objective=objective)
    rng = random.Random(seed)
    devices, order = np.array(random_devices(problem, seed)), random_order(problem, rng)
    own = Evaluator(problem, order)
    own.value_s(devices)
    expected = needed_bytes(problem, schedule_of(problem, devices, order))
    assert own.peak_bytes().tolist() == list(expected)


@settings(max_examples=either(10, 25), deadline=None)
@given(instances(), st.integers(0, 1000))
def test_a_batch_gives_what_one_by_one_gives(problem, seed):
    order = random_order(problem, random.Random(seed))
    placements = np.array([random_devices(problem, seed + i) for i in range(7)])
    own = Evaluator(problem, order)
    one_by_one = [own.value_s(devices) for devices in placements]
    assert values_s(problem, order, placements).tolist() == one_by_one
    assert values_s(problem, order, placements[:0]).size == 0


def small_case():
    """Values, moves, loads and peaks of a few small problems, as numbers."""
    found = []
    for seed in range(6):
        problem = instance(
            seed,
            num_cpus=1 + seed % 3,
            workspace=True,
            num_ops=2 * STRIDE + seed,
            num_devices=3,
            execution=("op", "segment")[seed % 2],
            contention=(0.0, 0.25)[seed % 3 > 0],
            with_groups=seed % 2 == 0,
        )
        rng = random.Random(seed)
        own = Evaluator(problem, random_order(problem, rng))
        found.append(own.value_s(np.array(random_devices(problem, seed))))
        found += [own.after_move_s(u, d) for u, d in random_moves(problem, rng, 4)]
        found += [float(x) for loads in find_loads(own.flat, own.state) for x in loads]
        found += own.peak_bytes().tolist()
    return found


def test_the_same_numbers_without_compiling():
    program = (
        "import json; from tests.simulator.test_evaluator import small_case\n"
        "import numba; assert numba.config.DISABLE_JIT\n"
        "print(json.dumps(small_case()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == pytest.approx(small_case(), rel=1e-12)
