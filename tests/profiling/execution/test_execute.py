"""Live runs: results, events, inputs, limits, and what happens when something goes wrong."""

import itertools
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from onnx import helper, numpy_helper

from placement.advice.drift import have_moved, profiled_core_to_core_s
from placement.core.costs import Costs
from placement.core.load import Load
from placement.core.machine import Device, Machine, link_arrays
from placement.core.model import Model
from placement.core.problem import Problem, own_kernels
from placement.core.schedule import Schedule, Segment
from placement.core.verb_options import RunOptions
from placement.simulator.critical_path import critical_path
from placement.simulator.simulate import simulate
from profiling import backends
from profiling.devices import heap
from profiling.execution import execute as execution
from profiling.execution.execute import execute
from profiling.measuring.siblings import Look, Siblings
from tests.profiling.live import diamond, problem_of, random_schedule, saved, two_lanes


@pytest.fixture
def live(tmp_path):
    """Model, problem, and a schedule that crosses between the lanes."""
    model = diamond(tmp_path)
    problem = problem_of(model, two_lanes())
    names = {op.kind: op.name for op in problem.kernels.ops}
    schedule = Schedule(
        (
            Segment("cpu:0", (names["Exp"],)),
            Segment("cpu:1", (names["Sin"],)),
            Segment("cpu:0", (names["Mul"],)),
            Segment("cpu:1", (names["Cos"],)),
        )
    )
    return model, problem, schedule


def test_a_run_says_what_happened(live):
    model, problem, schedule = live
    run = execute(problem, schedule, RunOptions(steps=7, warmup=2), model=model)
    assert run.outputs_match and run.max_abs_diff == 0.0 and not run.skipped_outputs_reason
    assert len(run.step_s) == 7 and min(run.step_s) > 0
    assert run.timeline.origin == "measured" and run.timeline.step_s in run.step_s
    assert run.actual_devices == run.requested_devices == dict.fromkeys(["cpu:0", "cpu:1"], CPU)
    assert run.fallbacks == () and set(run.peak_bytes) == {"cpu:0", "cpu:1"}
    assert run.transfer_bytes == 2 * 4 * 8 * 4, "sin to cpu:0, mul to cpu:1, 128 bytes each"
    assert all(seconds > 0 for seconds in run.baseline_s.values()) and run.all_cores_s > 0


CPU = "CPUExecutionProvider"


def test_measured_and_predicted_speak_of_the_same_spans(live):
    model, problem, schedule = live
    run = execute(problem, schedule, RunOptions(steps=3), model=model, baselines=False)
    assert run.baseline_s == {} and run.all_cores_s is None
    key = lambda s: (s.kind, s.name, s.device, s.segment, s.num_bytes)  # noqa: E731
    predicted = simulate(problem, schedule)
    assert sorted(map(key, run.timeline.spans)) == sorted(map(key, predicted.spans))
    spans = run.timeline.spans
    for span in spans:
        assert 0 <= span.start_s <= span.end_s <= run.timeline.step_s
        for i in span.after:
            assert spans[i].end_s <= span.start_s + 1e-9 or spans[i].kind == "transfer"
    path = critical_path(run.timeline)
    assert sum(s.duration_s for s in path) == pytest.approx(max(s.end_s for s in spans))


def test_events_come_between_steps(live):
    model, problem, schedule = live
    events = []
    run = execute(
        problem, schedule, RunOptions(steps=3), model=model, emit=events.append, baselines=False
    )
    kinds = [event["event"] for event in events]
    assert kinds == (["span"] * 4 + ["step"]) * 3
    assert [e["seconds"] for e in events if e["event"] == "step"] == list(run.step_s)
    assert {e["device"] for e in events if e["event"] == "span"} == {"cpu:0", "cpu:1"}


