"""A placed PyTorch program by itself: the same to the bit, and nothing of the studio in it."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

import placement as pl
from placement.core.machine import Device, Link, Machine
from placement.exporters import exporter, write
from placement.exporters._torch import layout as _torch_layout
from placement.exporters._torch.text import Literals, literal
from placement.exporters.base import Export
from profiling import backends
from tests.exporters.bundles import script, unpacked
from tests.exporters.exports import export_of, hostile_model
from tests.exporters.torch_models import Attending, Rereading, placed, training, with_gpus
from tests.profiling.live import problem_of

STEPS = 3
# Runs scripts one after another where nothing of the studio can be imported.
ALONE = """
import json, os, runpy, sys, traceback
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("placement", "profiling", "pages"):
            raise ImportError(f"{name} belongs to the studio")
sys.meta_path.insert(0, Blocked())
for command in json.loads(sys.argv[1]):
    print("BEGIN", command[0], flush=True)
    sys.argv = command
    os.chdir(os.path.dirname(command[0]))
    ended = ""
    try:
        runpy.run_path(command[0], run_name="__main__")
    except SystemExit as exit:
        ended = f"exit {exit.code}" if exit.code else ""
    except BaseException:
        ended = traceback.format_exc()
    print("END", json.dumps(ended), flush=True)
