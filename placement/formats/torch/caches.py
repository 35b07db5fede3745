"""Caches as state of a program: what reads and writes one lives where it lives.

An op that reads a cache, one that writes into it, and whoever else reads what is written there (the
attention of a prompt) are one colocation group: otherwise the cache, or all of its words, would
have to cross. A cache that several layers read joins them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import fx

from placement.formats.torch.functional import viewed
from placement.formats.torch.program import Node, TorchProgram
from placement.formats.torch.traffic import Traffic


def with_caches(program: TorchProgram, stored_bytes: Mapping[str, int]) -> TorchProgram:
    """The program whose state of these labels is caches of so many bytes.

    An empty one is zeros that take no memory until something writes to them.
    """
    places = {place: program.labels[place] for place in program.state}
    caches = tuple(place for place, label in places.items() if label in stored_bytes)
    sizes = {place: stored_bytes[places[place]] for place in caches}
    state = {**program.state, **{place: untouched(program.state[place]) for place in caches}}
    stored = {**program.stored_bytes, **sizes}
    found = replace(program, state=state, caches=caches, stored_bytes=stored)
    _join(found)
    return found


def untouched(cache: torch.Tensor) -> torch.Tensor:
    """Zeros like an empty cache, on the CPU of pages that the system has not handed out yet."""
    if cache.device.type != "cpu":
        return torch.zeros_like(cache)
    empty = torch.from_numpy(np.zeros(cache.numel() * cache.element_size(), dtype=np.uint8))
    return empty.view(cache.dtype).reshape(cache.shape)


def _join(program: TorchProgram) -> None:
    """Note the group of each op that has to do with a cache.

    Caches that are joined are called after the first of them, in every step of the model.
    """
    group_of: dict[str, str] = {}
    layer_of = {c: f"cache of {program.labels[c].rpartition('.cache.')[0]}" for c in program.caches}

    def root(name: str) -> str:
        while group_of.setdefault(name, name) != name:
            name = group_of[name]
        return name

    for kernel, place in _members(program):
        group_of[root(kernel.name)] = root(layer_of[place])
    layers = sorted(set(layer_of.values()), key=_natural, reverse=True)
    first = {root(layer): layer for layer in layers}
    for kernel in program.kernels:
        if kernel.name in group_of:
            kernel.meta["group"] = first[root(kernel.name)]


def _natural(name: str) -> list[tuple[int, str]]:
    """An order of names in which numbers follow one another: layer 10 behind layer 9."""
    return [(int(part) if part.isdecimal() else -1, part) for part in name.split(".")]


def _members(program: TorchProgram) -> Iterator[tuple[Node, str]]:
    """Kernels, and the cache that each has to do with."""
    traffic = Traffic(program)
    lies_in = traffic.cached
    for kernel in program.kernels:
        for value in program.reads(kernel):
            if value.name in lies_in:
                yield kernel, lies_in[value.name]
        at = traffic.written_argument(kernel)
        if at is not None and kernel.args[0].name in lies_in:
            for reader in _readers(program, kernel.args[at]):
                yield reader, lies_in[kernel.args[0].name]
    for place, made in program.updates:
        if place in program.caches and made in program.maker:
            yield program.maker[made], place


def _readers(program: TorchProgram, value: Node) -> Iterator[Node]:
    """Kernels that read a value, or what it is a view of."""
    seen: Node | None = value
    while isinstance(seen, fx.Node) and seen.op == "call_function":
        yield from (user for user in seen.users if user.name in program.values)
        seen = viewed(seen)