def test_an_exception_from_emit_ends_the_run(live):
    model, problem, schedule = live

    class Enough(Exception):
        pass

    def emit(event):
        raise Enough

    with pytest.raises(Enough):
        execute(problem, schedule, RunOptions(steps=100_000), model=model, emit=emit)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"z": np.zeros(3)}, "no input 'z'; it takes x"),
        ({"x": np.zeros((4, 9), np.float32)}, r"shape \(4, 9\), the model is open with \(4, 8\)"),
        ({"x": np.zeros((4, 8), complex)}, "is complex128, the model takes float32"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(live, inputs, message):
    model, problem, schedule = live
    with pytest.raises(ValueError, match=message):
        execute(problem, schedule, model=model, inputs=inputs)


def test_given_inputs_are_used(live):
    model, problem, schedule = live
    compiled = backends.get("onnxruntime").compile(model, problem.machine)
    x = np.linspace(0, 1, 32).reshape(4, 8)
    program = compiled.open(schedule, compiled.feeds(0, {"x": x}))
    for i in range(4):
        program.run(i)
    np.testing.assert_allclose(program.outputs()["y"], np.cos(np.exp(x) * np.sin(x)), rtol=1e-5)


class _Slow:
    """A backend whose segments take their time."""

    def __init__(self, compiled, seconds):
        self._compiled, self._seconds = compiled, seconds

    def __getattr__(self, name):
        return getattr(self._compiled, name)

    def compile(self, model, machine):
        return self

    def open(self, schedule, feeds):
        program = self._compiled.open(schedule, feeds)
        run = program.run
        program.run, program.native = lambda i: (time.sleep(self._seconds), run(i)), None
        return program


def test_a_step_that_hangs_is_given_up(live, monkeypatch):
    model, problem, schedule = live
    slow = _Slow(backends.get("onnxruntime").compile(model, problem.machine), 1.0)
    monkeypatch.setattr(backends, "usable", lambda name: slow)
    with pytest.raises(RuntimeError, match=r"longer than 0\.1 s and was given up"):
        execute(problem, schedule, RunOptions(timeout_s=0.1), model=model)


@pytest.mark.parametrize(
    ("asking", "warmup", "taken"), [(0, 2, 2), (1, 2, 2), (4, 2, 5), (99, 2, 9), (99, 0, 0)]
)
def test_steps_that_still_ask_for_pages_warm_up_beyond_those_asked_for(
    live, monkeypatch, asking, warmup, taken
):
    model, problem, schedule = live
    asked = itertools.count()
    before = heap.asks_for_pages

    def pretends(step):
        return before(step)[0], next(asked) < asking

    monkeypatch.setattr(heap, "asks_for_pages", pretends)
    options = RunOptions(steps=1, warmup=warmup)
    run = execute(problem, schedule, options, model=model, baselines=False)
    assert next(asked) == taken and len(run.step_s) == 1


def test_costs_of_other_kernels_are_refused(live, tmp_path):
    model, problem, schedule = live
    graph = model.graph
    problem = Problem(graph, problem.machine, problem.costs, renamed(graph), own_kernels(graph))
    with pytest.raises(ValueError, match="profile the model again"):
        execute(problem, schedule, model=model)
    by_formula = replace(problem.costs, origin="analytic")
    problem = Problem(graph, problem.machine, by_formula, renamed(graph), own_kernels(graph))
    with pytest.raises(ValueError, match="measure the model first"):
        execute(problem, schedule, model=model)


def renamed(graph):
    from placement.core.graph import Graph, Op

    names = {op.name: f"other-{op.name}" for op in graph.ops}
    return Graph("g", tuple(Op(names[op.name], op.kind) for op in graph.ops), ())


def test_memory_is_checked_before_anything_is_allocated(tmp_path):
    weight = numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    model = saved(tmp_path, nodes, {"x": [1, 64]}, {"y": [1, 64]}, [weight])
    device = Device("cpu:0", "cpu", "onnxruntime", CPU, memory_bytes=1000)
    problem = problem_of(model, Machine("small", (device,)))
    schedule = Schedule((Segment("cpu:0", tuple(op.name for op in problem.kernels.ops)),))
    with pytest.raises(ValueError, match=r"'cpu:0' need 16\.5 KiB, it has 1000 B"):
        execute(problem, schedule, model=model)


class _Spy:
    """A backend that writes down what is opened."""

    def __init__(self, compiled):
        self._compiled, self.opened = compiled, []

    def __getattr__(self, name):
        if name in ("open", "unplaced"):
            self.opened.append(name)
        return getattr(self._compiled, name)

    def compile(self, model, machine):
        return self


@pytest.mark.parametrize("where", ["device", "host"])
def test_memory_is_checked_before_the_unplaced_model_runs(tmp_path, monkeypatch, where):
    """With what one call holds inside: 2 x 256 bytes between three ops, besides x, y and w."""
    weight = numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Exp", ["a"], ["b"]),
        helper.make_node("Sin", ["b"], ["y"]),
    ]
    model = saved(tmp_path, nodes, {"x": [1, 64]}, {"y": [1, 64]}, [weight])
    limit = 17_000 if where == "device" else None
    device = Device("cpu:0", "cpu", "onnxruntime", CPU, memory_bytes=limit)
    problem = problem_of(model, Machine("small", (device,)))
    schedule = Schedule((Segment("cpu:0", tuple(op.name for op in problem.kernels.ops)),))
    spy = _Spy(backends.get("onnxruntime").compile(model, problem.machine))
    monkeypatch.setattr(backends, "usable", lambda name: spy)
    message = "'cpu:0' need 17 KiB, it has 16.6 KiB"
    if where == "host":
        free = SimpleNamespace(available=2 * 64 * 64 * 4)
        monkeypatch.setattr("psutil.virtual_memory", lambda: free)
        message = "host memory need 33 KiB, 32 KiB are free"
    with pytest.raises(ValueError, match=message):
        execute(problem, schedule, model=model)
    assert spy.opened == []


