"""BERT-base with the heads of its pretraining: Devlin, Chang, Lee and Toutanova, NAACL 2019.

The words of every position are predicted, not only of masked ones, and whether the second sentence
follows the first; sentences fill their length, so nothing is padded. No dropout.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from placement.zoo._parts import Built, next_words
from placement.zoo._transformers import built, heads_of, require_length

SOURCE = "Devlin et al. 2019"
NUM_OPS = (389, 2055)
SIZES = {"batch": 1, "length": 128, "depth": 12, "width": 768}
NUM_WORDS, LONGEST = 30_522, 512


def build(sizes: Mapping[str, int]) -> Built:
    batch, length, width = sizes["batch"], sizes["length"], sizes["width"]
    require_length(length, LONGEST)
    module = built(
        "BertForPreTraining",
        "BertConfig",
        vocab_size=NUM_WORDS,
        max_position_embeddings=LONGEST,
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=sizes["depth"],
        num_attention_heads=heads_of(width),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    words, masked = (torch.randint(0, NUM_WORDS, (batch, length)) for _ in range(2))
    return module, (words,), (masked, torch.randint(0, 2, (batch,))), _loss


def _loss(made: Any, words: Tensor, follows: Tensor) -> Tensor:
    return next_words(made.prediction_logits, words) + nn.functional.cross_entropy(
        made.seq_relationship_logits, follows
    )
