"""Formats that divide a language model by its layers, against the rules of who reads them."""

import json
from itertools import accumulate

import numpy as np
import pytest

import placement as pl
from placement import loaders
from placement.core.graph import Graph, Op, Tensor
from placement.core.model import Model
from placement.exporters import exporter
from placement.exporters._layers import layers_of
from tests.exporters.exports import export_of, written
from tests.exporters.language_models import by_module, content, in_layers, speaking
from tests.exporters.torch_models import inference, placed, training, with_gpus
from tests.loaders.test_huggingface import TINY

VLLM, LLAMA = exporter("vllm-layers"), exporter("llama-cpp-split")


def partition_of(text, num_layers, rank, size):
    """The layers of a rank as vLLM reads its variable (`get_pp_indices`)."""
    counts = [int(count) for count in text.split(",")]
    assert len(counts) == size and sum(counts) == num_layers
    return sum(counts[:rank]), sum(counts[: rank + 1])


def assigned(arguments, num_layers, num_devices):
    """Per layer and for the output the device by llama.cpp's rule; None is the CPU."""
    given = dict(zip(arguments[::2], arguments[1::2], strict=True))
    on_gpu = int(given["--n-gpu-layers"])
    if not on_gpu:
        return [None] * (num_layers + 1)
    shares = np.array([float(n) for n in given["--tensor-split"].split(",")], dtype=np.float32)
    assert len(shares) == num_devices == len(given["--device"].split(","))
    splits = np.cumsum(shares, dtype=np.float32) / shares.sum(dtype=np.float32)
    first = max(num_layers + 1 - on_gpu, 0)
    count = min(on_gpu, num_layers + 1)
    found = []
    for layer in range(num_layers + 1):
        if layer < first or layer - first >= count:
            found.append(None)
        else:
            place = np.float32(layer - first) / np.float32(count)
            found.append(int(np.searchsorted(splits, place, side="right")))
    return found


@pytest.mark.parametrize("devices", ["000000", "001122", "100000", "022211"])
def test_ranges_are_read_as_placed(devices, tmp_path):
    found = content(written("vllm-layers", in_layers(devices), tmp_path))
    size = found["pipeline_parallel_size"]
    for rank in found["ranks"]:
        read = partition_of(found["VLLM_PP_LAYER_PARTITION"], 6, rank["rank"], size)
        assert read == (rank["start_layer"], rank["end_layer"])
        assert {devices[i] for i in range(*read)} == {rank["device"].removeprefix("cuda:")}
    assert (found["layers"], found["num_hidden_layers"]) == ("layers", 6)
    in_order = list(dict.fromkeys(devices)) == sorted(set(devices))
    assert VLLM.note(in_layers(devices)).startswith("" if in_order else "Ranks take devices in")


@pytest.mark.parametrize("devices", ["000000", "001122", "cccccc", "ccc012", "c22211", "cccccc"])
def test_shares_divide_the_layers_as_placed(devices, tmp_path):
    found = content(written("llama-cpp-split", in_layers(devices), tmp_path))
    names = [row["device"] for row in found["accelerators"]]
    read = assigned(found["arguments"], 6, len(names))
    words = ["c" if i is None else names[i].removeprefix("cuda:") for i in read]
    assert "".join(words) == devices + devices[-1], "the output is where the last layer is"
    assert found["num_layers_on_cpu"] == devices.count("c")