def test_a_model_without_kernels(tmp_path):
    """Outputs that are an input or a constant need no segment at all."""
    weight = numpy_helper.from_array(np.ones(3, np.float32), "w")
    nodes = [
        helper.make_node("Identity", ["x"], ["y"]),
        helper.make_node("Exp", ["w"], ["z"]),
    ]
    model = saved(tmp_path, nodes, {"x": [2]}, {"y": [2], "z": [3]}, [weight])
    problem = problem_of(model, two_lanes())
    run = execute(
        problem,
        random_schedule(problem, np.random.default_rng(0)),
        RunOptions(steps=2),
        model=model,
    )
    assert run.outputs_match


def test_random_outputs_are_not_compared(tmp_path):
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["r"]),
        helper.make_node("Exp", ["r"], ["y"]),
    ]
    model = saved(tmp_path, nodes, {"x": [2]}, {"y": [2]})
    problem = problem_of(model, two_lanes())
    schedule = random_schedule(problem, np.random.default_rng(0))
    run = execute(problem, schedule, RunOptions(steps=2), model=model, baselines=False)
    assert run.skipped_outputs_reason.startswith("random by definition: ")
    assert run.outputs_match is None and run.max_abs_diff is None


def test_a_weight_that_two_lanes_read_exists_once(tmp_path):
    weight = numpy_helper.from_array(np.eye(64, dtype=np.float32) * 2, "w")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Exp", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "w"], ["y"]),
    ]
    model = saved(tmp_path, nodes, {"x": [1, 64]}, {"y": [1, 64]}, [weight])
    problem = problem_of(model, two_lanes())
    names = [op.name for op in problem.kernels.ops]
    devices = ("cpu:0", "cpu:1", "cpu:0", "cpu:1")
    schedule = Schedule(tuple(Segment(d, (n,)) for d, n in zip(devices, names, strict=False)))
    run = execute(problem, schedule, RunOptions(steps=2), model=model, baselines=False)
    assert run.outputs_match
    assert sum(run.peak_bytes.values()) < 2 * 64 * 64 * 4


