"""Offload and shared memories against numbers worked out by hand, and against the definitions."""

import random
from dataclasses import replace

import numpy as np
import pytest

import placement as pl
from placement.api.answers import of_prediction
from placement.core.costs import Costs
from placement.core.graph import Graph, Op, Tensor
from placement.core.machine import Device, Link, Machine, machine_from_json
from placement.core.placement import Placement, placement_from_json
from placement.core.problem import Execution, Problem, own_kernels
from placement.core.violations import needed_bytes, violations
from placement.costs.offload import streamed_bytes, with_offload, without_offload
from placement.costs.roofline import waits_s
from placement.costs.what_if import Conditions, what_if
from placement.schedule.segments import make_schedule
from placement.simulator.evaluator import Evaluator
from placement.simulator.flat import flatten
from placement.simulator.simulate import simulate
from placement.simulator.throughput import loads_s
from tests.checker import timeline_faults
from tests.instances import random_problem

LATENCY_S, BYTES_PER_S = 0.001, 1000.0
# Weights 100 and 100, values of 10: the accelerator holds one layer, values, and what arrives.
FITS = 100 + 100 + 2 * 10


def two_layers(memory_bytes, **settings):
    """Two layers on a slow CPU and an accelerator whose link takes a tenth of a second a layer."""
    graph = Graph(
        "two layers",
        (Op("a", "Layer", param_bytes=100), Op("b", "Layer", param_bytes=100)),
        (
            Tensor("x", None, ("a",), 10),
            Tensor("h", "a", ("b",), 10),
            Tensor("y", "b", (), 10, is_output=True),
        ),
    )
    devices = (
        Device("cpu:0", memory_bytes=1000),
        Device("gpu:0", "gpu", memory_bytes=memory_bytes),
    )
    ends = (("cpu:0", "gpu:0"), ("gpu:0", "cpu:0"))
    links = tuple(Link(*pair, LATENCY_S, BYTES_PER_S) for pair in ends)
    costs = Costs(
        compute_s=np.array([[1.0, 0.01], [1.0, 0.01]]),
        call_s=np.array([0.0, 0.002]),
        latency_s=LATENCY_S * (1 - np.eye(2)),
        s_per_byte=(1 - np.eye(2)) / BYTES_PER_S,
        origin="analytic",
    )
    machine = Machine("m", devices, links)
    return Problem(graph, machine, costs, graph, own_kernels(graph), **settings)


def placed(problem, *devices):
    names = (op.name for op in problem.graph.ops)
    return Placement(problem.graph.fingerprint, "m", dict(zip(names, devices, strict=True)))


def test_a_step_that_streams_takes_what_the_formula_says():
    problem = with_offload(two_layers(FITS))
    assert [d.name for d in problem.machine.devices] == ["cpu:0", "gpu:0", "gpu:0-streamed"]
    placement = placed(problem, "gpu:0", "gpu:0-streamed")
    schedule = make_schedule(problem, placement)
    timeline = simulate(problem, schedule)
    over_link = LATENCY_S + 10 / BYTES_PER_S
    layer_s, stream_s = 0.002 + 0.01, LATENCY_S + 100 / BYTES_PER_S
    assert timeline.step_s == pytest.approx(2 * over_link + 2 * layer_s + stream_s)
    assert timeline_faults(problem, schedule, timeline) == []
    assert needed_bytes(problem, schedule) == [100 + 10, FITS, 0]
    assert violations(problem, schedule) == ()
    # The input lies there while the first layer runs, beside no weights that arrive.
    assert timeline.peak_bytes == {"cpu:0": 110, "gpu:0": FITS, "gpu:0-streamed": 0}
    evaluator = Evaluator(problem, np.array([0, 1]))
    evaluator.value_s(np.array([1, 2]))
    assert evaluator.peak_bytes().tolist() == [110, FITS, 0]
    assert streamed_bytes(problem, placement) == {"gpu:0": 100}
    answer = of_prediction(problem, placement).to_json()
    assert answer["streamed_bytes"] == {"gpu:0": 100} and answer["violations"] == []


