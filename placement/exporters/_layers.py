"""Layers by number: the stack that a language model is divided by, and where each layer is placed.

Servers of language models give each device a run of whole layers. They number the layers, so that
what an op belongs to is read off its scope: "model/layers/3/mlp" is part of layer 3 of the stack
"model.layers". Experts inside of layers are numbered too; the stack is that with most weights.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from placement.core.decoding import listed
from placement.core.graph import Graph
from placement.core.machine import Machine
from placement.core.placement import Placement

_BETWEEN = re.compile(r"[/.]")
_NUMBER = re.compile(r"[0-9]{1,5}")


@dataclass(frozen=True)
class Run:
    """Neighbouring layers on one device, from `start` up to but not including `end`."""

    device: str
    start: int
    end: int

    def __str__(self) -> str:
        one = self.end == self.start + 1
        return f"layer {self.start}" if one else f"layers {self.start} to {self.end - 1}"


@dataclass(frozen=True)
class Layers:
    """A stack by its path, and per layer the device where most of its weights are read.

    `divided` are numbers of layers whose ops are on several devices, `before` and `after` the
    devices of ops outside of the stack, and `others` paths of further stacks.
    """

    path: str
    device_of: tuple[str, ...]
    divided: tuple[int, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    others: tuple[str, ...]

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """Neighbouring layers on the same device together, in order."""
        return runs_of(self.device_of)

    @property
    def divided_note(self) -> str:
        """Which layers are on several devices, in a sentence; empty where none is."""
        if not self.divided:
            return ""
        goes = "goes where most of it is" if len(self.divided) == 1 else "go where most of each is"
        return f"No layer is divided: {listed(self.divided)} {goes} placed."

    @property
    def others_note(self) -> str:
        """Which further stacks of layers the format leaves out, in a sentence."""
        if not self.others:
            return ""
        return f"Only the layers of {self.path} are told, not those of {listed(self.others)}."

    def num_elsewhere(self, before: str, after: str) -> int:
        """Ops outside of the layers that are on another device than one for each side of them."""
        return sum(d != before for d in self.before) + sum(d != after for d in self.after)


def runs_of(device_of: Sequence[str]) -> tuple[Run, ...]:
    """Neighbours on the same device together."""
    found, start = list[Run](), 0
    for device, layers in groupby(device_of):
        end = start + sum(1 for _ in layers)
        found.append(Run(device, start, end))
        start = end
    return tuple(found)


def refused(graph: Graph, placement: Placement, machine: Machine) -> str:
    """Why a model cannot be divided by its layers, in a sentence; empty where it can."""
    if any(op.phase != "forward" for op in graph.ops):
        return (
            f"{graph.name!r} is a training step, and this format is for inference; open the model"
            " without training."
        )
    reads_words = any(t.dtype.lstrip("u").startswith("int") for t in graph.inputs if t.consumers)
    if not reads_words or layers_of(graph, placement) is None:
        return (
            f"{graph.name!r} is no stack of numbered layers that reads words, as language models"
            " are; choose a format that names ops or modules."
        )
    for device in dict.fromkeys(placement.device_of.values()):
        if device not in machine.index:
            return f"The machine has no device {device!r}; place the model on the devices it has."
    return ""


def layers_of(graph: Graph, placement: Placement) -> Layers | None:
    """The layers of a graph and where they are placed; None where there are none."""
    paths = [tuple(_BETWEEN.split(op.scope)) for op in graph.ops]
    found = {path: ops for path, ops in _numbered(paths).items() if _is_stack(ops, paths, path)}
    if not found:
        return None
    weights = [op.param_bytes for op in graph.ops]
    stack = max(found, key=lambda path: (_total(weights, found[path]), -len(path)))
    devices = [placement.device_of[op.name] for op in graph.ops]
    layers = [found[stack][number] for number in range(len(found[stack]))]
    inside = {i for ops in layers for i in ops}
    apart = [path for path in found if path != stack and path[: len(stack)] != stack]
    outermost = [p for p in apart if not any(p[:depth] in found for depth in range(1, len(p)))]
    first = min(inside)
    return Layers(
        ".".join(stack),
        tuple(_most(devices, weights, ops) for ops in layers),
        tuple(n for n, ops in enumerate(layers) if len({devices[i] for i in ops}) > 1),
        tuple(devices[:first]),
        tuple(devices[i] for i in range(first, len(devices)) if i not in inside),
        tuple(sorted(".".join(path) for path in outermost)),
    )


def _numbered(paths: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], dict[int, list[int]]]:
    """By path and number the ops in a block that is called by that number."""
    found: dict[tuple[str, ...], dict[int, list[int]]] = {}
    for i, path in enumerate(paths):
        for depth, word in enumerate(path):
            if depth and _NUMBER.fullmatch(word):
                found.setdefault(path[:depth], {}).setdefault(int(word), []).append(i)
    return found


def _is_stack(
    layers: Mapping[int, Sequence[int]], paths: Sequence[tuple[str, ...]], path: tuple[str, ...]
) -> bool:
    """Whether blocks are numbered from 0 on, and share at least half of their parts."""
    if set(layers) != set(range(len(layers))):
        return False
    depth = len(path) + 1
    parts = [{paths[i][depth : depth + 1] for i in layers[n]} for n in range(len(layers))]
    return all(2 * len(p & parts[0]) >= min(len(p), len(parts[0])) for p in parts)


def _total(weights: Sequence[int], layers: Mapping[int, Iterable[int]]) -> int:
    return sum(weights[i] for ops in layers.values() for i in ops)


def _most(devices: Sequence[str], weights: Sequence[int], ops: Iterable[int]) -> str:
    """The device with most bytes of weights, then with most ops, then the first."""
    count: Counter[str] = Counter()
    for i in ops:
        count[devices[i]] += weights[i] * len(devices) + 1
    return max(count, key=count.__getitem__)
