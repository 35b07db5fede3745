"""Pipelines live: every output that of its own input, in order, none lost; also when cancelled."""

import itertools
import threading
from dataclasses import replace

import numpy as np
import pytest
from onnx import helper

import placement as pl
from placement.core.costs import Costs
from placement.core.machine import Device, Machine, link_arrays
from placement.core.model import Model
from placement.core.problem import Problem, own_kernels
from placement.core.schedule import Schedule, Segment
from placement.core.verb_options import StreamOptions
from placement.schedule.segments import make_schedule
from placement.schedule.stages import in_stages
from placement.simulator.throughput import seconds_per_sample
from profiling import backends
from profiling.backends.null import NullProgram
from profiling.execution.stream import stream
from profiling.execution.stream_flow import SPARE, intervals_s
from tests.profiling.live import diamond, problem_of, random_schedule, saved, two_lanes

LANES = ("cpu:0", "cpu:1")


@pytest.fixture
def live(tmp_path):
    """Model, problem, and a schedule that goes to and fro between the lanes."""
    model = diamond(tmp_path)
    problem = replace(problem_of(model, two_lanes()), objective="throughput")
    names = {op.kind: op.name for op in problem.kernels.ops}
    kinds = ("Exp", "Sin", "Mul", "Cos")
    pairs = zip(itertools.cycle(LANES), kinds, strict=False)
    return model, problem, Schedule(tuple(Segment(d, (names[kind],)) for d, kind in pairs))


def chain(folder, num_ops):
    """A chain whose every op has an output of its own."""
    kinds = itertools.cycle(("Sin", "Exp", "Neg"))
    nodes = [
        helper.make_node(kind, [f"v{i}"], [f"v{i + 1}"], name=f"n{i}")
        for i, kind in zip(range(num_ops), kinds, strict=False)
    ]
    outputs = {f"v{i + 1}": [3, 5] for i in range(num_ops)}
    return saved(folder, nodes, {"v0": [3, 5]}, outputs)


def test_a_thousand_samples_come_out_right_and_in_order(live):
    model, problem, schedule = live
    events = []
    found = stream(problem, schedule, StreamOptions(samples=1000), model=model, emit=events.append)
    assert found.run.outputs_match and found.bit_equal and found.run.max_abs_diff == 0.0
    assert found.distinct_outputs == found.distinct_inputs >= 3
    assert found.num_samples == 1000 == len(found.latency_s) == len(found.run.step_s)
    assert found.num_outputs == 1000 + 2 * found.depth and not found.cancelled
    steps = [e for e in events if e["event"] == "step"]
    assert [e["index"] for e in steps] == list(range(1000))
    assert [e["latency_s"] for e in steps] == list(found.latency_s)
    assert found.num_stages == 3 and found.depth == 3 + SPARE, "sin to mul to cos crosses twice"
    assert found.samples_per_s > 0 and found.bottleneck in LANES
    assert set(found.busy_s) == set(LANES) and min(found.busy_s.values()) > 0
    assert all(seconds > 0 for seconds in found.run.baseline_s.values())
    assert found.run.transfer_bytes == 2 * 4 * 8 * 4
    spans = [e for e in events if e["event"] == "span"]
    assert len(spans) == 4 * 4 and {e["step"] for e in spans} == {0, 1, 2, 3}


def test_lanes_stay_on_the_cores_that_their_program_wants(live, monkeypatch):
    def to_core(_, lanes):
        return [replace(lane, device=replace(lane.device, core_ids=(77,))) for lane in lanes]

    stay = []
    model, problem, schedule = live
    compiled = backends.compiled(model, problem.machine)
    program = compiled.open(schedule, compiled.feeds(0, {}))
    program.close()
    monkeypatch.setattr(type(program), "pinned", to_core)
    monkeypatch.setattr("profiling.devices.stream_lanes.pin", stay.append)
    assert stream(problem, schedule, StreamOptions(samples=5), model=model).num_samples == 5
    assert stay == [(77,)] * 2


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_any_number_of_samples_in_flight(live, depth):
    model, problem, schedule = live
    found = stream(
        problem, schedule, StreamOptions(samples=300, depth=depth), model=model, baselines=False
    )
    assert found.bit_equal and found.depth == depth and found.num_stages == min(3, depth)
    assert found.distinct_outputs == found.distinct_inputs
    assert depth % found.distinct_inputs, "no slot sees the same input twice running"
    spans = found.run.timeline.spans
    assert len(spans) == 4 * 4 and {s.device for s in spans} == set(LANES)
    for device in LANES:
        own = [s for s in spans if s.device == device]
        assert all(a.end_s <= b.start_s for a, b in itertools.pairwise(own))


