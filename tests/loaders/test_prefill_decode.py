"""Prefill and decode of language models: their caches as state, in bytes and by transformers."""

import dataclasses
import functools
import inspect
import itertools
import json

import numpy as np
import pytest
import torch
import transformers

import placement as pl
from placement import loaders
from placement.api.wording import bound_in_words
from placement.core.violations import needed_bytes
from placement.costs.roofline import bytes_moved, waits_s
from placement.formats.huggingface.caches import PAGE, Buffers, Entry
from placement.formats.torch.caches import with_caches
from placement.loaders.huggingface import FOLDER
from placement.schedule.segments import make_schedule
from tests.loaders.test_huggingface import TINY
from tests.thorough import either

# Shipped configurations whose layers all attend to every token before; in `make test` one with
# experts, and one whose heads have a size of their own.
PLAIN = [
    name
    for name in sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
    if not name.startswith(("gemma", "deepseek"))
]


def published_bytes(config, context, batch, num_bytes):
    """2 x layers x kv_heads x head_dim x bytes x context x batch."""
    heads = config.get("num_key_value_heads") or config["num_attention_heads"]
    size = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    return 2 * config["num_hidden_layers"] * heads * size * num_bytes * context * batch


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Opens a tiny Llama with some settings otherwise; the same one is captured once."""
    path = tmp_path_factory.mktemp("tiny") / "config.json"

    @functools.cache
    def model(content, dims):
        path.write_text(content)
        return loaders.load(str(path), dict(dims))

    def opens(task, dims=None, **settings):
        sizes = {"task": task, **(dims or {})}
        return model(json.dumps({**TINY, **settings}), tuple(sizes.items()))

    return opens


@functools.cache
def shipped(name, task):
    """A step of a configuration that is shipped, with one layer of it."""
    dims = {"dtype": "bfloat16", "batch": 3, "length": 1000, "context": 1000, "depth": 1}
    return loaders.load(name, {**dims, "task": task})


def test_a_prompt_and_a_token_as_graphs_of_one_cache(opened):
    prefill = opened("prefill", {"batch": 2, "length": 6, "context": 20}).graph
    decode = opened("decode", {"batch": 2, "context": 20}).graph
    assert [(t.name, t.shape) for t in prefill.inputs] == [("input_ids", (2, 6))]
    assert [(t.name, t.shape) for t in decode.inputs] == [("input_ids", (2, 1)), ("position", (1,))]
    for graph in (prefill, decode):
        assert [(t.name, t.shape) for t in graph.outputs] == [("logits", (2, 1, 97))]
        assert graph.state_bytes == published_bytes(TINY, 20, 2, 4)
        groups = {op.colocation_group for op in graph.ops} - {None}
        assert groups == {f"cache of model.layers.{i}.self_attn" for i in range(3)}
        held = {op.colocation_group for op in graph.ops if op.state_bytes}
        attention = [op for op in graph.ops if op.kind == "scaled_dot_product_attention"]
        assert held == {op.colocation_group for op in attention} == groups
    assert (prefill.tokens.number, decode.tokens.number) == (12, 2)


@pytest.mark.thorough
@pytest.mark.parametrize("name", either(["mixtral-8x7b", "qwen3-0.6b"], PLAIN))
def test_caches_have_the_published_size(name):
    config = json.loads((FOLDER / name / "config.json").read_text())
    config["num_hidden_layers"] = 1
    graph = shipped(name, "decode").graph
    assert graph.state_bytes == published_bytes(config, 1000, 3, 2)


def test_a_paged_cache_has_whole_pages(opened):
    plain = opened("decode", {"batch": 2, "context": 20}).graph
    assert plain.state_bytes == published_bytes(TINY, 20, 2, 4)
    assert paged(opened).state_bytes == published_bytes(TINY, 3 * PAGE, 2, 4)


def paged(opened):
    """Decode with a longer cache, of which the last page has more room than it takes."""
    return opened("decode", {"batch": 2, "context": 40, "cache": "paged"}).graph


class Shared(torch.nn.Module):
    """Two layers of which the second reads both caches, the one or the other first."""

    def __init__(self, order):
        super().__init__()
        self.order = order
        self.layers = torch.nn.ModuleList(torch.nn.Identity() for _ in range(11))
        entry = Entry("keys", (2, 4), torch.float32, 4)
        for number in (2, 10):
            self.layers[number].add_module("cache", Buffers([entry], "cpu"))

    def forward(self, x):
        for number in self.order:
            x = x + self.layers[number].cache.keys
        one, other = (self.layers[number].cache.keys for number in self.order)
        return x, one * other


def test_caches_that_are_read_together_have_one_name_in_every_step():
    for order in ((2, 10), (10, 2)):
        program = pl.from_torch(Shared(order), torch.rand(2, 4)).executable
        sizes = {f"layers.{number}.cache.keys": 32 for number in order}
        found = with_caches(program, sizes)
        assert {kernel.meta["group"] for kernel in found.kernels} == {"cache of layers.2"}


SHARING = {
    "num_hidden_layers": 3,
    "num_kv_shared_layers": 1,
    "hidden_size_per_layer_input": 8,
    "vocab_size_per_layer_input": 97,
    "sliding_window": 5,
    "layer_types": ["full_attention", "sliding_attention", "full_attention"],
    "head_dim": 8,
}


SHARING_FAMILIES = {
    "gemma4_text": {"global_head_dim": 8},
    "gemma3n_text": {
        "laurel_rank": 4,
        "altup_num_inputs": 2,
        "activation_sparsity_pattern": [0.0] * 3,
    },
}


@pytest.mark.thorough
@pytest.mark.parametrize("family", either([*SHARING_FAMILIES][:1], [*SHARING_FAMILIES]))
def test_layers_that_share_a_cache_have_it_by_one_name_in_both_steps(family):
    config = transformers.AutoConfig.for_model(
        family, **{**SHAPE, **SHARING, **SHARING_FAMILIES[family]}
    )
    network = transformers.AutoModelForCausalLM.from_config(config).eval()
    groups = []
    for task in ("prefill", "decode"):
        ops = pl.from_transformers(network, task=task, length=7, context=12).graph.ops
        groups.append({op.colocation_group for op in ops} - {None})
        attend = [op for op in ops if op.kind == "scaled_dot_product_attention"]
        # The last layer has none of its own: it attends to that of the layer of its kind.
        assert [op.colocation_group for op in attend] == [
            f"cache of model.layers.{n}.self_attn" for n in (0, 1, 0)
        ]
    assert groups[0] == groups[1]


# The shipped configurations above are opened with one layer out of many, and their caches counted.
@pytest.mark.only_thorough
def test_depth_multiplies_the_cache(opened):
    sizes = {"batch": 2, "context": 20}
    few, many = (opened("decode", {**sizes, **depth}).graph for depth in ({}, {"depth": 5}))
    assert many.state_bytes * TINY["num_hidden_layers"] == few.state_bytes * 5


SHAPE = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "vocab_size": 97,
    "max_position_embeddings": 64,
}
# What a configuration says that is opened without settings, but for the number of layers: TINY.
PLAINEST = "llama"
# Layers that keep everything, a window, latents, and recurrent states.
FAMILIES = {
    PLAINEST: {"num_hidden_layers": 3},
    "gemma2": {"head_dim": 8, "sliding_window": 5, "tie_word_embeddings": True},
    # The second layer of it, and of the one below, is like the first.
    "deepseek_v2": {
        "num_hidden_layers": either(1, 2),
        "kv_lora_rank": 8,
        "q_lora_rank": None,
        "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 4,
        "v_head_dim": 8,
        "num_key_value_heads": 4,
        "first_k_dense_replace": 2,
    },
    "mamba2": {
        "num_hidden_layers": either(1, 2),
        "num_heads": 8,
        "head_dim": 8,
        "state_size": 8,
        "n_groups": 2,
        "chunk_size": 8,
    },
}


def kept_by_transformers(family, batch, words):
    """Bytes that the library's own cache has of a network after so many words."""
    config = transformers.AutoConfig.for_model(family, **{**SHAPE, **FAMILIES[family]})
    network = transformers.AutoModelForCausalLM.from_config(config).eval()
    cache = transformers.DynamicCache(config=network.config)
    takes = inspect.signature(network.forward).parameters
    older = "cache_params" if family == "mamba2" else "past_key_values"
    name = "cache" if "cache" in takes else older
    with torch.no_grad():
        network(torch.zeros(batch, words, dtype=torch.long), use_cache=True, **{name: cache})
    found = 0
    for layer in cache.layers:
        held = [getattr(layer, "keys", None), getattr(layer, "values", None)]
        for states in ("conv_states", "recurrent_states"):
            held += getattr(layer, states, {}).values()
        found += sum(value.nbytes for value in held if isinstance(value, torch.Tensor))
        # Between two steps the library leaves out the word of a window that the next one drops.
        if getattr(layer, "is_sliding", False):
            found += sum(v.nbytes // v.shape[-2] for v in held if isinstance(v, torch.Tensor))
    return found


# One step of each family. Both steps of Llama have one number, by the first test of this file; that
# prefill of the others has it, too, is tried in `make fuzz`.
TAKEN = either(
    [(PLAINEST, "prefill"), *((family, "decode") for family in FAMILIES if family != PLAINEST)],
    [*itertools.product(FAMILIES, ("prefill", "decode"))],
)


@pytest.mark.thorough
@pytest.mark.parametrize(("family", "task"), TAKEN)
def test_caches_are_as_large_as_those_of_transformers(family, task, opened):
    graph = of_family(family, task, opened)
    assert graph.state_bytes == kept_by_transformers(family, 2, 20)


def of_family(family, task, opened):
    """A step of two sequences, with room for 20 tokens of each."""
    settings = {**SHAPE, **FAMILIES[family], "model_type": family, "architectures": []}
    sizes = {"batch": 2, "length": 6, "context": 20}
    return opened(task, sizes, **({} if family == PLAINEST else settings)).graph


def test_decode_reads_all_of_the_cache_and_writes_one_token(opened):
    short, long = opened("decode", {"batch": 2, "context": 20}).graph, paged(opened)
    grown = sum(op.moved_bytes for op in long.ops) - sum(op.moved_bytes for op in short.ops)
    masks = [
        sum(op.moved_bytes for op in g.ops if not op.scope.startswith("model/layers"))
        for g in (short, long)
    ]
    # Beside the cache itself each of three layers reads a mask of one byte per token.
    assert grown - (masks[1] - masks[0]) == published_bytes(TINY, 20, 2, 4) + 3 * 20
    token = published_bytes(TINY, 1, 2, 4)
    written = [op for op in long.ops if op.kind == "index_copy"]
    assert sum(op.moved_bytes for op in written) == 2 * token + 8 * len(written)
    prefill = opened("prefill", {"batch": 2, "length": 6, "context": 20}).graph
    written = [op for op in prefill.ops if op.kind == "index_copy"]
    assert sum(op.moved_bytes for op in written) == 6 * (2 * token + 8 * len(written))


def test_views_move_nothing_and_copies_do(opened):
    class Views(torch.nn.Module):
        def forward(self, x, rows):
            parts = x.transpose(0, 1).reshape(3, 4, 2)[:, 1:].split(2, dim=1)
            spread = x[0].expand(5, 8)
            return parts[0] + 1, spread * 2, x.t().reshape(-1), x[rows], spread.contiguous()

    model = pl.from_torch(Views(), (torch.rand(3, 8), torch.tensor([1, 1])))
    moved = {op.name: (op.kind, op.moved_bytes) for op in model.graph.ops}
    by_kind = {}
    for kind, num_bytes in moved.values():
        by_kind.setdefault(kind, []).append(num_bytes)
    assert not any(by_kind["expand"] + by_kind["transpose"] + by_kind["select"])
    assert sorted(by_kind["reshape"])[-1] == 2 * 3 * 8 * 4, "it cannot be a view"
    assert by_kind["mul"] == [8 * 4 + 5 * 8 * 4], "a row is read once"
    assert by_kind["index"] == [2 * 2 * 8 * 4 + 2 * 8], "rows are picked"
    assert by_kind["contiguous"] == [8 * 4 + 5 * 8 * 4]
    np.testing.assert_array_equal(bytes_moved(model.graph), [b for _, b in moved.values()])


def test_a_table_is_read_by_rows_and_its_other_use_whole(opened):
    """Of Gemma 2, whose table of words is that of its head too: for two words."""
    graph = of_family("gemma2", "decode", opened)
    moved = {op.kind: op for op in graph.ops if op.kind == "embedding"}["embedding"]
    assert moved.param_bytes == 97 * 32 * 4 and moved.moved_bytes == 2 * (2 * 32 * 4 + 8)
    head = next(op for op in graph.ops if op.scope == "lm_head")
    assert head.param_bytes == 0 and head.moved_bytes == (97 * 32 + 2 * 32 + 2 * 97) * 4


def test_decode_waits_for_memory_and_a_long_prompt_for_arithmetic():
    machine = pl.machine("nvlink-8gpu")
    shares = {}
    for task in ("prefill", "decode"):
        model = shipped("mixtral-8x7b", task)
        problem = pl.make_problem(model, machine)
        placed = pl.place(problem, "single", settings={})
        waits = waits_s(problem, placed.placement)
        assert sum(waits.values()) == pytest.approx(problem.costs.compute_s[:, 1].sum())
        shares[task] = waits["memory"] / (waits["memory"] + waits["arithmetic"])
        assert placed.tokens_per_s == pytest.approx(model.graph.tokens.number / placed.value)
        assert placed.first_token_s == (placed.value if task == "prefill" else None)
    assert shares["decode"] > 0.95 and shares["prefill"] < 0.5


def test_a_cache_lies_where_its_layer_lies_and_counts_there(opened):
    model = opened("decode", {"batch": 2, "context": 20})
    machine = pl.machine("nvlink-8gpu")
    problem = pl.make_problem(model, machine)
    names = [d.name for d in machine.devices if not d.on_host][:2]
    graph = problem.graph
    device_of = {
        op.name: names[1] if op.scope.startswith("model/layers/2") else names[0] for op in graph.ops
    }
    units = problem.placement_of(
        [problem.machine.index[device_of[graph.ops[ops[0]].name]] for ops in problem.ops_of_unit]
    )
    schedule = make_schedule(problem, units)
    peaks = dict(zip(problem.machine.index, needed_bytes(problem, schedule), strict=True))
    layer = published_bytes(TINY, 20, 2, 4) // 3
    empty = dataclasses.replace(
        problem,
        kernels=dataclasses.replace(
            graph, ops=tuple(dataclasses.replace(op, state_bytes=0) for op in graph.ops)
        ),
    )
    without = dict(zip(problem.machine.index, needed_bytes(empty, schedule), strict=True))
    for name, layers in zip(names, (2, 1), strict=True):
        assert peaks[name] - without[name] == layers * layer
    assert max(t.num_bytes for t in graph.tensors) < layer, "no cache is a value of the step"
    sent = pl.simulate(problem, units).transfer_bytes
    assert sent < layer, "no cache crosses"


@pytest.mark.parametrize(
    ("dims", "settings", "part"),
    [
        ({"task": "decode", "cache": "heap"}, {}, "use contiguous, paged"),
        ({"task": "prefill", "length": 30, "context": 20}, {}, "make length smaller"),
        ({"task": "decode"}, {"model_type": "bert", "architectures": ["BertForMaskedLM"]}, "task"),
        ({"task": "sleep"}, {}, "use inference, prefill, decode, training"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(opened, dims, settings, part):
    with pytest.raises(ValueError, match=part) as error:
        opened(dims["task"], dims, **settings)
    assert str(error.value).endswith(".") and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("waits", "said"),
    [
        (None, ""),
        ({"arithmetic": 0.0, "memory": 0.0, "launch": 0.0, "link": 0.0}, ""),
        (
            {"arithmetic": 1.0, "memory": 3.0, "launch": 0.1, "link": 0.0},
            "bound by memory bandwidth for 75% of what kernels compute",
        ),
        (
            {"arithmetic": 3.0, "memory": 1.0, "launch": 4.0, "link": 0.0},
            "bound by arithmetic for 75% of what kernels compute, and launching them takes 50% of"
            " the computing time",
        ),
        (
            {"arithmetic": 1.0, "memory": 3.0, "launch": 0.0, "link": 12.0},
            "bound by memory bandwidth for 75% of what kernels compute, and weights that stream"
            " take 75% of the computing time",
        ),
    ],
)
def test_what_kernels_wait_for_in_words(waits, said):
    assert bound_in_words(waits) == said
