"""Small PyTorch models, placed: for the formats that only they have."""

from functools import cache

import numpy as np
import torch
from torch import nn

import placement as pl
from placement.core.machine import Device, Link, Machine
from placement.core.model import Model
from placement.exporters import Export


class Rereading(nn.Module):
    """A weight and a bias that are used at several times, as in a recurrent network."""

    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(5, 5)

    def forward(self, x):
        for _ in range(4):
            x = torch.tanh(self.cell(x))
        return x.square().sum()


class Seeing(nn.Module):
    """An image and a word to classes: convolution, normalisation, a table of rows."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
        self.words, self.head = nn.Embedding(5, 8), nn.Linear(8, 4)

    def forward(self, image, word):
        seen = torch.relu(self.norm(self.conv(image))).mean((2, 3))
        return self.head(seen + self.words(word))


class Attending(nn.Module):
    """Attention and a feed-forward part with residual connections."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(8, 8) for _ in range(3))
        self.norm = nn.LayerNorm(8)
        self.feed = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

    def forward(self, x):
        scores = self.query(x) @ self.key(x).transpose(1, 2)
        x = self.norm(x + scores.softmax(-1) @ self.value(x))
        return x + self.feed(x)


class Remembering(nn.Module):
    """A recurrent cell, unrolled, that is called again and again; a count that nobody reads."""

    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRUCell(4, 6), nn.Linear(6, 1)
        self.register_buffer("seen", torch.zeros(2, dtype=torch.bfloat16))

    def forward(self, x):
        state = torch.zeros(x.shape[0], 6)
        for step in range(x.shape[1]):
            state = self.cell(x[:, step], state)
        return self.head(state).mean()


class Scaled(nn.Module):
    """Two ops and a parameter, which the first one reads."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x):
        return torch.relu(x * self.scale)


def untrained() -> tuple[Seeing, tuple[torch.Tensor, torch.Tensor], torch.Tensor]:
    """A module that sees, with what it is called with and the classes of that: always the same."""
    torch.manual_seed(0)
    given = torch.randn(4, 3, 16, 16), torch.randint(0, 5, (4,))
    return Seeing(), given, torch.randint(0, 4, (4,))


@cache
def seeing(optimizer: str) -> Model:
    """A training step of it, which is captured once: programs keep a state of their own."""
    module, given, target = untrained()
    loss = nn.functional.cross_entropy
    how = {"training": True, "loss": loss, "targets": (target,), "optimizer": optimizer}
    return pl.from_torch(module, given, **how)


@cache
def training(name: str) -> Model:
    """A training step of one of the three, each with another optimiser."""
    if name == "seeing":
        return seeing("adam")
    torch.manual_seed(0)
    loss, targets = nn.functional.mse_loss, (torch.randn(2, 5, 8),)
    if name == "attending":
        module, inputs, how = Attending(), (torch.randn(2, 5, 8),), {"optimizer": "momentum"}
    else:
        module, inputs, how = Remembering(), (torch.randn(2, 3, 4),), {}
        loss, targets = None, ()
    return pl.from_torch(module, inputs, training=True, loss=loss, targets=targets, **how)


@cache
def inference() -> Model:
    torch.manual_seed(0)
    return pl.from_torch(Attending().eval(), torch.randn(2, 5, 8))


def with_gpus(number: int = 2) -> Machine:
    """A machine that is nowhere: one CPU and some GPUs, all linked."""
    names = ("cpu:0", *(f"cuda:{i}" for i in range(number)))
    speed = {"flops_per_s": 1e9, "memory_bytes_per_s": 1e9}
    devices = tuple(Device(n, "cpu" if n == "cpu:0" else "gpu", **speed) for n in names)
    links = [Link(a, b, 1e-5, 1e9) for a in names for b in names if a != b]
    return Machine("gpus", devices, tuple(links))


def placed(model: Model, number: int = 2, machine: Machine | None = None) -> Export:
    """A model on the devices of a machine (two lanes of the CPU without one), dealt at random.

    Number 0 puts all on the first.
    """
    machine = machine or pl.machine_for(model, pl.machine("two-lanes"))
    problem = pl.make_problem(model, machine)
    rng = np.random.default_rng(number)
    devices = rng.integers(0, len(machine.devices) if number else 1, problem.num_units)
    return Export(model, problem, problem.placement_of(devices), f"number {number}")
