"""A recurrent language model of two LSTM layers: Zaremba, Sutskever and Vinyals, "Recurrent neural
network regularization", arXiv 1409.2329, in its medium size and without dropout."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from placement.zoo._parts import Built, next_words, run

SOURCE = "Zaremba et al. 2014"
NUM_OPS = (76, 3487)
SIZES = {"batch": 20, "length": 35, "depth": 2}
NUM_WORDS, WIDTH = 10_000, 650


class Rnnlm(nn.Module):
    def __init__(self, depth: int) -> None:
        super().__init__()
        self.words = nn.Embedding(NUM_WORDS, WIDTH)
        self.layers = nn.ModuleList(nn.LSTMCell(WIDTH, WIDTH) for _ in range(depth))
        self.head = nn.Linear(WIDTH, NUM_WORDS)

    def forward(self, words: Tensor) -> Tensor:
        rows = self.words(words).unbind(1)
        for layer in self.layers:
            rows = run(layer, rows)
        return self.head(torch.stack(rows, 1))  # type: ignore[no-any-return]


def build(sizes: Mapping[str, int]) -> Built:
    shape = (sizes["batch"], sizes["length"])
    words, target = torch.randint(0, NUM_WORDS, shape), torch.randint(0, NUM_WORDS, shape)
    return Rnnlm(sizes["depth"]), (words,), (target,), next_words
