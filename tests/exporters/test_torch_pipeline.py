"""Split points, read by torch.distributed.pipelining: its stages hold the ops placed there."""

import json
from collections import Counter

import pytest
import torch
from torch import nn

import placement as pl
from placement import loaders
from placement.exporters import exporter
from tests.exporters.exports import written
from tests.exporters.language_models import Speaking, content, in_layers, on_devices, speaking
from tests.exporters.torch_models import placed, training
from tests.loaders.test_huggingface import TINY

FORMAT = exporter("torch-pipeline")
# The library copies values of a class of its own that it has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")


class Residual(nn.Module):
    """Convolutions around which the input is added: no layers, no words."""

    def __init__(self):
        super().__init__()
        self.stem, self.body = nn.Conv2d(3, 8, 3, padding=1), nn.ModuleDict()
        for name in ("low", "middle", "high"):
            self.body[name] = nn.Sequential(
                nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 1)
            )
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = self.stem(x)
        for part in self.body.values():
            x = torch.relu(x + part(x))
        return self.head(x.mean((2, 3)))


class Twice(nn.Module):
    """One of two modules is called again."""

    def __init__(self):
        super().__init__()
        self.first, self.same = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.same(self.same(self.first(x)))


# An export of layers by themselves keeps this where one of the whole does not need it.
NO_WORK = ("contiguous",)


def ops_in(stage, path=""):
    """The ops of a stage as (module path, kind), but for parts of values and notes on types."""
    for node in stage.graph.nodes:
        if node.op == "call_module":
            inner = f"{path}.{node.target}".strip(".")
            yield from ops_in(stage.get_submodule(node.target), inner)
        elif node.op == "call_function":
            target = str(node.target)
            if "getitem" not in target and "_assert" not in target:
                kind = target.split(".")[1]
                if kind not in NO_WORK:
                    yield path, kind


def cut(module, example, found):
    """The module's stages as the library cuts them where the file says."""
    # To import it takes most of a second of every process that collects this file.
    from torch.distributed.pipelining import SplitPoint, pipeline

    points = {name: SplitPoint[point] for name, point in found["split_points"].items()}
    with torch.no_grad():
        return pipeline(module, (example,), split_spec=points)


def stages(module, example, export, folder):
    """The library's stages, each with the ops that the file's device of it was given."""
    found = content(written("torch-pipeline", export, folder))
    pipe = cut(module, example, found)
    assert pipe.num_stages == len(found["devices"])
    got: dict[str, Counter] = {}
    for number, device in enumerate(found["devices"]):
        got.setdefault(device, Counter()).update(ops_in(pipe.get_stage_module(number)))
    return got, pipe, found


def placed_on(export):
    """By device the ops that were placed there, by their modules, not by blocks."""
    wanted: dict[str, Counter] = {}
    for op, kernel in zip(export.model.graph.ops, export.model.executable.kernels, strict=True):
        device = export.placement.device_of[op.name].replace("cpu:0", "cpu")
        if op.kind not in NO_WORK:
            path = kernel.meta["scope"].replace("/", ".")
            wanted.setdefault(device, Counter())[path, op.kind] += 1
    return wanted


def from_modules(model, device_of):
    """A placement that goes on to another device with the first op of each of these modules."""
    device, found = "cpu:0", {}
    for kernel in model.executable.kernels:
        path = kernel.meta["scope"].replace("/", ".") + "."
        device = next((d for m, d in device_of.items() if path.startswith(f"{m}.")), device)
        found[kernel.name] = device
    return on_devices(model, found)


def tiny_llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    rest = {key: value for key, value in TINY.items() if key not in ("model_type", "architectures")}
    return LlamaForCausalLM(LlamaConfig(**rest, use_cache=False)).eval()


def test_stages_of_a_llama_hold_the_ops_placed_there(tmp_path):
    """The file of a configuration, that has no weights, cuts the model that has them, too."""
    module, words = tiny_llama(), torch.randint(0, 97, (1, 8))
    with torch.no_grad():
        expected = module(words).logits
    with_weights = in_layers("c01", pl.from_torch(module, words), "model.layers")
    (tmp_path / "config.json").write_text(json.dumps(TINY))
    weightless = loaders.load(str(tmp_path / "config.json"), {"length": 8})
    export = in_layers("c01", weightless, "model.layers")
    got, pipe, found = stages(module, words, export, tmp_path)
    assert found["split_points"] == {"model.layers.1": "BEGINNING", "model.layers.2": "BEGINNING"}
    same = content(written("torch-pipeline", with_weights, tmp_path))
    assert {**same, "model": found["model"]} == found, "which cuts it into the same stages"
    for each in (export, with_weights):
        assert got == placed_on(each) and not FORMAT.note(each)
    with torch.no_grad():
        outputs = pipe(words)
    assert torch.equal(outputs[0] if isinstance(outputs, tuple) else outputs, expected)


def test_stages_of_another_network_hold_the_ops_placed_there(tmp_path):
    torch.manual_seed(0)
    module, image = Residual().eval(), torch.randn(2, 3, 8, 8)
    expected = module(image)
    model = pl.from_torch(module, image)
    export = from_modules(model, {"body.middle": "cuda:0", "body.high.3": "cuda:1"})
    got, pipe, found = stages(module, image, export, tmp_path)
    assert list(found["split_points"]) == ["body.middle", "body.high.3"]
    assert got == placed_on(export) and not FORMAT.note(export)
    assert torch.equal(pipe(image)[0], expected)


def test_what_stages_cannot_say_is_said(tmp_path):
    model = speaking()
    inside = [op.name for op in model.graph.ops if op.scope == "layers/2"][1:3]
    export = in_layers("001111")
    device = {**export.placement.device_of, **dict.fromkeys(inside, "cuda:0")}
    said = FORMAT.note(on_devices(model, device))
    assert said.startswith("A stage begins where a module is called, so 2 ops are in another")
    again = in_layers("001100")
    found = content(written("torch-pipeline", again, tmp_path))
    assert found["devices"] == ["cuda:0", "cuda:1", "cuda:0"]
    assert FORMAT.note(again).startswith("cuda:0 has several stages, which takes a schedule")
    cut(Speaking().eval(), torch.randint(0, 11, (2, 5)), found)


@pytest.mark.parametrize("saved", [False, True])
def test_a_module_that_is_called_again_begins_no_stage(saved, tmp_path):
    module, x = Twice().eval(), torch.randn(2, 4)
    if saved:
        torch.export.save(torch.export.export(module, (x,)), tmp_path / "twice.pt2")
        model = loaders.load(str(tmp_path / "twice.pt2"))
    else:
        model = pl.from_torch(module, x)
    export = from_modules(model, {"same": "cuda:0"})
    found = content(written("torch-pipeline", export, tmp_path))
    assert found == {"model": model.graph.name, "split_points": {}, "devices": ["cuda:0"]}
    assert FORMAT.note(export).endswith(
        "so 1 op with 80 bytes of weights is in another stage than placed."
    )


def test_training_steps_and_other_models_are_refused_in_a_sentence():
    assert "is a training step" in FORMAT.missing(placed(training("attending"), 1))
    assert "is not a PyTorch model" in FORMAT.missing(placed(pl.load("onnx-squeezenet"), 1))