"""


@dataclass(frozen=True)
class Ran:
    """An export, its folder, what its script printed and how it failed, if it did."""

    export: Export
    folder: Path
    said: str
    failed: str


def alone(options_of):
    """What the `step.py` of each folder prints away from the studio, and how it failed, or "".

    All are run by one process, of which a start takes longer than a step of small models. One that
    fails leaves the others alone, unless it ends the process.
    """
    commands = [[str(folder / "step.py"), *map(str, o)] for folder, o in options_of.items()]
    found = subprocess.run(
        [sys.executable, "-I", "-c", ALONE, json.dumps(commands)],
        env={},
        capture_output=True,
        text=True,
        check=False,
    )
    parts = re.split(r"^BEGIN (.*)$", found.stdout, flags=re.M)[1:]
    printed = dict(zip(parts[::2], parts[1::2], strict=True))
    # Of a script with which the process ended, and of those after it, there is no end.
    cut = json.dumps(f"The process ended with status {found.returncode}.")
    ran = {}
    for folder in options_of:
        said, _, ended = printed.get(str(folder / "step.py"), "").partition("\nEND ")
        failed = json.loads(ended or cut)
        ran[folder] = said, f"{failed}\n{found.stderr}" if failed else ""
    return ran


def unplaced(export):
    """Losses of some steps of the captured graph on one lane, and the state after them."""
    model, machine = export.model, export.problem.machine
    compiled = backends.usable("torch").compile(model, machine)
    program = compiled.unplaced(machine.devices[0], compiled.feeds(0, {}))
    losses = []
    for number in range(STEPS):
        if number:
            program.advance()
        program.run(0)
        outputs = program.outputs()
        losses.append(outputs.pop("loss"))
    return losses, outputs


def check_same(export, losses, state):
    """Losses and state, by name, against those of three steps of the captured graph."""
    expected_losses, expected = unplaced(export)
    assert losses == expected_losses
    differ = [name for name in expected if not np.array_equal(state[name], expected[name])]
    assert not differ


WORST = "\"\"\"\nabort()\n'''"


def of_several_ops():
    """A step of which kernels run several ops."""
    torch.manual_seed(0)
    model = pl.from_torch(Rereading(), torch.randn(3, 5), training=True, optimizer="adam")
    problem = problem_of(model, pl.machine_for(model, pl.machine("two-lanes")))
    assert len(problem.kernels.ops) < len(model.graph.ops)
    devices = np.random.default_rng(1).integers(0, 2, problem.num_units)
    return Export(model, problem, problem.placement_of(devices), "both")


def of_worst_names():
    """Inference by modules with the worst names there are."""
    module = nn.Sequential()
    module.add_module(WORST, nn.Linear(4, 4))
    module.add_module("class", nn.Linear(4, 4))
    return placed(pl.from_torch(module.eval(), torch.randn(2, 4), name=WORST), 1)


@pytest.fixture(scope="module")
def run_alone(tmp_path_factory):
    """By name what became of an export whose script was run away from the studio."""
    root = tmp_path_factory.mktemp("alone")
    exports = {
        "seeing": placed(training("seeing"), 1),
        "attending": placed(training("attending"), 2),
        "remembering": placed(training("remembering"), 1),
        "several ops": of_several_ops(),
        "worst names": of_worst_names(),
    }
    options_of = {}
    for name, export in exports.items():
        folder = root / name
        write(exporter("torch-step"), export, folder)
        options_of[folder] = ["--steps", STEPS]
        if name != "worst names":
            options_of[folder] += ["--save", folder / "after.npz"]
    ran = alone(options_of)
    return {name: Ran(export, root / name, *ran[root / name]) for name, export in exports.items()}


def check_alone(ran):
    """A step on two lanes, run where nothing of the studio can be imported, is the same."""
    assert not ran.failed, ran.failed
    about = json.loads((ran.folder / "step.json").read_text())
    assert len(about["lanes"]) == 2
    losses = [np.float32(value) for value in re.findall(r"^step \d+: loss (\S+)$", ran.said, re.M)]
    with np.load(ran.folder / "after.npz", allow_pickle=False) as after:
        check_same(ran.export, losses, {row["name"]: after[row["key"]] for row in about["state"]})


@pytest.mark.parametrize("name", ["seeing", "attending", "remembering"])
def test_a_training_step_runs_alone_and_is_the_captured_graph_to_the_bit(name, run_alone):
    check_alone(run_alone[name])


def test_a_step_whose_kernels_run_several_ops_is_the_same(run_alone):
    check_alone(run_alone["several ops"])


@pytest.mark.parametrize("number", [1, 2, 3])
def test_values_are_copied_where_devices_have_memory_of_their_own(number, tmp_path, monkeypatch):
    """Two lanes that torch tells apart stand for devices of two kinds."""
    words = {"cpu:0": "cpu", "cpu:1": "cpu:0"}
    monkeypatch.setattr(_torch_layout, "torch_device", lambda machine, device: words[device.name])
    export = placed(training("seeing"), number)
    folder = tmp_path / "step"
    write(exporter("torch-step"), export, folder)
    text = (folder / "segments.py").read_text()
    assert ".to('cpu:0')" in text and ".to('cpu')" in text
    with script(folder / "step.py").PlacedStep(folder) as found:
        inputs = found.seeded_inputs()
        losses = [found.step(inputs)["loss"].numpy() for _ in range(STEPS)]
        check_same(export, losses, {name: value.numpy() for name, value in found.state.items()})


def test_inference_in_a_program_of_ones_own(tmp_path):
    torch.manual_seed(0)
    module = Attending().eval()
    export = placed(pl.from_torch(module, torch.randn(2, 5, 8)), 1)
    folder = unpacked("torch-step", export, tmp_path)
    with script(folder / "step.py").PlacedStep(folder) as found:
        for _ in range(2):
            x = torch.randn(2, 5, 8)
            (value,) = found.step({"x": x}).values()
            with torch.no_grad():
                assert torch.allclose(value, module(x), atol=1e-6)
        assert {*module.state_dict()} == {*found.state}
        with pytest.raises(ValueError, match=r"'x' has shape \(5, 8\)"):
            found.step({"x": x[0]})
        with pytest.raises(ValueError, match="lack 'x'"):
            found.step({})
        with pytest.raises(ValueError, match="no input 'y'; use x"):
            found.step({"x": x, "y": x})
    with pytest.raises(RuntimeError, match="closed"):
        found.step({"x": x})


def test_a_segment_that_fails_ends_the_step_with_its_error(tmp_path):
    folder = unpacked("torch-step", placed(training("attending"), 2), tmp_path)
    segments = (folder / "segments.py").read_text()
    broken = segments.replace("def segment_1(v):\n", "def segment_1(v):\n    raise OSError('x')\n")
    (folder / "segments.py").write_text(broken)
    found = script(folder / "step.py").PlacedStep(folder)
    with pytest.raises(OSError, match="x"):
        found.step(found.seeded_inputs())


def test_on_gpus_values_are_sent_and_made_there(tmp_path):
    """Not run: there are none here. The text must compile and name each device."""
    model = training("remembering")
    folder = tmp_path / "step"
    write(exporter("torch-step"), placed(model, 1, with_gpus()), folder)
    text = (folder / "segments.py").read_text()
    compile(text, "segments.py", "exec")
    for device in ("cuda:0", "cuda:1", "cpu"):
        assert f".to('{device}')" in text
    lanes = json.loads((folder / "step.json").read_text())["lanes"]
    device_of = {number: lane["device"] for lane in lanes for number in lane["segments"]}
    bodies = re.split(r"^def segment_(\d+)\(v\):$", text, flags=re.M)[1:]
    for number, body in zip(bodies[::2], bodies[1::2], strict=True):
        made_on = set(re.findall(r"torch\.device\('([^']+)'\)", body))
        sent_to = set(re.findall(r"\.to\('([^']+)'\)", body))
        assert made_on | sent_to <= {device_of[int(number)]}
    assert "torch.device('cuda" in text, "what an op makes from nothing is made where it runs"


def test_a_view_of_what_a_gpu_makes_may_copy(tmp_path):
    model = training("attending")
    for machine, word in ((None, "view"), (with_gpus(), "reshape")):
        folder = tmp_path / word
        write(exporter("torch-step"), placed(model, 1, machine), folder)
        found = set(
            re.findall(r"ops\.aten\.(view|reshape)\.", (folder / "segments.py").read_text())
        )
        assert found == {word}


def test_a_number_that_another_device_reads_is_there_for_all_its_segments():
    program = SimpleNamespace(nodes={"size": SimpleNamespace(meta={"val": 3})})
    layout = SimpleNamespace(read=lambda name, segment: (1, 4), device_of=("cuda:0",))
    assert Literals(None, program, layout, 0).read("size") == "v[4] = v[1]"


def test_an_op_of_the_cpu_alone_is_refused_elsewhere():
    class Fused(nn.Module):
        def __init__(self):
            super().__init__()
            self.query = nn.Linear(8, 8)

        def forward(self, x):
            attention = nn.functional.scaled_dot_product_attention
            return attention(self.query(x), x, x).square().mean()

    model = pl.from_torch(Fused(), torch.randn(2, 2, 5, 8), training=True)
    found = exporter("torch-step")
    assert found.missing(placed(model, 1)) == ""
    assert "for the CPU alone" in found.missing(placed(model, 1, with_gpus()))


def test_what_is_missing_is_told_of_the_placement_that_is_written():
    """An op that its group brings back to the CPU is no reason to refuse."""
    names, speed = ("cpu:0", "npu:0"), {"flops_per_s": 1e9, "memory_bytes_per_s": 1e9}
    devices = tuple(Device(n, n.partition(":")[0], **speed) for n in names)
    links = tuple(Link(a, b, 1e-5, 1e9) for a in names for b in names if a != b)
    model, found = training("seeing"), exporter("torch-step")
    whole = placed(model, 0, Machine("other", devices, links))
    ops = whole.problem.graph.ops
    group = max(whole.problem.ops_of_unit, key=len)
    assert len(group) > 2, "an op and two that it moves with"
    split = {**whole.placement.device_of, ops[group[0]].name: "npu:0"}
    assert found.missing(replace(whole, placement=replace(whole.placement, device_of=split))) == ""
    every = dict.fromkeys(split, "npu:0")
    told = found.missing(replace(whole, placement=replace(whole.placement, device_of=every)))
    assert "npu:0" in told


def test_names_never_become_code(run_alone):
    """They stand in the JSON file alone."""
    ran = run_alone["worst names"]
    assert "abort" not in (ran.folder / "segments.py").read_text()
    rows = json.loads((ran.folder / "step.json").read_text())["state"]
    assert any("abort" in row["name"] for row in rows)
    assert not ran.failed, ran.failed
    assert "step 1: " in ran.said


def test_literals_are_what_they_say_and_anything_else_is_refused():
    values = [None, True, -3, 2.5, float("inf"), -1e-300, 1j, "a'\n\"", [1, [2.0, None]], (1,), ()]
    values += [torch.bfloat16, torch.strided, torch.channels_last]
    for value in values:
        assert eval(literal(value, "cpu"), {"torch": torch}) == value
    assert np.isnan(eval(literal(float("nan"), "cpu")))
    assert literal(torch.device("cpu"), "cuda:1") == "torch.device('cuda:1')"
    with pytest.raises(ValueError, match="with a slice"):
        literal([slice(None)], "cpu")


def test_what_is_not_of_pytorch_is_refused_in_a_sentence(tmp_path):
    found = exporter("torch-step")
    assert "is not a PyTorch model" in found.missing(export_of(pl.load("onnx-squeezenet")))
    assert "no executable side" in found.missing(export_of(hostile_model()))

    @torch.library.custom_op("studio_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_fake(torch.empty_like)

    class Foreign(nn.Module):
        def forward(self, x):
            return twice(x)

    foreign = placed(pl.from_torch(Foreign().eval(), torch.randn(2)), 0)
    assert "twice" in found.missing(foreign)
    assert found.missing(placed(training("attending"), 1)) == ""
