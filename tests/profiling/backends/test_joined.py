"""Several runtimes in one step: what crosses between them is what the unplaced model computes."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import placement as pl
from placement.api.problems import make_problem
from placement.api.run import require_present
from placement.core.machine import Device, Machine
from placement.core.schedule import Schedule, Segment
from placement.core.verb_options import RunOptions, StreamOptions
from placement.loaders import load
from profiling import backends
from profiling.backends._joined import Joined
from profiling.backends._ort.program import OrtProgram
from profiling.backends.onnxruntime import OnnxRuntime
from profiling.backends.torch import Torch
from profiling.devices.lanes import Lane
from profiling.devices.local import (
    for_format,
    load_machine,
    local_machine,
    missing_devices,
    nominal_links,
)
from profiling.execution.execute import execute
from profiling.execution.stream import stream
from profiling.measuring import kernels, links
from tests.profiling.backends.pretend import Pretend, put_in_place
from tests.profiling.backends.test_torch_memories import network
from tests.profiling.live import (
    diamond,
    measure_briefly,
    problem_of,
    random_schedule,
    saved,
    two_lanes,
)
from tests.thorough import either

ADDED = Path(__file__).parent / "added"


@pytest.fixture
def reference():
    """The backend that another folder adds to the listing."""
    backends.__path__.append(str(ADDED))
    try:
        yield backends.get("reference")
    finally:
        backends.__path__.remove(str(ADDED))
        sys.modules.pop("profiling.backends.reference", None)


@pytest.fixture
def registered(monkeypatch):
    """Put a backend made in a test among those of the folder."""

    def put(backend):
        names, get = backends.names, backends.get
        monkeypatch.setattr(backends, "names", lambda: (*names(), backend.name))
        monkeypatch.setattr(
            backends, "get", lambda name: backend if name == backend.name else get(name)
        )
        return backend

    return put


def both(*others: Device) -> Machine:
    devices = (*two_lanes().devices, *others)
    return Machine("both", devices, nominal_links(devices))


def alternating(problem, *devices):
    """A segment for each kernel, on devices in turn."""
    ops = problem.kernels.ops
    on = [devices[i % len(devices)] for i in range(len(ops))]
    return Schedule(tuple(Segment(d, (op.name,)) for d, op in zip(on, ops, strict=True)))


def many_paths(folder):
    """Sums, products and a weight, so that some values have several readers."""
    rng = np.random.default_rng(0)
    weight = numpy_helper.from_array(rng.standard_normal((8, 8)).astype(np.float32), "w")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="a"),
        helper.make_node("Relu", ["a"], ["b"], name="b"),
        helper.make_node("Exp", ["x"], ["c"], name="c"),
        helper.make_node("Add", ["a", "c"], ["d"], name="d"),
        helper.make_node("Mul", ["b", "d"], ["e"], name="e"),
        helper.make_node("MatMul", ["e", "w"], ["f"], name="f"),
        helper.make_node("Split", ["f"], ["g", "h"], name="split", axis=0, num_outputs=2),
        helper.make_node("Sub", ["g", "h"], ["y"], name="y"),
        helper.make_node("Sin", ["d"], ["z"], name="z"),
    ]
    outputs = {"y": [2, 8], "z": [4, 8]}
    return saved(folder, nodes, {"x": [4, 8]}, outputs, [weight], opset=18)


def test_every_other_kernel_on_another_runtime(reference, tmp_path):
    model = diamond(tmp_path)
    problem = problem_of(model, both(*reference.devices()))
    schedule = alternating(problem, "cpu:0", "reference:0")
    run = execute(problem, schedule, RunOptions(steps=3), model=model)
    assert run.outputs_match and run.timeline.origin == "measured"
    assert run.actual_devices == {"cpu:0": "CPUExecutionProvider", "reference:0": "numpy"}
    assert set(run.peak_bytes) <= set(problem.machine.index) and set(run.baseline_s) == {
        "cpu:0",
        "cpu:1",
        "reference:0",
    }
    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
    program = backends.compiled(model, problem.machine).open(schedule, {"x": x})
    for _ in range(2):
        for i in range(len(schedule.segments)):
            program.run(i)
    np.testing.assert_allclose(program.outputs()["y"], np.cos(np.exp(x) * np.sin(x)), rtol=1e-5)


@pytest.mark.parametrize("seed", range(12))
def test_any_schedule_computes_the_same(reference, tmp_path, seed):
    model = many_paths(tmp_path)
    problem = problem_of(model, both(*reference.devices()))
    schedule = random_schedule(problem, np.random.default_rng(seed))
    options = RunOptions(steps=2, seed=seed)
    run = execute(problem, schedule, options, model=model, baselines=False)
    assert run.outputs_match, (seed, schedule)


@pytest.mark.parametrize("broken", ["reference", "onnxruntime"])
def test_a_value_that_arrives_wrong_is_noticed(reference, tmp_path, monkeypatch, broken):
    module = sys.modules[type(reference).__module__]
    kind = module.ReferenceProgram if broken == "reference" else OrtProgram
    take = kind.take
    monkeypatch.setattr(kind, "take", lambda self, name, value: take(self, name, value * 0.9))
    model = many_paths(tmp_path)
    problem = problem_of(model, both(*reference.devices()))
    schedule = alternating(problem, "cpu:0", "reference:0")
    run = execute(problem, schedule, RunOptions(steps=1), model=model, baselines=False)
    assert run.outputs_match is False


def test_only_what_crosses_is_exchanged(reference, tmp_path):
    model = diamond(tmp_path)
    problem = problem_of(model, both(*reference.devices()))
    names = {op.kind: op.name for op in problem.kernels.ops}
    schedule = Schedule(
        (
            Segment("cpu:0", (names["Exp"],)),
            Segment("cpu:1", (names["Sin"],)),
            Segment("reference:0", (names["Mul"],)),
            Segment("cpu:0", (names["Cos"],)),
        )
    )
    compiled = reference.compile(model, problem.machine)
    parts = {"onnxruntime": backends.get("onnxruntime").compile(model, problem.machine)}
    joined = Joined.of(parts | {"reference": compiled}, problem.machine)
    program = joined.open(schedule, joined.feeds(0, {}))
    for i in range(4):
        program.run(i)
    (opened,) = compiled.opened
    assert opened.taken == ["a", "b"] and "y" not in opened.values
    alone = joined.open(Schedule((Segment("cpu:0", tuple(names.values())),)), joined.feeds(0, {}))
    alone.run(0)
    np.testing.assert_allclose(program.outputs()["y"], alone.outputs()["y"], rtol=1e-5)
    assert len(compiled.opened) == 1, "a schedule of one runtime opens no other"


def test_lanes_stay_where_the_program_that_runs_them_has_them(reference, tmp_path, monkeypatch):
    def numbered(_, lanes):
        devices = [replace(lane.device, core_ids=(40 + i,)) for i, lane in enumerate(lanes)]
        return [replace(lane, device=d) for lane, d in zip(lanes, devices, strict=True)]

    monkeypatch.setattr(OrtProgram, "pinned", numbered)
    problem = problem_of(diamond(tmp_path), both(*reference.devices()))
    compiled = backends.compiled(diamond(tmp_path), problem.machine)
    devices = [problem.machine.device(name) for name in ("cpu:0", "reference:0", "cpu:1")]
    kernels = [op.name for op in problem.kernels.ops]
    segments = [Segment(devices[i % 3].name, (name,)) for i, name in enumerate(kernels)]
    program = compiled.open(Schedule(tuple(segments)), compiled.feeds(0, {}))
    lanes = [Lane(device, (i,), ((),)) for i, device in enumerate(devices)]
    found = program.pinned(lanes)
    assert [lane.segments for lane in found] == [(0,), (1,), (2,)]
    assert [lane.device.core_ids for lane in found] == [(40,), devices[1].core_ids, (41,)]


def test_a_pipeline_of_two_runtimes(reference, tmp_path):
    model = many_paths(tmp_path)
    machine = both(*reference.devices())
    problem = replace(problem_of(model, machine), objective="throughput")
    order = [op.name for op in problem.kernels.ops]
    half = len(order) // 2
    schedule = Schedule(
        (Segment("reference:0", tuple(order[:half])), Segment("cpu:1", tuple(order[half:])))
    )
    found = stream(problem, schedule, StreamOptions(samples=12), model=model, baselines=False)
    assert found.run.outputs_match and found.num_outputs > 12 and found.distinct_outputs > 1


def test_each_device_is_profiled_by_its_own_runtime(reference, tmp_path, monkeypatch):
    measure_briefly(monkeypatch)
    model = many_paths(tmp_path)
    machine = both(*reference.devices())
    profile = kernels.profile(model, machine)
    assert {op.name for op in profile.kernels.ops} == {op.name for op in model.graph.ops}
    assert all(s is not None and s > 0 for s in profile.step_s) and len(profile.step_s) == 3
    times_s = np.array(profile.compute_s, dtype=float)
    assert times_s.shape == (9, 3) and np.isfinite(times_s).all()
    assert (times_s[:, 0] == times_s[:, 1]).all() and (times_s[:, 0] != times_s[:, 2]).any()
    problem = make_problem(model, machine, profile)
    schedule = random_schedule(problem, np.random.default_rng(1))
    assert execute(problem, schedule, RunOptions(steps=2), model=model).outputs_match


class OrtTwin(OnnxRuntime):
    """onnxruntime under another name."""

    name = "twin"

    def devices(self):
        return (replace(two_lanes().devices[1], name="twin:0", runtime="twin"),)


def twins(twin):
    devices = (two_lanes().devices[0], *twin.devices())
    return Machine("twins", devices, nominal_links(devices))


@pytest.mark.parametrize("devices", [("cpu:0", "twin:0"), ("twin:0", "cpu:0")])
def test_values_of_every_kind_cross(registered, tmp_path, devices):
    """Halves, numbers without dimensions, texts, lists, and shapes that data decide."""
    make, number = helper.make_node, TensorProto
    nodes = [
        make("Cast", ["x"], ["half"], name="half", to=number.FLOAT16),
        make("Transpose", ["half"], ["turned"], name="turned"),
        make("Cast", ["turned"], ["full"], name="full", to=number.FLOAT),
        make("ReduceMax", ["full"], ["most"], name="most", keepdims=0),
        make("Div", ["full", "most"], ["share"], name="share"),
        make("NonZero", ["share"], ["where"], name="where"),
        make("Cast", ["where"], ["numbers"], name="numbers", to=number.FLOAT),
        make("ReduceSum", ["numbers"], ["sum"], name="sum", keepdims=0),
        make("SplitToSequence", ["share"], ["rows"], name="rows", axis=0),
        make("ConcatFromSequence", ["rows"], ["again"], name="again", axis=0),
        make("Cast", ["again"], ["text"], name="text", to=number.STRING),
        make("Cast", ["text"], ["read"], name="read", to=number.FLOAT),
        make("Mul", ["read", "sum"], ["y"], name="y"),
    ]
    model = saved(tmp_path, nodes, {"x": [4, 8]}, {"y": [8, 4]})
    problem = problem_of(model, twins(registered(OrtTwin())))
    assert len(problem.kernels.ops) == len(nodes)
    schedule = alternating(problem, *devices)
    run = execute(problem, schedule, RunOptions(steps=2), model=model, baselines=False)
    assert run.outputs_match and set(run.actual_devices) == set(devices)


def test_types_that_arrays_lack_stay_with_one_runtime(registered, tmp_path):
    nodes = [
        helper.make_node("Cast", ["x"], ["short"], name="short", to=TensorProto.BFLOAT16),
        helper.make_node("Cast", ["short"], ["y"], name="y", to=TensorProto.FLOAT),
        helper.make_node("Exp", ["y"], ["z"], name="z"),
    ]
    model = saved(tmp_path, nodes, {"x": [4]}, {"z": [4]})
    problem = problem_of(model, twins(registered(OrtTwin())))
    with pytest.raises(ValueError, match=r"Value 'short' \(.*bfloat16.*\) cannot cross between"):
        execute(problem, alternating(problem, "twin:0", "cpu:0"), model=model)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "sample", either(["onnx-squeezenet"], ["onnx-squeezenet", "onnx-shufflenet"])
)
def test_a_network_over_onnxruntime_under_two_names(registered, sample):
    model = load(sample)
    problem = problem_of(model, twins(registered(OrtTwin())))
    schedule = random_schedule(problem, np.random.default_rng(0))
    assert len(schedule.segments) > 2
    run = execute(problem, schedule, RunOptions(steps=2), model=model, baselines=False)
    assert run.outputs_match and set(run.actual_devices) == {"cpu:0", "twin:0"}


def refused(*said, model, machine):
    with pytest.raises(ValueError) as caught:
        backends.compiled(model, machine)
    text = str(caught.value)
    assert all(part in text for part in said) and "; choose devices of" in text and "\n" not in text


def test_a_runtime_of_another_format_is_refused_before_anything_is_measured(tmp_path):
    lane = replace(two_lanes().devices[1], runtime="torch", provider="cpu")
    devices = (two_lanes().devices[0], lane)
    machine = Machine("mixed", devices, nominal_links(devices))
    model = diamond(tmp_path)
    said = "'mixed' has devices of onnxruntime and torch, but torch does not run 'small', whose"
    with pytest.raises(ValueError, match=said):
        require_present(model, machine)
    refused(said, "choose devices of onnxruntime.", model=model, machine=machine)
    assert {d.runtime for d in for_format(machine, "onnx").devices} == {"onnxruntime"}


def test_other_kernels_are_refused(reference, tmp_path, monkeypatch):
    model, machine = diamond(tmp_path), both(*reference.devices())
    compile_ = type(reference).compile

    def renamed(self, model, machine):
        found = compile_(self, model, machine)
        (first, *rest), tensors = found.kernels.ops, found.kernels.tensors
        to = {first.name: "exp and sin"}
        found.kernels = replace(
            found.kernels,
            ops=(replace(first, name="exp and sin"), *rest),
            tensors=tuple(
                replace(
                    t,
                    producer=to.get(t.producer, t.producer),
                    consumers=tuple(to.get(c, c) for c in t.consumers),
                )
                for t in tensors
            ),
        )
        return found

    monkeypatch.setattr(type(reference), "compile", renamed)
    said = (
        "onnxruntime and reference make different kernels of 'small' (only onnxruntime has 'exp')"
    )
    refused(said, model=model, machine=machine)

    def rewired(self, model, machine):
        found = compile_(self, model, machine)
        tensors = (replace(t, is_output=True) for t in found.kernels.tensors)
        found.kernels = replace(found.kernels, tensors=tuple(tensors))
        return found

    monkeypatch.setattr(type(reference), "compile", rewired)
    refused("make different kernels", "goes other ways", model=model, machine=machine)


def test_a_runtime_that_exchanges_nothing_is_refused(reference, tmp_path, monkeypatch):
    compiled = sys.modules[type(reference).__module__].ReferenceCompiled
    monkeypatch.delattr(compiled, "exchanges")
    model, machine = diamond(tmp_path), both(*reference.devices())
    refused("reference exchanges no values of 'small'", model=model, machine=machine)


def test_a_value_that_cannot_cross_is_named(reference, tmp_path, monkeypatch):
    compiled = sys.modules[type(reference).__module__].ReferenceCompiled
    monkeypatch.setattr(compiled, "exchanges", lambda self, tensor: tensor.name != "b")
    model = diamond(tmp_path)
    problem = problem_of(model, both(*reference.devices()))
    said = "Value 'b' .float32. cannot cross between onnxruntime and reference, for reference"
    kernels_on = (("cpu:0", "sin"), ("cpu:0", "exp"), ("reference:0", "mul"), ("cpu:0", "cos"))
    crossed = Schedule(tuple(Segment(device, (name,)) for device, name in kernels_on))
    with pytest.raises(ValueError, match=said):
        execute(problem, crossed, model=model)
    split = Schedule((Segment("reference:0", ("exp",)), Segment("cpu:0", ("sin", "mul", "cos"))))
    assert execute(problem, split, RunOptions(steps=1), model=model).outputs_match


def test_this_computer_has_what_a_new_runtime_offers(reference):
    machine = local_machine(1)
    assert machine.devices[0].name == "cpu:0"
    assert machine.device("reference:0").runtime == "reference"
    assert {"onnxruntime", "onnx"} <= dict(machine.libraries).keys()
    assert not backends.emulated(machine.devices) and missing_devices(machine) == ()
    assert for_format(machine, "onnx") is machine
    alone = load_machine("local:onnxruntime")
    assert {d.runtime for d in alone.devices} == {"onnxruntime"}
    assert [d.name for d in load_machine("local:reference").devices] == ["reference:0"]
    assert "reference:0" not in for_format(machine, "torch").index
    away = Device("reference:9", "cpu", "reference", "numpy")
    assert dict(missing_devices(both(away))) == {
        "reference:9": "this computer has no numpy that works"
    }


def test_what_is_emulated_or_offered_twice_is_no_device_of_this_computer(registered):
    class Copycat(type(backends.get("null"))):
        name, emulated, format = "copycat", False, "onnx"

        def devices(self):
            return tuple(Device(f"{n}:0", "gpu", self.name, n) for n in ("cpu", "cat"))

    before = local_machine(1)
    registered(Copycat())
    devices = local_machine(1).devices
    assert not any(d.runtime == "null" for d in devices)
    assert [d.name for d in devices] == [*before.index, "cat:0"]
    assert devices[0] == before.devices[0]


def test_links_are_timed_by_the_device_s_own_runtime(registered, monkeypatch):
    class Abroad(OnnxRuntime):
        name = "abroad"
        tells_latency = True

        def devices(self):
            return tuple(Device(f"abroad:{i}", "gpu", self.name, "far") for i in range(2))

        def copy_seconds(self, src, dst, sizes):
            assert self.name in (src.runtime, dst.runtime)
            if src.on_host or dst.on_host:
                return [1e-3 + size / 1e8 for size in sizes]
            return None

    abroad = registered(Abroad())
    monkeypatch.setattr(
        "profiling.backends._ort.links.copy_seconds", lambda *_: pytest.fail("not its device")
    )
    measure_briefly(monkeypatch)
    machine = both(*abroad.devices())
    found = {(k.src, k.dst): k for k in links.measure_links(machine).links}
    for lane in ("cpu:0", "cpu:1"):
        for ends in ((lane, "abroad:1"), ("abroad:1", lane)):
            assert found[ends].latency_s == pytest.approx(1e-3)
            assert found[ends].bytes_per_s == pytest.approx(1e8)
    assert found["abroad:0", "abroad:1"].latency_s == pytest.approx(2e-3), "through the host"
    Abroad.tells_latency = False
    stated = {(k.src, k.dst): k.latency_s for k in machine.links}
    found = {(k.src, k.dst): k for k in links.measure_links(machine).links}
    assert found["cpu:0", "abroad:0"].latency_s == stated["cpu:0", "abroad:0"]
    assert found["cpu:0", "abroad:0"].bytes_per_s == pytest.approx(1e8)


class TorchTwin(Torch):
    name = "twin"


def torch_machine(*, accelerators: bool) -> Machine:
    """Lanes of PyTorch and of its twin; with `accelerators` each has one of its own, too."""
    lanes = [
        replace(d, runtime=runtime, provider="cpu")
        for d, runtime in zip(two_lanes().devices, ("torch", "twin"), strict=True)
    ]
    more = [Device(f"pretend:{r}", "gpu", r, "pretend") for r in ("torch", "twin") if accelerators]
    devices = (*lanes, *more)
    return Machine("twins", devices, nominal_links(devices))


@pytest.mark.parametrize("speed", [{}, {"copy_s": 0.002}, {"compute_s": 0.004}])
@pytest.mark.parametrize("accelerators", [False, True])
def test_pytorch_under_two_names(registered, monkeypatch, accelerators, speed):
    places = put_in_place(monkeypatch, lambda name: Pretend(**speed))
    registered(TorchTwin())
    model = network("inference")
    problem = problem_of(model, torch_machine(accelerators=accelerators))
    used = set()
    for seed in range(3):
        schedule = random_schedule(problem, np.random.default_rng(seed))
        run = execute(
            problem, schedule, RunOptions(steps=3, seed=seed), model=model, baselines=False
        )
        assert run.outputs_match, (seed, schedule)
        used.update(run.actual_devices)
    assert used == set(problem.machine.index)
    assert accelerators is bool(places) and all(p.taken and p.given for p in places.values())


def test_a_state_stays_with_one_runtime(registered):
    registered(TorchTwin())
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    model = pl.from_torch(module, torch.rand(2, 4), training=True, loss=torch.sum)
    refused("torch exchanges no values of", model=model, machine=torch_machine(accelerators=False))


def test_what_is_open_is_closed_where_another_runtime_cannot_open(reference, tmp_path, monkeypatch):
    closed, close = [], OrtProgram.close
    monkeypatch.setattr(OrtProgram, "close", lambda self: (closed.append(self), close(self)))
    model = diamond(tmp_path)
    problem = problem_of(model, both(*reference.devices()))

    def refused(*arguments):
        raise MemoryError("no room")

    made = sys.modules[type(reference).__module__].ReferenceCompiled
    monkeypatch.setattr(made, "open", refused)
    joined = backends.compiled(model, problem.machine)
    with pytest.raises(MemoryError, match="no room"):
        joined.open(alternating(problem, "cpu:0", "reference:0"), joined.feeds(0, {}))
    assert len(closed) == 1