def test_any_numbers_of_layers_are_shares_that_give_them(tmp_path):
    """As many layers and accelerators as anybody has, cut at random."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        num_layers = int(rng.integers(2, 400))
        num_parts = int(rng.integers(2, min(17, num_layers + 1)))
        ends = np.sort(rng.choice(np.arange(1, num_layers), num_parts - 1, replace=False))
        counts = np.diff([0, *ends, num_layers]).tolist()
        counts[-1] += 1
        arguments = ["--n-gpu-layers", str(sum(counts)), "--tensor-split"]
        arguments += [",".join(map(str, counts)), "--device", ",".join("x" * num_parts)]
        read = assigned(arguments, num_layers, num_parts)
        limits = list(accumulate(counts))
        assert read == [sum(i >= end for end in limits) for i in range(num_layers + 1)], counts


def test_devices_are_named_as_llama_cpp_lists_them(tmp_path):
    found = content(written("llama-cpp-split", in_layers("cc2211"), tmp_path))
    assert found["arguments"] == [
        *("--device", "CUDA2,CUDA1", "--split-mode", "layer"),
        *("--n-gpu-layers", "5", "--tensor-split", "2,3"),
    ]
    on_cpu = content(written("llama-cpp-split", in_layers("cccccc"), tmp_path))
    assert on_cpu["arguments"] == ["--device", "none", "--n-gpu-layers", "0"]


def test_layers_that_are_not_next_to_each_other_are_refused():
    apart = in_layers("001100")
    said = "layers 0 to 1 and layers 4 to 5 on 'cuda:0'; place its layers next to each other."
    assert VLLM.missing(apart).endswith(said) and LLAMA.missing(apart).endswith(said)
    behind = in_layers("00ccc1")
    assert "puts layers 2 to 4 there behind layers 0 to 1 on 'cuda:0'" in LLAMA.missing(behind)
    assert "on devices of one kind" in VLLM.missing(behind)
    assert not LLAMA.missing(in_layers("ccc001"))


def test_what_layers_cannot_say_is_said():
    halves = {"layers.0": "cuda:0", "layers.1": "cuda:1", "layers.0.feed.2": "cuda:1"}
    device_of = {"layers": "cuda:1", **halves, "words": "cuda:0"}
    export = by_module(speaking(), device_of, default="cuda:2")
    said = VLLM.note(export)
    assert "No layer is divided: 0 goes where most of it is placed." in said
    assert "2 ops of it are placed elsewhere" in said, "norm and head are on a third device"
    assert "llama.cpp reads the words on the CPU" in LLAMA.note(export)
    assert VLLM.note(in_layers("000111")) == ""


def test_lanes_of_the_cpu_are_one_device_for_llama_cpp(tmp_path):
    lanes = by_module(speaking(), {"layers.0": "cpu:0"}, pl.machine("two-lanes"), "cpu:1")
    assert "knows one CPU" in LLAMA.note(lanes)
    assert content(written("llama-cpp-split", lanes, tmp_path))["num_layers_on_cpu"] == 6
    assert content(written("vllm-layers", lanes, tmp_path))["VLLM_PP_LAYER_PARTITION"] == "1,5"


@pytest.mark.parametrize("found", [VLLM, LLAMA], ids=["vllm", "llama"])
def test_other_models_are_refused_in_a_sentence(found):
    for export in (export_of(loaders.load("onnx-squeezenet")), placed(inference())):
        assert "is no stack of numbered layers that reads words" in found.missing(export)
    assert "for inference" in found.missing(placed(training("seeing"), 1))


def test_a_configuration_has_its_layers(tmp_path):
    path = tmp_path / "tiny" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps({**TINY, "num_hidden_layers": 4}))
    model = loaders.load(str(path))
    export = in_layers("0111", model, "model.layers")
    found = content(written("vllm-layers", export, tmp_path))
    assert (found["layers"], found["VLLM_PP_LAYER_PARTITION"]) == ("model.layers", "1,3")
    assert not VLLM.note(export)


def graph_of(scopes, num_bytes=4):
    ops = tuple(Op(f"op{i}", "op", s, param_bytes=num_bytes) for i, s in enumerate(scopes))
    words = Tensor("words", None, ("op0",), 8, (1,), "int64")
    return Model(Graph("named", ops, (words,)))


def stack_of(*scopes):
    found = layers_of((graph := graph_of(scopes).graph), placed_on_one(graph))
    return None if found is None else (found.path, len(found.device_of), found.others)


def placed_on_one(graph):
    return pl.make_problem(Model(graph), with_gpus()).placement_of([0] * len(graph.ops))


def test_layers_are_told_from_what_else_is_numbered():
    experts = [f"model/layers/{n}/mlp/experts/{e}" for n in range(3) for e in range(2)]
    assert stack_of("model/embed", *experts) == ("model.layers", 3, ())
    dotted = [f"model/layers.{n}/attn" for n in range(3)]
    assert stack_of(*dotted) == ("model.layers", 3, ()), "as exporters to ONNX write it"
    tower = ["vision/blocks/0/mlp", "vision/blocks/1/mlp"]
    assert stack_of(*tower, *dotted) == ("model.layers", 3, ("vision.blocks",))
    inside = [f"vision/blocks/{n}/mlp/{m}" for n in range(2) for m in range(2)]
    assert stack_of(*dotted, *dotted, *inside) == ("model.layers", 3, ("vision.blocks",))
    assert stack_of("net/0/embed", "net/1/stack", "net/2/head") is None, "parts, not layers"
    assert stack_of("layers/0/x", "layers/2/x") is None, "one is not there"
    assert stack_of("0/x", "1/x") is None, "a sequence of modules"
    assert stack_of(f"layers/{'9' * 5000}/x") is None
