"""Caches as state of a program: what reads and writes one lives where it lives.

An op that reads a cache, one that writes into it, and whoever else reads what is written there (the
attention of a prompt) are one colocation group: otherwise the cache, or all of its words, would
have to cross. A cache that several layers read joins them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from torch import fx

from placement.formats.torch.functional import viewed
from placement.formats.torch.program import Node, TorchProgram
from placement.formats.torch.traffic import Traffic


def with_caches(program: TorchProgram, stored_bytes: Mapping[str, int]) -> TorchProgram:
    """The program whose state of these labels is caches of so many bytes."""
    places = {place: program.labels[place] for place in program.state}
    caches = tuple(place for place, label in places.items() if label in stored_bytes)
    sizes = {place: stored_bytes[places[place]] for place in caches}
    found = replace(program, caches=caches, stored_bytes={**program.stored_bytes, **sizes})
    _join(found)
    return found


def _join(program: TorchProgram) -> None:
    """Note the group of each op that has to do with a cache."""
    group_of: dict[str, str] = {}

    def root(name: str) -> str:
        while group_of.setdefault(name, name) != name:
            name = group_of[name]
        return name

    for kernel, place in _members(program):
        layer = f"cache of {program.labels[place].rpartition('.cache.')[0]}"
        group_of[root(kernel.name)] = root(layer)
    for kernel in program.kernels:
        if kernel.name in group_of:
            kernel.meta["group"] = root(kernel.name)


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