def test_what_streams_waits_for_the_link():
    problem = two_layers(FITS)
    rated = tuple(
        replace(d, flops_per_s=1e3, memory_bytes_per_s=1e3) for d in problem.machine.devices
    )
    problem = with_offload(replace(problem, machine=replace(problem.machine, devices=rated)))
    waits = waits_s(problem, placed(problem, "gpu:0", "gpu:0-streamed"))
    assert waits["link"] == pytest.approx(LATENCY_S + 100 / BYTES_PER_S)
    assert sum(waits.values()) == pytest.approx(2 * 0.01 + waits["link"])
    assert waits_s(problem, placed(problem, "gpu:0", "cpu:0"))["link"] == 0.0


def test_the_buffer_counts():
    problem = with_offload(two_layers(FITS - 1))
    schedule = make_schedule(problem, placed(problem, "gpu:0", "gpu:0-streamed"))
    assert violations(problem, schedule) == ("Device 'gpu:0' needs 220 B but has 219 B.",)


def test_methods_stream_what_does_not_fit_and_nothing_else():
    tight = two_layers(FITS)
    slow_s = pl.place(tight, "auto", settings={"max_iterations": 100}).value
    answer = pl.place(with_offload(tight), "auto", settings={"max_iterations": 100})
    used = sorted(answer.placement.device_of.values())
    assert used == ["gpu:0", "gpu:0-streamed"] and answer.violations == ()
    assert answer.value < 0.2 < 1.0 < slow_s
    assert answer.lower_bound <= answer.value
    roomy = two_layers(1000)
    assert with_offload(roomy) is roomy


def test_arrays_lie_as_those_of_any_problem():
    """Else all that is compiled for the others would be compiled anew, for a minute."""

    def layout(problem):
        flat = flatten(problem)
        arrays = [value for value in flat if isinstance(value, np.ndarray)]
        return [(a.dtype, a.ndim, a.flags.c_contiguous, a.flags.writeable) for a in arrays]

    plain = two_layers(FITS)
    upright = np.asfortranarray(plain.costs.compute_s)
    others = (with_offload(plain), replace(plain, costs=replace(plain.costs, compute_s=upright)))
    assert [layout(other) for other in others] == [layout(plain)] * 2


def test_placements_with_offload_open_again():
    problem = with_offload(two_layers(FITS))
    placement = placed(problem, "gpu:0-streamed", "gpu:0")
    again = placement_from_json(placement.to_json())
    assert again.device_of == placement.device_of
    assert problem.kernel_devices(again).tolist() == [2, 1]
    with pytest.raises(ValueError, match="--offload"):
        two_layers(FITS).kernel_devices(again)


def test_what_if_makes_streams_of_the_changed_machine():
    problem = with_offload(two_layers(FITS))
    changed = what_if(problem, Conditions(bandwidth=2.0, speed={"gpu:0": 0.5}))
    expected = 0.01 / 0.5 + LATENCY_S + 100 / (2 * BYTES_PER_S)
    assert changed.costs.compute_s[:, 2] == pytest.approx(expected)
    # Whatever is placed on the machine as it is must have a place on the changed one.
    assert what_if(problem, Conditions(memory_bytes={"gpu:0": None})).machine.index == {
        "cpu:0": 0,
        "gpu:0": 1,
        "gpu:0-streamed": 2,
    }
    assert without_offload(problem).fingerprint == two_layers(FITS).fingerprint
    assert problem.fingerprint != two_layers(FITS).fingerprint


def test_what_offload_is_not_for_is_refused():
    given = replace(two_layers(FITS), memory_model="sum")
    with pytest.raises(ValueError, match="leave --offload out"):
        with_offload(given)
    lanes = random_problem(0, num_devices=3, contention=0.1)
    assert with_offload(lanes) is lanes
    kinds = ("cpu", "cpu", "gpu")
    devices = (replace(d, kind=k) for d, k in zip(lanes.machine.devices, kinds, strict=True))
    small = tuple(replace(d, memory_bytes=100) for d in devices)
    lanes = replace(lanes, machine=replace(lanes.machine, devices=small))
    with pytest.raises(ValueError, match="one lane"):
        with_offload(lanes)
    row = {"name": "gpu:0-streamed", "engine": "gpu:0", "streams_from": "cpu:0"}
    with pytest.raises(ValueError, match="--offload"):
        machine_from_json({"devices": [{"name": "cpu:0"}, {"name": "gpu:0"}, row]})


