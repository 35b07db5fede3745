"""Lanes in Python and native ones do the same: outputs, spans, errors, cancel, timeout, streams."""

import gc
import itertools
import threading
from dataclasses import replace

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from placement.core.machine import Device, Link, Machine
from placement.core.objective import Objective
from placement.core.schedule import Schedule, Segment
from placement.core.verb_options import RunOptions, StreamOptions
from placement.simulator.executions import lower
from placement.simulator.simulate import simulate
from profiling import backends
from profiling.devices import native
from profiling.devices.stream_lanes import StreamLanes
from profiling.execution.execute import REPEATED, execute, lanes_of
from profiling.execution.stream import stream
from profiling.execution.stream_outputs import same_bits
from profiling.measuring.reference import release, safe_step
from tests.profiling.live import CPU, endless, problem_of, random_schedule, saved

NATIVELY = "Lanes ran natively, without the interpreter's lock."
LANES = tuple(Device(f"cpu:{i}", "cpu", "onnxruntime", CPU) for i in range(3))
LINKS = (Link(a.name, b.name, 2e-5, 1e10) for a, b in itertools.permutations(LANES, 2))
THREE = Machine("three", LANES, tuple(LINKS))


@pytest.fixture(autouse=True)
def enough_cores(monkeypatch):
    """Three lanes run natively on any computer; they soon sleep, for they may share a core."""
    monkeypatch.setattr(native, "share_cores", lambda devices: "")
    monkeypatch.setattr(native, "PATIENCE_NS", 20_000)


class _InPython:
    """A backend whose lanes run in Python."""

    def __init__(self, backend):
        self._backend = backend

    def compile(self, model, machine):
        return self._backend.compile(model, machine).in_python()


@pytest.fixture(params=["python", "native"])
def kind(request, monkeypatch):
    if request.param == "python":
        inside = _InPython(backends.get("onnxruntime"))
        monkeypatch.setattr(backends, "usable", lambda name: inside)
    return request.param


@pytest.fixture
def small(tmp_path):
    """A model with a weight that several parts share, values that fork and join, two outputs."""
    weight = numpy_helper.from_array(np.eye(32, dtype=np.float32) * 0.5, "w")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="a"),
        helper.make_node("Exp", ["a"], ["b"], name="b"),
        helper.make_node("Sin", ["a"], ["c"], name="c"),
        helper.make_node("MatMul", ["b", "w"], ["d"], name="d"),
        helper.make_node("Mul", ["c", "d"], ["e"], name="e"),
        helper.make_node("MatMul", ["e", "w"], ["y"], name="y"),
        helper.make_node("Cos", ["e"], ["z"], name="z"),
    ]
    shapes = {"x": [4, 32]}, {"y": [4, 32], "z": [4, 32]}
    model = saved(tmp_path, nodes, *shapes, [weight])
    return model, problem_of(model, THREE)


def opened(problem, model, schedule, given=None):
    """A program with its lanes."""
    compiled = backends.compiled(model, problem.machine)
    program = compiled.open(schedule, compiled.feeds(0, given or {}))
    lanes = lanes_of(problem, lower(problem, schedule))
    return program, program.carried(lanes, len(schedule.segments))


@pytest.mark.parametrize("seed", range(4))
def test_outputs_are_the_same_to_the_bit_and_spans_those_that_were_simulated(small, kind, seed):
    model, problem = small
    schedule = random_schedule(problem, np.random.default_rng(seed))
    events = []
    run = execute(
        problem, schedule, RunOptions(steps=3), model=model, emit=events.append, baselines=False
    )
    assert run.outputs_match and run.max_abs_diff == 0.0
    # Steps that are this short follow on others where all lanes can wait for all.
    assert run.lanes_note in ({NATIVELY, f"{NATIVELY} {REPEATED}"} if kind == "native" else {""})
    assert set(run.actual_devices.values()) == {CPU} and not run.fallbacks
    key = lambda s: (s.kind, s.name, s.device, s.segment, s.num_bytes)  # noqa: E731
    spans = run.timeline.spans
    assert sorted(map(key, spans)) == sorted(map(key, simulate(problem, schedule).spans))
    for span in spans:
        assert 0 <= span.start_s <= span.end_s <= run.timeline.step_s
        assert all(spans[i].end_s <= span.start_s + 1e-9 for i in span.after if span.segment >= 0)
    for device in problem.machine.devices:
        own = [s for s in spans if s.device == device.name]
        assert [s.segment for s in own] == sorted(s.segment for s in own)
    kinds = [event["event"] for event in events]
    assert kinds == ([*["span"] * len(schedule.segments), "step"]) * 3