def test_a_machine_on_a_virtual_clock_does_what_the_simulation_says(tmp_path):
    model = diamond(tmp_path)
    lanes = two_lanes()
    machine = Machine(
        "null", tuple(Device(d.name, memory_bytes=1 << 30) for d in lanes.devices), lanes.links
    )
    latency_s, s_per_byte = link_arrays(machine)
    costs = Costs(np.full((4, 2), 1e-3), np.zeros(2), latency_s, s_per_byte, "analytic")
    graph = model.graph
    problem = Problem(graph, machine, costs, graph, own_kernels(graph))
    schedule = random_schedule(problem, np.random.default_rng(0))
    events = []
    run = execute(problem, schedule, RunOptions(steps=3), model=Model(graph), emit=events.append)
    assert run.timeline.origin == "emulated"
    assert run.outputs_match is None and run.max_abs_diff is None
    assert run.timeline.spans == simulate(problem, schedule).spans
    assert run.step_s == (run.timeline.step_s,) * 3
    assert run.baseline_s == {"cpu:0": pytest.approx(4e-3), "cpu:1": pytest.approx(4e-3)}
    assert [e["event"] for e in events].count("step") == 3


# What a core has shown is kept for the whole process, so each test has one of its own.
cores = itertools.count(20_000)


@pytest.fixture
def beside(monkeypatch):
    """The sibling of a core that is busy from the first step on."""
    core, looks = next(cores), iter([1.0] * 40)
    made = Siblings([core], patience_s=10.0, look=lambda asked: Look({core: next(looks, 1.5)}))
    monkeypatch.setattr(execution, "siblings", lambda devices, **_: made)


def test_steps_beside_a_busy_sibling_are_made_anew_and_told_and_count_where_all_are(live, beside):
    model, problem, schedule = live
    events = []
    run = execute(
        problem, schedule, RunOptions(steps=4), model=model, emit=events.append, baselines=False
    )
    told = [event for event in events if event["event"] == "progress"]
    assert [event["step"] for event in told] == [*range(1, len(told) + 1)]
    assert told and len(told) == told[-1]["of"] and told[0]["what"] == execution.AGAIN
    assert len(run.step_s) == 4 and run.load.beside == 1.0 and run.load.is_busy
    assert [event["index"] for event in events if event["event"] == "step"] == [0, 1, 2, 3]


def test_a_run_is_held_against_where_the_cores_were_in_its_profile_and_tells_where_they_are(
    live, monkeypatch
):
    model, problem, schedule = live
    pair, asked = (next(cores), next(cores)), []

    def looking(devices, *, core_to_core_s):
        asked.append(core_to_core_s)
        looked = Look(dict.fromkeys(pair, 1.0), 160.0)
        return Siblings(pair, patience_s=10.0, look=lambda _: looked)

    monkeypatch.setattr(execution, "siblings", looking)
    costs = replace(problem.costs, load=Load(1.0, 0.0, 2, core_to_core_s=40e-9))
    profiled = replace(problem, costs=costs)
    run = execute(profiled, schedule, RunOptions(steps=4), model=model, baselines=False)
    assert asked == [40e-9] and run.load.core_to_core_s == pytest.approx(160e-9)
    assert have_moved(profiled_core_to_core_s(profiled, schedule), run.load.core_to_core_s)


def test_a_run_can_be_ended_while_steps_are_made_anew(live, beside):
    model, problem, schedule = live

    def listening(event):
        if event["event"] == "progress":
            raise InterruptedError("enough")

    with pytest.raises(InterruptedError, match="enough"):
        execute(problem, schedule, RunOptions(steps=4), model=model, emit=listening)
