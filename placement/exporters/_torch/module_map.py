"""Modules on devices: what of a placement of ops can be said by naming modules.

A module's ops and parameters are named as its path says; a map names the highest modules that are
on one device as a whole. What a module computes itself, beside its children, has no name of its
own, and neither have ops of one module that are on several devices: those go where most of the
module's bytes are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placement.formats.torch.program import Node, TorchProgram

# How an export marks later calls of a module, and what it calls tensors that belong to none.
_AGAIN = re.compile(r"@\d+$")
_CONSTANT = re.compile(r"lifted_tensor_\d+")


@dataclass
class Module:
    """A module by its path, the words of its name; bytes and ops of its own by device."""

    path: tuple[str, ...]
    param_bytes: Counter[str] = field(default_factory=Counter)
    ops: Counter[str] = field(default_factory=Counter)
    children: dict[str, Module] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def own(self) -> str:
        """Where most of its own parameters are read, or most of its ops are; empty for nothing."""
        counts = self.param_bytes or self.ops
        return max(counts, key=counts.__getitem__) if counts else ""

    @property
    def is_split(self) -> bool:
        """Whether its own parameters and ops are on several devices."""
        return len(self.param_bytes.keys() | self.ops.keys()) > 1

    def devices(self) -> set[str]:
        """Where it and all modules in it go."""
        found = {self.own} if self.own else set()
        return found.union(*(child.devices() for child in self.children.values()))

    def entries(self) -> Iterable[tuple[str, str]]:
        """Names with devices: itself where all of it is on one, else its parts."""
        found = self.devices()
        if len(found) == 1:
            yield self.name, found.pop()
            return
        if self.param_bytes:
            yield self.name, self.own
        for child in self.children.values():
            if child.devices():
                yield from child.entries()

    def all(self) -> Iterable[Module]:
        yield self
        for child in self.children.values():
            yield from child.all()


@dataclass(frozen=True, eq=False)
class ModuleMap:
    """The modules of a program whose ops are on devices, by name of the op, in torch's words."""

    program: TorchProgram
    device_of: Mapping[str, str]

    @cached_property
    def root(self) -> Module:
        from placement.formats.torch.program import num_bytes

        program, root = self.program, Module(())
        most = max(self._counts, key=self._counts.__getitem__, default="")
        for kernel in program.kernels:
            _at(root, _scope(kernel)).ops[self.device_of[kernel.name]] += 1
        for name, value in program.state.items():
            label = program.labels.get(name, name)
            if not _CONSTANT.fullmatch(label):
                module = _at(root, _words(label, ".")[:-1])
                device = next(iter(self._readers.get(name, ())), module.own or most)
                module.param_bytes[device] += max(1, num_bytes(value))
        return root

    @cached_property
    def _counts(self) -> Counter[str]:
        return Counter(self.device_of.values())

    @cached_property
    def _readers(self) -> dict[str, list[str]]:
        """The devices of the kernels that read each piece of state, in order."""
        found: dict[str, list[str]] = {}
        for kernel in self.program.kernels:
            for value in self.program.reads(kernel):
                if value.name in self.program.state:
                    found.setdefault(value.name, []).append(self.device_of[kernel.name])
        return found

    @cached_property
    def entries(self) -> dict[str, str]:
        """The map; the root is the empty name. State that nothing reads goes with its module."""
        return dict(self.root.entries())

    @cached_property
    def split(self) -> tuple[str, ...]:
        """Names of modules that the map puts on one device though their ops are on several."""
        return tuple(module.name for module in self.root.all() if module.is_split)

    def entry_of(self, words: tuple[str, ...]) -> str | None:
        """The longest name of the map that a path of modules begins with."""
        for end in range(len(words), -1, -1):
            if ".".join(words[:end]) in self.entries:
                return ".".join(words[:end])
        return None

    def mixing(self, runs_on: Mapping[str, str]) -> tuple[str, ...]:
        """Names of modules whose own ops would get tensors of several devices.

        `runs_on` is where modules of each name compute. A module that the map names gets its inputs
        moved to its device; anything else stays where its maker left it.
        """
        program, where, found = self.program, dict[str, str](), dict[str, None]()
        scopes = {kernel.name: _scope(kernel) for kernel in program.kernels}
        for kernel in program.kernels:
            scope = scopes[kernel.name]
            entry = self.entry_of(scope)
            inside = () if entry is None else _words(entry, ".")
            devices = set()
            for value in program.reads(kernel):
                maker = program.maker.get(value.name)
                label = program.labels.get(value.name, "")
                from_here = maker and scopes[maker.name][: len(inside)] == inside
                if value.name in program.state:
                    owner = self.entry_of(_words(label, ".")[:-1])
                    devices |= {runs_on[owner]} if owner is not None else set()
                elif maker and (entry is None or from_here):
                    devices |= {where[maker.name]} - {""}
            if len(devices) > 1:
                found[".".join(scope)] = None
            default = "" if entry is None else runs_on[entry]
            where[kernel.name] = min(devices, default=default)
        return tuple(found)


def _scope(kernel: Node) -> tuple[str, ...]:
    """The path of a kernel's module; a module that is called again is still one."""
    words = _words(kernel.meta.get("scope", ""), "/")
    return tuple(_AGAIN.sub("", word) for word in words)


def _words(path: str, between: str) -> tuple[str, ...]:
    return tuple(word for word in path.split(between) if word)


def _at(root: Module, words: Iterable[str]) -> Module:
    module = root
    for word in words:
        module = module.children.setdefault(word, Module((*module.path, word)))
    return module
