"""A device map is one for the library that reads it, and says what it cannot say."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import placement as pl
from placement import loaders
from placement.core.machine import Device, Link, Machine
from placement.core.placement import Placement
from placement.core.violations import violations
from placement.exporters import Export, exporter
from placement.exporters._torch.model import torch_device
from placement.formats.torch import zoo
from placement.schedule.segments import make_schedule
from tests.exporters.exports import written
from tests.exporters.language_models import Speaking, by_module
from tests.exporters.torch_models import Attending, Scaled, placed, training, with_gpus
from tests.profiling.backends.test_torch_zoo import SMALL
from tests.thorough import either

NETWORKS = [s.name for s in loaders.samples() if s.name in {n.partition(":")[0] for n in SMALL}]
# Layers of attention with a table that two modules have, and layers that are called in turns.
FEW = ["gpt2", "rnnlm"]


class Nested(nn.Module):
    """Parameters of its own beside children, one of which is called twice, and a spare buffer."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))
        self.twice, self.last = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.register_buffer("spare", torch.zeros(3))

    def forward(self, x):
        return self.last(self.twice(self.twice(x * self.scale)))


def by_scope(model, device_of, default="cpu:0"):
    """A placement where the ops of some modules, by the start of their path, are elsewhere."""
    machine = with_gpus()
    names = {}
    for op in model.graph.ops:
        scope = op.scope.replace("/", ".")
        found = [device for start, device in device_of.items() if scope.startswith(start)]
        names[op.name] = found[-1] if found else default
    problem = pl.make_problem(model, machine)
    return Export(model, problem, Placement(model.graph.fingerprint, "gpus", names))


def test_every_gpu_is_another_one_whatever_it_is_called():
    gpus = [Device(n, "gpu", provider=p) for n, p in (("cuda:1", ""), ("a", "cuda"), ("b", "cuda"))]
    gpus += [Device("c", "gpu"), Device("d", "gpu", provider="xpu")]
    machine = Machine("mixed", (Device("cpu:0"), *gpus), ())
    words = [torch_device(machine, device) for device in machine.devices]
    assert words == ["cpu", "cuda:1", "cuda:0", "cuda:2", "cuda:3", "xpu:0"]


def map_of(export, folder):
    return json.loads(written("device-map", export, folder).read_text())


def accepted(module, device_map):
    """Whether accelerate takes a map without a word."""
    # Here and below: to import it takes a second of every process that collects this file.
    from accelerate.utils import check_device_map

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_device_map(module, device_map)


def device_in(device_map, name):
    """The device of a parameter: that of the longest path that it begins with."""
    words = name.split(".")
    paths = (".".join(words[:end]) for end in range(len(words) - 1, -1, -1))
    return next(device_map[path] for path in paths if path in device_map)


def readers(model):
    """Devices by label of the state that ops read, as (label, op) pairs."""
    program = model.executable
    for kernel in program.kernels:
        for value in program.reads(kernel):
            if value.name in program.state:
                yield program.labels[value.name], kernel.name


def short(device):
    return int(device[5:]) if device.startswith("cuda:") else "cpu"


