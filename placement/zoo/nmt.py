"""Translation by an LSTM encoder and decoder with attention, after GNMT: Wu et al., "Google's
neural machine translation system", arXiv 1609.08144. The first encoder layer reads both ways, and
layers from the third on add what they read to what they make."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from placement.zoo._parts import Built, next_words, run

SOURCE = "after Wu et al. 2016"
NUM_OPS = (317, 6087)
SIZES = {"batch": 16, "length": 12, "depth": 4, "width": 512}
NUM_WORDS = 32_000


class Attention(nn.Module):
    """Additive: Bahdanau, Cho and Bengio, ICLR 2015."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(width, width, bias=False), nn.Linear(width, width)
        self.score = nn.Linear(width, 1, bias=False)

    def forward(self, row: Tensor, keys: Tensor, memory: Tensor) -> Tensor:
        scores = self.score(torch.tanh(self.query(row)[:, None] + keys))
        return (torch.softmax(scores, 1) * memory).sum(1)


class Nmt(nn.Module):
    def __init__(self, depth: int, width: int) -> None:
        super().__init__()
        self.source_words = nn.Embedding(NUM_WORDS, width)
        self.target_words = nn.Embedding(NUM_WORDS, width)
        self.ahead, self.back = nn.LSTMCell(width, width), nn.LSTMCell(width, width)
        self.encoder = nn.ModuleList(
            nn.LSTMCell(width if i else 2 * width, width) for i in range(depth - 1)
        )
        self.attention = Attention(width)
        self.decoder = nn.ModuleList(
            nn.LSTMCell(2 * width, width) if i else nn.LSTMCell(width, width) for i in range(depth)
        )
        self.head = nn.Linear(width, NUM_WORDS)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory = self.encode(self.source_words(source).unbind(1))
        keys = self.attention.key(memory)
        rows = run(self.decoder[0], self.target_words(target).unbind(1))
        seen = [self.attention(row, keys, memory) for row in rows]
        for number, cell in enumerate(self.decoder[1:], 1):
            joined = [torch.cat([row, s], 1) for row, s in zip(rows, seen, strict=True)]
            made = run(cell, joined)
            rows = [m + r for m, r in zip(made, rows, strict=True)] if number > 1 else made
        return self.head(torch.stack(rows, 1))  # type: ignore[no-any-return]

    def encode(self, words: Sequence[Tensor]) -> Tensor:
        ahead, back = run(self.ahead, words), run(self.back, words[::-1])[::-1]
        rows = [torch.cat(pair, 1) for pair in zip(ahead, back, strict=True)]
        for number, cell in enumerate(self.encoder):
            made = run(cell, rows)
            rows = [m + r for m, r in zip(made, rows, strict=True)] if number else made
        return torch.stack(rows, 1)


def build(sizes: Mapping[str, int]) -> Built:
    if sizes["depth"] < 2:
        # The second layer is what makes one row of the two that the first one reads both ways.
        raise ValueError(f"Size 'depth' is {sizes['depth']}; use 2 or more.")
    shape = (sizes["batch"], sizes["length"])
    source, target, next_target = (torch.randint(0, NUM_WORDS, shape) for _ in range(3))
    module = Nmt(sizes["depth"], sizes["width"])
    return module, (source, target), (next_target,), next_words
