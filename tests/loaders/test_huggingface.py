"""Configurations of Hugging Face models: opened without weights, by kinds of layer, and refused."""

import json

import pytest
import torch
from safetensors.torch import save_file

import placement as pl
from placement import loaders
from placement.formats.huggingface import headers
from placement.formats.torch.export import program_of
from placement.formats.torch.graph import graph_of
from placement.formats.torch.stacks import traced
from placement.loaders.huggingface import FOLDER
from tests.thorough import either

TINY = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 3,
    "vocab_size": 97,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
}


def _file(rows):
    """A safetensors file of four bytes with that header."""
    header = json.dumps(rows).encode()
    return len(header).to_bytes(8, "little") + header + b"\0" * 4


@pytest.fixture
def opened(tmp_path):
    """Opens a tiny Llama with some settings otherwise, and with sizes."""

    def opens(dims=None, **settings):
        path = tmp_path / "tiny" / "config.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({**TINY, **settings}))
        return loaders.load(str(path), {"length": 8, **(dims or {})})

    return opens


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The tiny Llama as it stands, which is captured once for all that only look at it."""
    path = tmp_path_factory.mktemp("plain") / "tiny" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(TINY))
    return loaders.load(str(path), {"length": 8})


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """The folder of a tiny Llama whose configuration names code and storage, opened."""
    folder = tmp_path_factory.mktemp("named") / "tiny"
    folder.mkdir()
    names = {
        "auto_map": {"AutoModelForCausalLM": "evil.Model"},
        "_attn_implementation": "kernels-community/evil",
        "quantization_config": {"quant_method": "fp8"},
    }
    (folder / "config.json").write_text(json.dumps({**TINY, **names}))
    return loaders.load(str(folder), {"length": 8})


def parameters(layers):
    """Parameters of the tiny Llama, counted from its definition."""
    attention = 2 * 32 * 32 + 2 * 32 * 16
    return 2 * 97 * 32 + 32 + layers * (attention + 3 * 32 * 48 + 2 * 32)


def test_a_configuration_is_a_model_without_weights(plain):
    model = plain
    assert not model.has_weights and "no weights" in model.not_executable
    # Beside the parameters the frequencies of the positions.
    assert model.graph.param_bytes == 4 * parameters(3) + 4 * 4
    assert f"{parameters(3):,} parameters" in model.notes[0]
    assert [t.name for t in model.graph.outputs] == ["logits"]
    assert [(t.name, t.shape) for t in model.graph.inputs] == [("input_ids", (1, 8))]
    assert {op.scope.split("/")[2] for op in model.graph.ops if "/layers/" in op.scope} == set(
        "012"
    )


@pytest.mark.thorough
def test_sizes_and_words_are_set(opened):
    # More layers than it has.
    depth = either(4, 5)
    model = opened({"batch": 2, "length": 5, "depth": depth, "dtype": "bfloat16"})
    assert model.graph.inputs[0].shape == (2, 5)
    assert f"{parameters(depth):,} parameters" in model.notes[0]
    assert model.graph.outputs[0].dtype == "bfloat16"
    listed = {dim.name: dim.size for dim in model.executable.symbolic_dims}
    sizes = {"batch": 2, "length": 5, "context": 64, "depth": depth}
    assert listed == {**sizes, "task": "inference", "dtype": "bfloat16"}


def test_stored_weights_count_with_their_bits(opened):
    # Beside the parameters the frequencies of the positions.
    full = 2 * parameters(1) + 4 * 4
    matrices = 2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 48
    for stored, bits in (("int8", 8), ("int4", 4)):
        num_bytes = opened({"dtype": stored, "depth": 1}).graph.param_bytes
        assert num_bytes == full - matrices * (16 - bits) // 8, stored


@pytest.mark.parametrize(
    ("dims", "settings", "part"),
    [
        ({"width": 3}, {}, "has no size 'width'"),
        ({"dtype": "int3"}, {}, "use float32"),
        ({"length": 65}, {}, "64 positions"),
        ({"depth": 10**6}, {}, "use 1 to"),
        ({}, {"model_type": "no_such"}, "none of those that transformers"),
        ({}, {"hidden_size": 10**20}, "more than any network"),
        ({}, {"hidden_size": "wide"}, "configuration"),
        ({}, {"num_attention_heads": 0}, "configuration"),
        ({}, {"hidden_act": "no_such"}, "configuration"),
    ],
)
def test_what_is_wrong_is_one_sentence_that_names_the_file(opened, dims, settings, part):
    with pytest.raises(ValueError, match=part) as error:
        opened(dims, **settings)
    text = str(error.value)
    assert "config.json" in text and "\n" not in text and text.endswith(".")


def test_code_and_storage_that_a_configuration_names_are_left_out(named, plain):
    assert named.graph.fingerprint == plain.graph.fingerprint
    assert any("never run" in note for note in named.notes)
    assert any("fp8" in note for note in named.notes)


def test_a_folder_stands_for_its_configuration(named, plain):
    """A process of its own opens one in test_export_command.py."""
    assert named.graph.name == "tiny"
    assert named.graph.fingerprint == plain.graph.fingerprint
    inspected = pl.inspect(named)
    assert inspected["weights"] is False
    assert inspected["fingerprint"] == plain.graph.fingerprint


def test_weights_beside_it_confirm_shapes_and_are_not_read(opened, tmp_path):
    beside = tmp_path / "tiny" / "model.safetensors"
    beside.parent.mkdir()
    save_file({"model.norm.weight": torch.ones(32, dtype=torch.bfloat16)}, beside)
    model = opened({"depth": 1})
    assert model.notes[-1] == "The files beside it confirm the shapes of 1 tensors"
    assert model.graph.outputs[0].dtype == "bfloat16", "the type of the weights"
    save_file({"model.norm.weight": torch.ones(31)}, beside)
    with pytest.raises(ValueError, match=r"model\.norm\.weight.*\[32\].*\[31\]"):
        opened({"depth": 1})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 8,
        (5).to_bytes(8, "little") + b"hello",
        (2).to_bytes(8, "little") + b"[]",
        _file({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}),
        _file({"w": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}),
        _file({"w": {"dtype": "F32", "shape": [1], "data_offsets": [900, 904]}}),
        _file({"w": {"dtype": "F32", "shape": ["x"], "data_offsets": [0, 4]}}),
    ],
)
def test_bad_headers_are_refused(content, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match=r"'model.safetensors' cannot be used: .*again\.$"):
        headers.stored_in(tmp_path)


def test_layers_traced_once_give_the_graph_that_is_traced_in_full():
    class Layer(torch.nn.Module):
        def __init__(self, width, place):
            super().__init__()
            self.layer_idx = place
            self.inner = torch.nn.Linear(8, width)
            self.back = torch.nn.Linear(width, 8)
            self.register_buffer("shift", torch.ones(8))

        def forward(self, x, *, mask):
            return x + self.back(torch.relu(self.inner(x))) * mask + self.shift, mask * 2

    class Stack(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(11, 8)
            widths = (16, 16, 24, 16, 24)
            self.layers = torch.nn.ModuleList(Layer(w, i) for i, w in enumerate(widths))
            self.head = torch.nn.Linear(8, 11)
            self.head.weight = self.table.weight

        def forward(self, words):
            x, mask = self.table(words), torch.ones(1, 8, device=words.device)
            for layer in self.layers:
                x, mask = layer(x, mask=mask)
            return {"logits": self.head(x), "mask": mask}

    exports = []

    def export(module, args, kwargs):
        exports.append(type(module).__name__)
        return program_of(torch.export.export(module, args, kwargs), "stack")

    with torch.device("meta"):
        stack, words = Stack(), torch.zeros(2, 3, dtype=torch.long)
    once = graph_of(traced(stack, (words,), {}, export))
    assert len(exports) == 3, "the whole, and each of two kinds"
    full = graph_of(export(stack, (words,), {}))
    assert once.fingerprint == full.fingerprint
    assert [op.flops for op in once.ops] == [op.flops for op in full.ops]


FAMILIES = {
    "gemma2": {"head_dim": 8, "sliding_window": 4},
    "qwen2_moe": {
        "num_experts": 2,
        "num_experts_per_tok": 1,
        "moe_intermediate_size": 8,
        "shared_expert_intermediate_size": 8,
        "mlp_only_layers": [1],
    },
}


def told(graph):
    """All of a graph but names."""
    ops = [(op.kind, op.scope, op.flops, op.param_bytes) for op in graph.ops]
    edges = [
        (
            None if t.producer is None else graph.index[t.producer],
            sorted(graph.index[name] for name in t.consumers),
            t.num_bytes,
            t.shape,
            t.dtype,
            t.is_output,
        )
        for t in graph.tensors
    ]
    return ops, edges


# Layers of two kinds in turns; of other kinds by their weights is the stack of the test above.
@pytest.mark.thorough
@pytest.mark.parametrize("family", either(["gemma2"], [*FAMILIES]))
def test_stacks_of_the_library_are_as_if_they_were_traced_in_full(family, opened, monkeypatch):
    settings = {**FAMILIES[family], "model_type": family, "architectures": []}
    once = opened(**settings).graph
    monkeypatch.setattr("placement.formats.torch.stacks.FEWEST", 10**6)
    assert told(once) == told(opened(**settings).graph)


def test_every_bundled_configuration_says_where_it_is_from():
    index = json.loads((FOLDER / "index.json").read_text())
    folders = {path.name for path in FOLDER.iterdir() if path.is_dir()}
    assert set(index) == folders and len(index) >= 12
    for name, about in index.items():
        assert about["source"].startswith("https://"), name
        assert ("published_parameters" in about) == ("published_in" in about), name


# Without experts and with them; the bytes of the second one's caches are in `make test` as well.
@pytest.mark.thorough
@pytest.mark.parametrize("name", ["smollm2-135m", *either([], ["mixtral-8x7b"])])
def test_bundled_configurations_open_with_the_published_number_of_parameters(name):
    about = json.loads((FOLDER / "index.json").read_text())[name]
    model = loaders.load(name)
    listed = {sample.name: sample for sample in loaders.samples()}[name]
    assert len(model.graph.ops) == listed.num_ops and "no weights" in listed.source
    if "published_parameters" in about:
        count = int(model.notes[0].split()[0].replace(",", ""))
        assert abs(count / about["published_parameters"] - 1) < 0.005