@pytest.mark.thorough
@pytest.mark.parametrize("name", either(FEW, NETWORKS))
def test_every_network_of_the_zoo(name, tmp_path):
    """Dealt in two halves and at random; where a module is whole, its parameters are there too."""
    network = zoo.network_of(name)
    # Its modules are asked for by name, and nothing is computed.
    with torch.device("meta"):
        module, *_ = network.build({**network.SIZES, **SMALL[name]})
    model = pl.load(name, SMALL[name])
    ops = model.graph.ops
    halves = ["cuda:0" if i < len(ops) // 2 else "cuda:1" for i in range(len(ops))]
    dealt = np.random.default_rng(0).choice(["cpu:0", "cuda:0", "cuda:1"], len(ops)).tolist()
    problem = pl.make_problem(model, with_gpus())
    for devices in (halves, dealt):
        device_of = dict(zip((op.name for op in ops), devices, strict=True))
        export = Export(model, problem, Placement(model.graph.fingerprint, "gpus", device_of))
        found = map_of(export, tmp_path)
        accepted(module, found)
        wanted = {}
        for label, op in readers(model):
            wanted.setdefault(label.rpartition(".")[0], set()).add(short(device_of[op]))
        for label, _ in readers(model):
            devices_of_owner = wanted[label.rpartition(".")[0]]
            assert device_in(found, label) in devices_of_owner, label
            if len(devices_of_owner) > 1:
                assert "cannot divide" in exporter("device-map").note(export)


def test_modules_are_named_at_the_highest_level(tmp_path):
    module = Nested().eval()
    model = pl.from_torch(module, torch.randn(2, 4))
    whole = map_of(by_scope(model, {}, "cuda:1"), tmp_path)
    assert whole == {"": 1}
    accepted(module, whole)
    export = by_scope(model, {"last": "cuda:1"}, "cuda:0")
    parts = map_of(export, tmp_path)
    assert parts == {"": 0, "twice": 0, "last": 1}
    accepted(module, parts)
    assert exporter("device-map").note(export) == ""
    cpu = by_scope(model, {"last": "cuda:1"})
    assert map_of(cpu, tmp_path) == {"": "cpu", "twice": "cpu", "last": 1}
    assert "computes these modules on an accelerator" in exporter("device-map").note(cpu)


def test_what_modules_cannot_say_is_said(tmp_path):
    module = Attending().eval()
    model = pl.from_torch(module, torch.randn(2, 5, 8))
    export = by_scope(model, {"key": "cuda:1", "feed": "cuda:1"}, "cuda:0")
    accepted(module, map_of(export, tmp_path))
    said = exporter("device-map").note(export)
    assert "'the model itself' would get tensors from two devices at once" in said
    assert "divide" not in said


def test_a_module_whose_ops_are_on_two_devices_goes_with_its_parameters(tmp_path):
    module = nn.Sequential(Scaled(), Scaled()).eval()
    model = pl.from_torch(module, torch.randn(4))
    device_of = {op.name: f"cuda:{int(op.kind == 'relu')}" for op in model.graph.ops}
    problem = pl.make_problem(model, with_gpus())
    export = Export(model, problem, Placement(model.graph.fingerprint, "gpus", device_of))
    found = map_of(export, tmp_path)
    accepted(module, found)
    assert found == {"": 0}
    said = exporter("device-map").note(export)
    assert said.startswith("A device map cannot divide the work of one module: '0', '1' go where")


def test_the_library_places_the_parameters_so(tmp_path):
    """On the CPU alone, since there is nothing else here: the map is used, not only looked at."""
    from accelerate import dispatch_model

    module = Nested().eval()
    x = torch.randn(2, 4)
    expected = module(x)
    export = placed(pl.from_torch(module, x), 1)
    found = map_of(export, tmp_path)
    assert set(found.values()) == {"cpu"}
    assert exporter("device-map").note(export).startswith("The library accelerate knows one CPU")
    dispatched = dispatch_model(module, found, force_hooks=True)
    assert torch.equal(dispatched(x), expected)


def test_training_steps_and_other_models_are_refused_in_a_sentence():
    found = exporter("device-map")
    assert "for inference" in found.missing(placed(training("seeing"), 1))
    assert "is not a PyTorch model" in found.missing(placed(pl.load("onnx-squeezenet"), 1))


def with_streaming(model, device_of, default):
    """A placement on two accelerators that are too small, by the start of modules' paths."""
    machine = with_gpus()
    devices = tuple(d if d.on_host else replace(d, memory_bytes=100) for d in machine.devices)
    problem = pl.make_problem(model, replace(machine, devices=devices), offload=True)
    export = by_scope(model, device_of, default)
    return replace(export, problem=problem)


def test_the_library_computes_with_weights_that_stream(tmp_path):
    """Of an offload placement, with the CPU as the accelerator and the disk as host memory: two
    devices that the library has here. Only for a while are weights anything but promised."""
    from accelerate import dispatch_model

    torch.manual_seed(0)
    module, words = Speaking().eval(), torch.randint(0, 11, (1, 2))
    expected = module(words)
    model = pl.from_torch(module, words)
    speed = {"flops_per_s": 1e9, "memory_bytes_per_s": 1e9}
    gpu = Device("cuda:0", "gpu", provider="cuda", memory_bytes=12_500, **speed)
    links = (Link("cpu:0", "cuda:0", 1e-6, 1e9), Link("cuda:0", "cpu:0", 1e-6, 1e9))
    machine = Machine("small gpu", (Device("cpu:0", **speed), gpu), links)
    problem = pl.make_problem(model, machine, offload=True)
    streaming = {f"layers.{n}": "cuda:0-streamed" for n in (3, 4, 5)}
    export = replace(by_module(model, streaming, machine, "cuda:0"), problem=problem)
    assert violations(problem, make_schedule(problem, export.placement)) == ()
    found = map_of(export, tmp_path)
    assert set(found.values()) == {0, "cpu"}
    here = {path: "disk" if device == "cpu" else "cpu" for path, device in found.items()}
    dispatched = dispatch_model(
        module, here, main_device="cpu", offload_dir=str(tmp_path / "offloaded")
    )
    for name, parameter in dispatched.named_parameters():
        assert parameter.is_meta == (device_in(found, name) == "cpu"), name
    assert torch.equal(dispatched(words), expected)
    assert any(parameter.is_meta for parameter in dispatched.parameters()), "they left again"


def test_weights_that_stream_are_kept_on_the_cpu(tmp_path):
    """By accelerate itself: they are computed with on the device of the rest."""
    model = pl.from_torch(Nested().eval(), torch.randn(2, 4))
    export = with_streaming(model, {"last": "cuda:0-streamed"}, "cuda:0")
    found = map_of(export, tmp_path)
    assert found == {"twice": 0, "last.0": "cpu", "last.1": 0, "": 0}
    accepted(Nested(), found)
    note = exporter("device-map").note(export)
    assert "stream" not in note and "cannot divide" not in note
    other = with_streaming(model, {"last": "cuda:1-streamed"}, "cuda:0")
    assert "first of the map (cuda:0)" in exporter("device-map").note(other)
    step = exporter("torch-step").missing(export)
    assert "weights stream" in step
