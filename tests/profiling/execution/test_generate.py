"""Text generated live on two lanes is what transformers generates."""

import numpy as np
import pytest
import torch
import transformers

import placement as pl
from benchmarks.language.generation import reference
from tests.loaders.test_prefill_decode import FAMILIES, SHAPE


def network():
    config = transformers.LlamaConfig(**SHAPE)
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module")
def llama():
    return network()


def expected(network, prompts, number):
    return reference(network, prompts, number)[0]


def test_two_lanes_generate_what_transformers_does(llama):
    prompts = np.random.default_rng(1).integers(0, 97, (2, 7))
    made = pl.generate(llama, prompts, new_tokens=6, machine=pl.machine("two-lanes"))
    np.testing.assert_array_equal(made.tokens, expected(llama, prompts, 6))
    assert len(made.step_s) == 5 and made.first_token_s > 0
    assert made.tokens_per_s == pytest.approx(2 / np.median(made.step_s))
    assert made.decode.tokens_per_s > 0 and made.prefill.first_token_s > 0
    assert not llama.training and "cache" not in dict(llama.named_modules())


# Layers of a window, of latents, of recurrent states, and of both kinds by turns.
OTHERS = {
    "gemma2": FAMILIES["gemma2"],
    "deepseek_v2": FAMILIES["deepseek_v2"],
    "mamba2": FAMILIES["mamba2"],
    "jamba": {
        "mamba_d_state": 8,
        "num_experts": 2,
        "num_experts_per_tok": 1,
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
    },
}


@pytest.mark.parametrize("family", OTHERS)
def test_layers_of_other_kinds_keep_what_they_need(family):
    config = transformers.AutoConfig.for_model(family, **{**SHAPE, **OTHERS[family]})
    torch.manual_seed(0)
    other = transformers.AutoModelForCausalLM.from_config(config).eval()
    prompts = np.random.default_rng(1).integers(0, 97, (2, 7))
    made = pl.generate(
        other, prompts, new_tokens=4, machine=pl.machine("two-lanes"), placer="round_robin"
    )
    np.testing.assert_array_equal(made.tokens, expected(other, prompts, 4))


def test_caches_stay_where_they_are_between_the_two_steps(llama):
    prompts = np.random.default_rng(2).integers(0, 97, (1, 5))
    made = pl.generate(
        llama, prompts, new_tokens=3, machine=pl.machine("two-lanes"), placer="round_robin"
    )
    first, later = made.placements
    models = [
        pl.from_transformers(llama, task=task, length=5, context=8)
        for task in ("prefill", "decode")
    ]
    where = [
        {
            op.colocation_group: placement.device_of[op.name]
            for op in model.graph.ops
            if op.colocation_group
        }
        for model, placement in zip(models, (first, later), strict=True)
    ]
    assert where[0] == where[1] and len(set(where[0].values())) == 2
    np.testing.assert_array_equal(made.tokens, expected(llama, prompts, 3))


@pytest.mark.parametrize("prompts", [[1, 2], [[0.5]], [[]]])
def test_prompts_that_are_none_are_refused(llama, prompts):
    with pytest.raises(ValueError, match="as many for each sequence"):
        pl.generate(llama, prompts)