@pytest.mark.parametrize("seed", range(4))
def test_steps_that_follow_on_others_at_once_give_the_same_and_say_so(small, seed, monkeypatch):
    monkeypatch.setattr("profiling.devices.lanes.SHORT_S", 60.0)
    model, problem = small
    schedule = random_schedule(problem, np.random.default_rng(seed))
    run = execute(problem, schedule, RunOptions(steps=20), model=model, baselines=False)
    assert run.outputs_match and run.max_abs_diff == 0.0
    assert run.lanes_note == f"{NATIVELY} {REPEATED}"


def test_both_give_the_same_bits_on_other_inputs_too(small):
    model, problem = small
    schedule = random_schedule(problem, np.random.default_rng(9))
    given = {"x": np.random.default_rng(1).standard_normal((4, 32)).astype(np.float32)}
    compiled = backends.compiled(model, problem.machine)
    found = []
    for one in (compiled, compiled.in_python()):
        program = one.open(schedule, one.feeds(0, given))
        for segment in range(len(schedule.segments)):
            program.run(segment)
        found.append(program.outputs())
        program.close()
    assert same_bits(*found)


def test_a_program_frees_all_that_it_has_made(small):
    model, problem = small
    schedule = random_schedule(problem, np.random.default_rng(0))
    made = lambda: sum(type(o).__name__ == "Owned" for o in gc.get_objects())  # noqa: E731
    gc.collect()
    before = made()
    program, lanes = opened(problem, model, schedule)
    safe_step(lanes, program, 10.0)
    assert made() > before + len(schedule.segments)
    release([program], [lanes])
    del program, lanes
    gc.collect()
    assert made() == before


def failing(folder):
    """A model that looks up a row by what comes in."""
    table = numpy_helper.from_array(np.ones((3, 2), np.float32), "table")
    nodes = [
        helper.make_node("Neg", ["x"], ["n"], name="n"),
        helper.make_node("Cast", ["n"], ["i"], name="i", to=TensorProto.INT64),
        helper.make_node("Gather", ["table", "i"], ["y"], name="y"),
    ]
    return saved(folder, nodes, {"x": [1]}, {"y": [1, 2]}, [table])


def test_a_runtime_that_fails_says_the_same(tmp_path, kind):
    model = failing(tmp_path)
    problem = problem_of(model, THREE)
    names = [op.name for op in problem.kernels.ops]
    schedule = Schedule(tuple(Segment(f"cpu:{i}", (n,)) for i, n in enumerate(names)))
    program, lanes = opened(problem, model, schedule, {"x": np.full(1, 100.0, np.float32)})
    assert (program.native is not None) == (kind == "native")
    with pytest.raises(RuntimeError) as caught:
        safe_step(lanes, program, 10.0)
    release([program], [lanes])
    assert str(caught.value).startswith(
        "The runtime failed in a step: Error in execution: Non-zero status code returned while"
        " running Gather node."
    )
    assert "indices element out of data bounds, idx=-100" in str(caught.value)
    program = backends.compiled(model, THREE).open(schedule, {"x": np.full(1, 9.0, np.float32)})
    program.run(0)
    program.run(1)
    with pytest.raises(RuntimeError, match=r"^Error in execution: .*out of data bounds, idx=-9"):
        program.run(2)
    program.close()