@pytest.mark.parametrize("seed", range(6))
def test_random_schedules_of_a_chain(tmp_path, seed):
    """Many crossings, many stages, and buffers that several values of a sample share."""
    rng = np.random.default_rng(seed)
    model = chain(tmp_path, 12)
    problem = problem_of(model, two_lanes())
    depth = (None, 1, 2, 3, 4, None)[seed]
    schedule = random_schedule(problem, rng)
    found = stream(
        problem, schedule, StreamOptions(samples=60, depth=depth), model=model, baselines=False
    )
    assert found.bit_equal and found.num_samples == 60
    _, stage_of = in_stages(problem, schedule)
    assert found.depth == (depth or max(stage_of) + 1 + SPARE)


@pytest.mark.parametrize("asked", [0, 3, 5, 6, 9, 50])
def test_cancelled_in_the_middle_what_is_in_flight_comes_out(live, asked):
    model, problem, schedule = live
    stops, events = itertools.count(), []
    asking = StreamOptions(samples=10_000, warmup=0, depth=4)
    call = {"emit": events.append, "baselines": False, "stop": lambda: next(stops) == asked}
    if asked < 4:
        with pytest.raises(ValueError, match="stopped while it filled"):
            stream(problem, schedule, asking, model=model, **call)
        return
    found = stream(problem, schedule, asking, model=model, **call)
    assert found.cancelled and found.num_outputs == asked
    assert found.num_samples == asked - found.depth == len(found.latency_s)
    steps = [e["index"] for e in events if e["event"] == "step"]
    assert found.bit_equal and steps == list(range(asked - found.depth))
    assert not [t.name for t in threading.enumerate() if t.name.endswith("pipeline")]


def test_an_exception_from_emit_ends_the_stream(live):
    model, problem, schedule = live

    class Enough(Exception):
        pass

    def emit(event):
        if event["index"] == 20:
            raise Enough

    with pytest.raises(Enough):
        stream(problem, schedule, StreamOptions(samples=100_000), model=model, emit=emit)
    assert not [t.name for t in threading.enumerate() if t.name.endswith("pipeline")]


class _Faulty:
    """A backend whose programs do something else in one of their calls."""

    def __init__(self, compiled, fault):
        self._compiled, self._fault, self._calls = compiled, fault, itertools.count()

    def __getattr__(self, name):
        return getattr(self._compiled, name)

    def compile(self, model, machine):
        return self

    def open_ring(self, schedule, feeds, depth):
        programs = self._compiled.open_ring(schedule, feeds, depth)
        for program in programs:
            self._break(program)
        return programs

    def _break(self, program):
        run = program.run

        def faulty(segment):
            if next(self._calls) == 40:
                return self._fault()
            return run(segment)

        program.run, program.native = faulty, None


def broken(monkeypatch, model, problem, fault):
    faulty = _Faulty(backends.get("onnxruntime").compile(model, problem.machine), fault)
    monkeypatch.setattr(backends, "usable", lambda name: faulty)


def test_a_call_that_is_left_out_is_noticed(live, monkeypatch):
    """Its slot still holds the output of an earlier sample, which was of another input."""
    model, problem, schedule = live
    broken(monkeypatch, model, problem, lambda: None)
    found = stream(problem, schedule, StreamOptions(samples=50), model=model, baselines=False)
    assert found.run.outputs_match is False and found.run.max_abs_diff > 0


def test_a_runtime_that_fails_is_one_sentence(live, monkeypatch):
    def fail():
        raise ArithmeticError("no such kernel")

    model, problem, schedule = live
    broken(monkeypatch, model, problem, fail)
    with pytest.raises(RuntimeError, match=r"failed on sample \d+: no such kernel"):
        stream(problem, schedule, StreamOptions(samples=50), model=model)


def test_a_sample_that_hangs_is_given_up(live, monkeypatch):
    model, problem, schedule = live
    release = threading.Event()

    def hang():
        # From here on, for opening may take longer.
        threading.Timer(1.0, release.set).start()
        release.wait(20.0)

    broken(monkeypatch, model, problem, hang)
    try:
        with pytest.raises(RuntimeError, match=r"longer than 0\.3 s and was given up"):
            stream(problem, schedule, StreamOptions(samples=50, timeout_s=0.3), model=model)
    finally:
        release.set()


def test_given_inputs_are_the_inputs_of_every_sample(live):
    model, problem, schedule = live
    x = np.linspace(0, 1, 32).reshape(4, 8)
    found = stream(
        problem, schedule, StreamOptions(samples=30), model=model, inputs={"x": x}, baselines=False
    )
    assert found.bit_equal and found.distinct_inputs == found.distinct_outputs == 1


def test_random_outputs_are_not_compared(tmp_path):
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["r"]),
        helper.make_node("Exp", ["r"], ["y"]),
    ]
    model = saved(tmp_path, nodes, {"x": [2]}, {"y": [2]})
    problem = problem_of(model, two_lanes())
    schedule = random_schedule(problem, np.random.default_rng(0))
    found = stream(problem, schedule, StreamOptions(samples=10), model=model, baselines=False)
    assert found.run.skipped_outputs_reason.startswith("random by definition: ")
    assert found.run.outputs_match is None and found.bit_equal is None


