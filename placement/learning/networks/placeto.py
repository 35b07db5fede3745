"""Placeto's network: messages along and against the edges, sums around one unit, its devices.

Addanki et al., NeurIPS 2019. Graphs are small here (at most some hundred groups), so that messages
are products with dense matrices (U, U), for many states of the graph at once.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from placement.learning.carrying import Axis, Carried, joined, plain
from placement.learning.course import Course

# Rounds of messages, as many as an embedding can see edges far.
ROUNDS = 8


class Relations(NamedTuple):
    """Who reads from whom: `into` (U, U) weighs the units that each one reads from, `out_of` its
    readers; `around` (3, U, U) its ancestors, its descendants and those parallel to it."""

    into: Tensor
    out_of: Tensor
    around: Tensor


def relations_of(course: Course, *, averaged: bool) -> Relations:
    """Who reads from whom among the units of a course, as weights of sums or of means."""
    num = course.order.size
    reads = np.zeros((num, num), dtype=np.bool_)
    for net, maker in enumerate(course.maker.tolist()):
        if maker >= 0:
            reads[course.readers[course.reader_ptr[net] : course.reader_ptr[net + 1]], maker] = True
    before = reads.copy()
    for u in range(num):
        before |= before[:, u : u + 1] & before[u : u + 1]
    parallel = ~(before | before.T | np.eye(num, dtype=np.bool_))
    rows = [np.asarray(m, dtype=np.float32) for m in (reads, reads.T, before, before.T, parallel)]
    if averaged:
        rows = [row / np.maximum(1.0, row.sum(axis=1, keepdims=True)) for row in rows]
    into, out_of, *around = (torch.from_numpy(np.ascontiguousarray(row)) for row in rows)
    return Relations(into, out_of, torch.stack(around))


class Placeto(nn.Module):
    """Logits of the devices for the unit that is decided in each of many states.

    `stay` is the logit that the present device begins with beside the others.
    """

    def __init__(
        self, relations: Relations, num_features: int, num_devices: int, width: int, stay: float
    ) -> None:
        super().__init__()
        self.relations = relations
        self.begin = nn.Linear(num_features, width)
        self.send = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.take = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.gather = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(4))
        self.decide = nn.Sequential(
            nn.Linear(4 * width, 2 * width), nn.ReLU(), nn.Linear(2 * width, num_devices)
        )
        self.stay = nn.Parameter(torch.tensor(stay))

    def carried(self, devices: Axis) -> Carried:
        """What goes to a file; the last inputs are the devices."""
        num_told = self.begin.in_features - len(devices.place)
        axes = {
            "begin.weight": (None, joined(plain(num_told), devices)),
            "decide.2.weight": (devices, None),
            "decide.2.bias": (devices,),
        }
        return Carried(dict(self.named_parameters()), axes, devices)

    def forward(self, states: Tensor, units: Tensor, present: Tensor) -> Tensor:
        """Logits (N, D) by states (N, U, F), the unit decided in each (N,), and its device (N,)."""
        first = torch.relu(self.begin(states))
        ways = (self.relations.into, self.relations.out_of)
        ends = []
        for way, send, take in zip(ways, self.send, self.take, strict=True):
            embedded = first
            for _ in range(ROUNDS):
                embedded = first + torch.tanh(take(way @ torch.tanh(send(embedded))))
            ends.append(embedded)
        every = torch.cat(ends, dim=2)
        itself = every[torch.arange(len(units)), units]
        sums = [kin[units][:, None] @ every for kin in self.relations.around]
        parts = [itself, *(some[:, 0] for some in sums)]
        seen = [torch.relu(to(part)) for to, part in zip(self.gather, parts, strict=True)]
        logits: Tensor = self.decide(torch.cat(seen, dim=1))
        here = nn.functional.one_hot(present, logits.shape[1])
        return logits + self.stay * here