@pytest.mark.parametrize("seed", range(12))
def test_all_views_of_a_placement_agree(seed):
    """Searches, schedules, loads and memory, where devices share an engine and a memory."""
    small = random_problem(seed, num_devices=3, num_ops=14, execution=("op", "segment")[seed % 2])
    devices = tuple(replace(d, memory_bytes=400) for d in small.machine.devices)
    small = replace(small, machine=replace(small.machine, devices=devices))
    problem, rng = with_offload(small), random.Random(seed)
    assert problem.num_devices == 5
    for _ in range(4):
        units = np.array([rng.randrange(5) for _ in range(problem.num_units)])
        order = np.arange(len(problem.kernels.ops))
        schedule = make_schedule(problem, problem.placement_of(units, order))
        timeline = simulate(problem, schedule)
        assert timeline_faults(problem, schedule, timeline) == []
        peaks = dict(zip(problem.machine.index, needed_bytes(problem, schedule), strict=True))
        assert timeline.peak_bytes["d1-streamed"] == peaks["d1-streamed"] == 0
        evaluator = Evaluator(problem, order)
        assert evaluator.value_s(units) >= timeline.step_s
        if problem.execution is Execution.OP:
            assert evaluator.value_s(units) == timeline.step_s
            assert evaluator.peak_bytes().tolist() == list(peaks.values())
        loads, spans = loads_s(problem, schedule), timeline.spans
        for name in ("d1", "d2"):
            own = [s for s in spans if s.device in (name, f"{name}-streamed")]
            moved = [s for s in spans if name in s.device.replace("-streamed", "").split("->")]
            moved = [s for s in moved if s.kind == "transfer"]
            total = sum(s.duration_s for s in own) + sum(s.duration_s for s in moved)
            assert loads[name] == pytest.approx(total)


@pytest.mark.parametrize("seed", range(6))
def test_moves_are_worth_what_whole_runs_are(seed):
    small = random_problem(seed, num_devices=3, num_ops=30)
    devices = tuple(replace(d, memory_bytes=400) for d in small.machine.devices)
    problem = with_offload(replace(small, machine=replace(small.machine, devices=devices)))
    rng, order = random.Random(seed), np.arange(30)
    units = np.array([rng.randrange(5) for _ in range(problem.num_units)])
    base, whole = Evaluator(problem, order), Evaluator(problem, order)
    base.value_s(units)
    for _ in range(20):
        moved, dest = np.array([rng.randrange(problem.num_units)]), rng.randrange(5)
        after = units.copy()
        after[moved] = dest
        assert base.after_move_s(moved, dest) == pytest.approx(whole.value_s(after))


def test_devices_that_share_a_memory_share_its_limit():
    lone = two_layers(1000)
    cpu, gpu = lone.machine.devices
    shared = (replace(cpu, memory_bytes=215), replace(gpu, memory_bytes=None, memory="cpu:0"))
    problem = replace(lone, machine=replace(lone.machine, devices=shared))
    assert with_offload(problem) is problem
    schedule = make_schedule(problem, placed(problem, "cpu:0", "gpu:0"))
    # Both layers, and the copy of what is handed over beside the value and the output.
    assert needed_bytes(problem, schedule) == [200 + 4 * 10, 0]
    assert "needs 240 B but has 215 B" in violations(problem, schedule)[0]
    with pytest.raises(ValueError, match="memory"):
        pl.place(problem, "heft")
    answer = pl.place(replace(problem, machine=_larger(problem, 240)), "heft")
    assert answer.violations == () and answer.timeline.peak_bytes["gpu:0"] == 0


def _larger(problem, memory_bytes):
    cpu, gpu = problem.machine.devices
    return replace(problem.machine, devices=(replace(cpu, memory_bytes=memory_bytes), gpu))


def test_shared_memories_have_one_owner():
    with pytest.raises(ValueError, match="no memory_bytes of its own"):
        Device("gpu:0", memory="cpu:0", memory_bytes=1)
    with pytest.raises(ValueError, match="memory of its own; name one"):
        Machine("m", (Device("cpu:0"), Device("gpu:0", memory="gpu:1")))
