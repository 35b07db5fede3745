"""Stages of a pipeline: where a program is cut so that the parts hold the ops placed together.

A program runs module after module, so it can be cut where one is called that is called once. Ops
in order, from one cut to the next, are a stage on one device. Of all such cuts those are chosen
that leave the fewest bytes of weights in the stage of another device, then the fewest ops, then
the fewest stages (Viterbi, IEEE Transactions on Information Theory 13, 1967).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from placement.core.graph import Op
from placement.core.model import Model
from placement.core.placement import Placement
from placement.exporters._torch.model import program_of

if TYPE_CHECKING:
    from placement.formats.torch.program import TorchProgram


@dataclass(frozen=True)
class Stages:
    """The device of every stage, the modules that all but the first begin with, and what is off.

    `elsewhere` are ops of stages on another device than theirs.
    """

    devices: tuple[str, ...]
    modules: tuple[str, ...]
    elsewhere: tuple[Op, ...]


def stages_of(model: Model, placement: Placement) -> Stages:
    """Stages of a placed model for inference, which has ops."""
    ops = model.graph.ops
    placed = [placement.device_of[op.name] for op in ops]
    devices = list(dict.fromkeys(placed))
    starts = beginnings(program_of(model))
    path = _cheapest(ops, placed, devices, set(starts))
    found, modules = [devices[path[0]]], []
    for number, (before, now) in enumerate(pairwise(path), 1):
        if before != now:
            found.append(devices[now])
            modules.append(starts[number])
    off = [op for op, own, at in zip(ops, placed, path, strict=True) if own != devices[at]]
    return Stages(tuple(found), tuple(modules), tuple(off))


def beginnings(program: TorchProgram) -> dict[int, str]:
    """By position of an op the outermost module that it is the first op of and that runs once."""
    first: dict[tuple[str, ...], int] = {}
    again: set[tuple[str, ...]] = set()
    for position, kernel in enumerate(program.kernels):
        words = tuple(filter(None, kernel.meta["scope"].split("/")))
        for depth in range(1, len(words) + 1):
            first.setdefault(words[:depth], position)
        again.update(tuple(path.split("/")) for path in kernel.meta["again"])
    found: dict[int, str] = {}
    for path in sorted(first, key=len):
        if first[path] and path not in again:
            found.setdefault(first[path], ".".join(path))
    return found


def _cheapest(
    ops: Sequence[Op], placed: Sequence[str], devices: Sequence[str], cuts: set[int]
) -> list[int]:
    """The number of the device of each op's stage, at the least cost in all."""
    many = len(ops) + 1
    total, came_from = [0] * len(devices), list[list[int]]()
    for position, (op, own) in enumerate(zip(ops, placed, strict=True)):
        stays = list(range(len(devices)))
        if position in cuts:
            best = min(stays, key=lambda d: (total[d], d))
            stays = [best if total[best] + 1 < total[d] else d for d in stays]
            total = [min(cost, total[best] + 1) for cost in total]
        off = (op.param_bytes * many + 1) * many
        total = [c + (name != own) * off for c, name in zip(total, devices, strict=True)]
        came_from.append(stays)
    at = min(range(len(devices)), key=lambda d: (total[d], d))
    path = [0] * len(ops)
    for position in range(len(ops) - 1, -1, -1):
        path[position] = at
        at = came_from[position][at]
    return path
