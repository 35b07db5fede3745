"""GPT-2 small, whose head shares the table of words: Radford et al., "Language models are
unsupervised multitask learners", 2019. No dropout."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from placement.zoo._parts import Built, next_words
from placement.zoo._transformers import built, heads_of, require_length

SOURCE = "Radford et al. 2019"
NUM_OPS = (533, 1686)
SIZES = {"batch": 1, "length": 128, "depth": 12, "width": 768}
NUM_WORDS, LONGEST = 50_257, 1024


def build(sizes: Mapping[str, int]) -> Built:
    shape, width = (sizes["batch"], sizes["length"]), sizes["width"]
    require_length(sizes["length"], LONGEST)
    module = built(
        "GPT2LMHeadModel",
        "GPT2Config",
        vocab_size=NUM_WORDS,
        n_positions=LONGEST,
        n_embd=width,
        n_layer=sizes["depth"],
        n_head=heads_of(width),
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        resid_pdrop=0.0,
        # What earlier words made is kept for generation, which no step here does.
        use_cache=False,
    )
    module.get_submodule("transformer").register_forward_pre_hook(_given_mask, with_kwargs=True)
    words, target = torch.randint(0, NUM_WORDS, shape), torch.randint(0, NUM_WORDS, shape)
    return module, (words,), (target,), _loss


def _given_mask(module: nn.Module, given: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Attention looks back alone; without a mask the library searches the words for one."""
    length = (given[0] if given else named["input_ids"]).shape[1]
    ahead = torch.full((length, length), torch.finfo(torch.float32).min).triu(1)
    return given, {**named, "attention_mask": ahead[None, None]}


def _loss(made: Any, words: Tensor) -> Tensor:
    return next_words(made.logits, words)
