"""Small language models, placed by module: for the formats that divide models by their layers."""

import json
from functools import cache

import torch
from torch import nn

import placement as pl
from placement.core.machine import Machine
from placement.core.model import Model
from placement.core.placement import Placement
from placement.exporters import Export
from tests.exporters.torch_models import with_gpus

DEPTH = 6


class Block(nn.Module):
    """A layer: attention with one head, and a feed-forward part."""

    def __init__(self):
        super().__init__()
        self.norm, self.query, self.out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)
        self.feed = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

    def forward(self, x):
        query, key, value = self.query(self.norm(x)).chunk(3, -1)
        x = x + self.out((query @ key.transpose(1, 2)).softmax(-1) @ value)
        return x + self.feed(x)


class Speaking(nn.Module):
    """Words to words by a stack of layers."""

    def __init__(self, depth=DEPTH):
        super().__init__()
        self.words = nn.Embedding(11, 8)
        self.layers = nn.ModuleList(Block() for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 11)

    def forward(self, words):
        x = self.words(words)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


@cache
def speaking() -> Model:
    torch.manual_seed(0)
    return pl.from_torch(Speaking().eval(), torch.randint(0, 11, (2, 5)))


def on_devices(model: Model, device_of: dict[str, str], machine: Machine | None = None) -> Export:
    """A model with its ops on devices by name, of one with three GPUs without a machine."""
    machine = machine or with_gpus(3)
    placement = Placement(model.graph.fingerprint, machine.name, device_of)
    return Export(model, pl.make_problem(model, machine), placement)


def by_module(
    model: Model, device_of: dict[str, str], machine: Machine | None = None, default: str = "cpu:0"
) -> Export:
    """A placement of modules by the start of their path; of several that fit, the last counts."""
    names = {}
    for op in model.graph.ops:
        path = op.scope.replace("/", ".") + "."
        fitting = [device for start, device in device_of.items() if path.startswith(f"{start}.")]
        names[op.name] = fitting[-1] if fitting else default
    return on_devices(model, names, machine)


def in_layers(devices: str, model: Model | None = None, stack: str = "layers") -> Export:
    """Layers on devices by letter ("cc01": two on the CPU, then one on each of two GPUs).

    What comes before them is with the first one, what follows with the last.
    """
    names = [{"c": "cpu:0"}.get(letter, f"cuda:{letter}") for letter in devices]
    model, device, found = model or speaking(), names[0], {}
    layers = {f"{stack}.{n}.": name for n, name in enumerate(names)}
    ops = model.graph.ops
    paths = [op.scope.replace("/", ".") + "." for op in ops]
    last = max(i for i, path in enumerate(paths) if path.startswith(f"{stack}."))
    for i, (op, path) in enumerate(zip(ops, paths, strict=True)):
        device = next((name for start, name in layers.items() if path.startswith(start)), device)
        found[op.name] = device if i <= last else names[-1]
    return on_devices(model, found)


def content(path) -> dict:
    return json.loads(path.read_text())
