"""Ops that one statement of a module makes stand in a block by the name of what it makes."""

import torch
from torch import nn

from placement.formats.torch.module import from_torch


def masked(size):
    """Sixteen ops."""
    found = torch.arange(size)
    for shift in range(5):
        found = (found + shift).unsqueeze(0).squeeze(0)
    return found


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))

    def forward(self, x):
        mask = masked(8)
        x = x + mask
        kinds = {
            "sliding": masked(8),
        }
        for layer in self.layers:
            x = layer(x)
            x = x + masked(8) + kinds["sliding"]
        return x


def test_a_long_statement_is_a_block_and_a_short_one_none():
    graph = from_torch(Words(), (torch.rand(2, 8),)).graph
    inside = {}
    for op in graph.ops:
        inside.setdefault(op.scope, []).append(op.kind)
    assert len(inside["mask"]) == len(inside["sliding"]) == 16
    assert inside["layers/0"] == inside["layers/1"] == ["linear"]
    # The statement in the loop runs twice: its first run has the name, and the second none.
    assert len(inside["x"]) == 18 and "arange" in inside[""]