def test_values_without_a_fixed_size_stream_too(tmp_path):
    nodes = [
        helper.make_node("NonZero", ["x"], ["where"]),
        helper.make_node("Cast", ["where"], ["real"], to=1),
        helper.make_node("Exp", ["real"], ["y"]),
    ]
    model = saved(tmp_path, nodes, {"x": [3, 4]}, {"y": [2, None]})
    problem = problem_of(model, two_lanes())
    names = [op.name for op in problem.kernels.ops]
    pairs = zip(itertools.cycle(LANES), names, strict=False)
    schedule = Schedule(tuple(Segment(d, (name,)) for d, name in pairs))
    found = stream(problem, schedule, StreamOptions(samples=50), model=model, baselines=False)
    assert found.bit_equal and found.num_samples == 50


def test_memory_decides_how_many_samples_are_in_flight(tmp_path):
    """Eight buffers of 60 bytes a sample: the chain's outputs; room is for three samples."""
    model = chain(tmp_path, 8)
    devices = tuple(replace(d, memory_bytes=800) for d in two_lanes().devices)
    machine = replace(two_lanes(), devices=devices)
    problem = problem_of(model, machine)
    names = [op.name for op in problem.kernels.ops]
    pairs = zip(itertools.cycle(LANES), names, strict=False)
    schedule = Schedule(tuple(Segment(d, (name,)) for d, name in pairs))
    found = stream(problem, schedule, StreamOptions(samples=20), model=model, baselines=False)
    assert found.depth == 3 and found.bit_equal
    assert max(found.run.peak_bytes.values()) == 3 * 4 * 60
    with pytest.raises(ValueError, match="need 960 B, it has 800 B"):
        stream(problem, schedule, StreamOptions(samples=20, depth=4), model=model)


def emulated_problem(folder):
    model, lanes = diamond(folder), two_lanes()
    machine = Machine("null", tuple(Device(name) for name in LANES), lanes.links)
    latency_s, s_per_byte = link_arrays(machine)
    costs = Costs(np.full((4, 2), 1e-3), np.zeros(2), latency_s, s_per_byte, "analytic")
    graph = model.graph
    return Problem(graph, machine, costs, graph, own_kernels(graph), objective="throughput")


def test_a_machine_on_a_virtual_clock_does_what_the_loads_say(tmp_path):
    problem = emulated_problem(tmp_path)
    schedule = make_schedule(problem, problem.placement_of([0, 1, 0, 1]))
    events = []
    found = stream(
        problem, schedule, StreamOptions(samples=5), model=Model(problem.graph), emit=events.append
    )
    assert found.run.timeline.origin == "emulated" and found.run.outputs_match is None
    assert found.samples_per_s == pytest.approx(1 / seconds_per_sample(problem, schedule))
    assert [e["index"] for e in events] == list(range(5)) and found.num_samples == 5
    assert found.bottleneck in LANES


def test_the_verb_asks_for_the_right_objective(tmp_path):
    problem = emulated_problem(tmp_path)
    placement = problem.placement_of([0, 1, 0, 1])
    predicted, found = pl.stream(Model(problem.graph), problem, placement, samples=3)
    assert found.samples_per_s == pytest.approx(1 / predicted.value)
    with pytest.raises(ValueError, match="runs by `stream`"):
        pl.run(Model(problem.graph), problem, placement)
    with pytest.raises(ValueError, match="use --objective throughput"):
        pl.stream(Model(problem.graph), replace(problem, objective="latency"), placement)


def test_nonsense_is_refused():
    for wrong, match in (
        ({"samples": 0}, "at least 1 sample and 0 warm-ups, not 0 and 3"),
        ({"warmup": -1}, "at least 1 sample and 0 warm-ups, not 200 and -1"),
        ({"depth": 0}, "at least 1 sample and a depth of 1, not 200 and 0"),
    ):
        with pytest.raises(ValueError, match=match):
            StreamOptions(**wrong)


def test_every_slot_of_the_null_backend_starts_afresh(live):
    model, problem, _ = live
    compiled = backends.get("null").compile(model, problem.machine)
    names = [op.name for op in compiled.kernels.ops]
    whole = Schedule((Segment("null:0", tuple(names[:2])), Segment("null:0", tuple(names[2:]))))
    programs = compiled.open_ring(whole, ({}, {}), 2)
    assert len(programs) == 2 and all(isinstance(p, NullProgram) for p in programs)
    programs[0].run(0)
    programs[0].run(1)
    programs[0].feed(1)
    with pytest.raises(AssertionError, match="segment 1 runs before"):
        programs[0].run(1)


def test_a_pipeline_is_measured_while_it_is_full():
    done_s = [4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 9.5]
    assert intervals_s([0.0] * 7, done_s, 2, 2) == (1.0,) * 3
    assert intervals_s([0.0] * 7, done_s, 4, 2) == (1.0,)
    assert intervals_s([0.0] * 2, [4.0, 5.0], 3, 3) == (4.0, 1.0), "it never filled"
    assert intervals_s([1.0], [4.0], 1, 1) == (3.0,)
