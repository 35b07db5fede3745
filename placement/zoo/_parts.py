"""What the networks share: example inputs, and losses over classes."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

NUM_CLASSES = 1000
# A module, its inputs, targets of training, and a loss of outputs and targets.
Built = tuple[nn.Module, tuple[Any, ...], tuple[Any, ...], Any]


def images(batch: int, size: int) -> Tensor:
    return torch.rand(batch, 3, size, size)


def classes(batch: int) -> Tensor:
    return torch.randint(0, NUM_CLASSES, (batch,))


def classifier(module: nn.Module, batch: int, size: int) -> Built:
    """A network from images to classes, trained by cross entropy."""
    return module, (images(batch, size),), (classes(batch),), nn.functional.cross_entropy


def next_words(logits: Tensor, words: Tensor) -> Tensor:
    """Cross entropy of the words (batch, length) under logits (batch, length, words)."""
    return nn.functional.cross_entropy(logits.flatten(0, 1), words.flatten())


def run(cell: nn.Module, rows: Sequence[Tensor]) -> list[Tensor]:
    """What a recurrent cell makes of the rows one after another."""
    state, made = None, []
    for row in rows:
        state = cell(row, state)
        made.append(state[0])
    return made


def head(num_features: int) -> nn.Module:
    """Three full layers from features to classes, as AlexNet and VGG end."""
    return nn.Sequential(
        nn.Linear(num_features, 4096),
        nn.ReLU(),
        nn.Linear(4096, 4096),
        nn.ReLU(),
        nn.Linear(4096, NUM_CLASSES),
    )