def test_a_segment_that_hangs_is_ended_with_its_thread(tmp_path, kind):
    model = endless(tmp_path)
    problem = problem_of(model, THREE)
    first, *others = (op.name for op in problem.kernels.ops)
    schedule = Schedule((Segment("cpu:0", (first,)), Segment("cpu:1", tuple(others))))
    program, lanes = opened(problem, model, schedule, {"rounds": np.full(1, 10**12)})
    assert (program.native is not None) == (kind == "native")
    with pytest.raises(RuntimeError, match=r"longer than 0\.2 s and was given up"):
        safe_step(lanes, program, 0.2)
    assert lanes.close(20.0), "the runtime has ended the loop"
    release([program], [lanes])


def test_an_exception_from_emit_ends_the_run(small, kind):
    model, problem = small
    schedule = random_schedule(problem, np.random.default_rng(0))

    class Enough(Exception):
        pass

    def emit(event):
        raise Enough

    with pytest.raises(Enough):
        execute(problem, schedule, RunOptions(steps=100_000), model=model, emit=emit)
    alive = {thread.name for thread in threading.enumerate()}
    assert not alive & {device.name for device in problem.machine.devices}


@pytest.mark.parametrize("depth", [None, 1, 3])
def test_streams_of_samples_come_out_right_and_in_order(small, kind, depth):
    model, problem = small
    problem = replace(problem, objective=Objective.THROUGHPUT)
    schedule = random_schedule(problem, np.random.default_rng(3))
    events = []
    options = StreamOptions(samples=40, warmup=0, depth=depth)
    found = stream(problem, schedule, options, model=model, emit=events.append, baselines=False)
    assert found.bit_equal and found.distinct_outputs == found.distinct_inputs >= 3
    assert found.num_samples == 40 and found.num_outputs == 40 + 2 * found.depth
    assert found.run.lanes_note == (NATIVELY if kind == "native" else "")
    assert set(found.busy_s) == {d.name for d in THREE.devices}
    steps = [e["index"] for e in events if e["event"] == "step"]
    assert steps == list(range(40))
    spans = found.run.timeline.spans
    assert len(spans) == 4 * len(schedule.segments)
    for device in THREE.devices:
        own = [s for s in spans if s.device == device.name]
        assert all(a.end_s <= b.start_s for a, b in itertools.pairwise(own))


@pytest.mark.parametrize("asked", [3, 9])
def test_of_a_stream_that_is_stopped_what_is_in_flight_comes_out(small, kind, asked):
    model, problem = small
    stops = itertools.count()
    asking = StreamOptions(samples=10_000, warmup=0, depth=3)
    found = stream(
        replace(problem, objective=Objective.THROUGHPUT),
        random_schedule(problem, np.random.default_rng(3)),
        asking,
        model=model,
        baselines=False,
        stop=lambda: next(stops) == asked + 2,
    )
    assert found.cancelled and found.num_outputs == asked + 2 and found.bit_equal
    assert not [t.name for t in threading.enumerate() if t.name.endswith("pipeline")]


def test_a_sample_that_hangs_is_ended_with_its_threads(tmp_path, kind):
    model = endless(tmp_path)
    problem = problem_of(model, THREE)
    first, *others = (op.name for op in problem.kernels.ops)
    schedule = Schedule((Segment("cpu:0", (first,)), Segment("cpu:1", tuple(others))))
    compiled = backends.compiled(model, THREE)
    feeds = compiled.feeds(0, {"rounds": np.full(1, 10**12)})
    programs = compiled.open_ring(schedule, (feeds,), 3)
    lanes = StreamLanes(
        lanes_of(problem, lower(problem, schedule)),
        (0, 1),
        3,
        lambda segment, slot: programs[slot].run(segment),
        native=[program.native for program in programs if program.native is not None],
    )
    lanes.begin(0)
    with pytest.raises(TimeoutError, match=r"longer than 0\.2 s and was given up"):
        lanes.completed_s(0, 0.2)
    programs[1].stop()
    assert lanes.close(20.0), "the runtime has ended the loop"
    release(programs, [lanes])
