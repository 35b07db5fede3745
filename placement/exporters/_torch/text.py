"""A placed PyTorch program as the text of a Python module: one function per segment.

Whatever comes from a model is written as a literal of a known type or refused; operators are looked
up by name in the library's own table, and optimisers are written out.
"""

import inspect
import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from placement.core.schedule import Schedule
from placement.exporters._torch.layout import Layout
from placement.exporters._torch.model import CPU
from placement.formats.torch import optimisers
from placement.formats.torch.program import Node, TorchProgram
from placement.formats.torch.source import lines

ATEN = torch.ops.aten
LIBRARIES = ("aten", "prims")
HEAD = '''"""The segments of a placed model, one function each; step.py runs them.

Each takes and fills the list of values that segments share.
"""

import math

import torch
from torch import Tensor
'''


def unwritable(program: TorchProgram) -> str:
    """Why a program cannot be written as text, empty if it can."""
    for node in program.kernels:
        target = node.target
        known = isinstance(target, torch._ops.OpOverload) and target.namespace in LIBRARIES
        if not known and not _is_optimiser(target):
            return (
                f"The model calls {str(target)[:80]!r}, which is not part of PyTorch itself, so a"
                " file that needs nothing else cannot call it; use an operator of PyTorch."
            )
    return ""


def held_by_cpu(program: TorchProgram, on_cpu: Mapping[str, bool]) -> str:
    """Why ops cannot be on other devices than the CPU, empty if all can; `on_cpu` by op."""
    for node in program.kernels:
        packet = getattr(getattr(node.target, "overloadpacket", None), "__name__", "")
        if not on_cpu.get(node.name, True) and "_for_cpu" in packet:
            return (
                f"Op {node.name!r} calls {packet!r}, which PyTorch has for the CPU alone: the step"
                " was traced there; place it on a CPU, or write attention as plain matrix products."
            )
    return ""


def module_text(program: TorchProgram, schedule: Schedule, layout: Layout) -> str:
    """The module's text: operators by short names, a function per segment, and their list."""
    names = _Names()
    found = []
    for number, segment in enumerate(schedule.segments):
        words = Literals(names, program, layout, number)
        body = "\n    ".join(lines(program, segment.kernels, layout.shared, words))
        found.append(f"def segment_{number}(v):\n    {body}\n")
    listed = "".join(f"    segment_{number},\n" for number in range(len(found)))
    end = f"SEGMENTS = (\n{listed})\n"
    return "\n\n".join((f"{HEAD}\n{names.operators}", *names.optimisers, *found, end))


def _is_optimiser(target: Any) -> bool:
    name = getattr(target, "__name__", "")
    return isinstance(name, str) and name != "" and getattr(optimisers, name, None) is target


@dataclass
class _Names:
    """Short names for the functions that a module calls, and what they stand for."""

    name_of: dict[Any, str] = field(default_factory=dict)

    def of(self, target: Any) -> str:
        if target not in self.name_of:
            taken = set(self.name_of.values())
            name = target.__name__ if _is_optimiser(target) else _short(target)
            self.name_of[target] = name if name not in taken else f"{name}_{len(taken)}"
        return self.name_of[target]

    @property
    def operators(self) -> str:
        rows = [
            f"{name} = {_looked_up(target)}\n"
            for target, name in sorted(self.name_of.items(), key=lambda row: row[1])
            if not _is_optimiser(target)
        ]
        return "".join(rows)

    @property
    def optimisers(self) -> tuple[str, ...]:
        used = {name: t for t, name in self.name_of.items() if _is_optimiser(t)}
        return tuple(inspect.getsource(used[name]) for name in sorted(used))


def _parts(target: Any) -> tuple[str, str, str]:
    """Library, operator and overload: "aten", "add", "Tensor"."""
    return target.namespace, target.overloadpacket.__name__, target._overloadname


def _short(target: Any) -> str:
    return "_".join(re.sub(r"\W", "_", part, flags=re.ASCII) for part in _parts(target))


def _looked_up(target: Any) -> str:
    text = "torch.ops"
    for part in _parts(target):
        plain = part.isascii() and part.isidentifier() and not keyword.iskeyword(part)
        text = f"{text}.{part}" if plain else f"getattr({text}, {part!a})"
    return text


@dataclass(frozen=True)
class Literals:
    """See `placement.formats.torch.source.Words`: everything written out, for one segment.

    A program was traced on one device; whatever it makes there is made on the segment's.
    """

    names: _Names
    program: TorchProgram
    layout: Layout
    segment: int

    def function(self, node: Node) -> str:
        # What another device makes may lie in memory in another order than where this was traced.
        elsewhere = any(device != CPU for device in self.layout.device_of)
        is_view = node.target is ATEN.view.default
        return self.names.of(ATEN.reshape.default if is_view and elsewhere else node.target)

    def constant(self, value: Any) -> str:
        return literal(value, self.layout.device_of[self.segment])

    def keywords(self, node: Node) -> Mapping[str, Any]:
        given = dict(node.kwargs)
        takes = [a.name for a in getattr(getattr(node.target, "_schema", None), "arguments", ())]
        if "device" in takes[len(node.args) :] and not node.all_input_nodes:
            given["device"] = torch.device(self.layout.device_of[self.segment])
        return given

    def keyword(self, name: str, text: str) -> str:
        plain = name.isascii() and name.isidentifier() and not keyword.iskeyword(name)
        return f"{name}={text}" if plain else f"**{{{name!a}: {text}}}"

    def read(self, name: str) -> str:
        slot, sent = self.layout.read(name, self.segment)
        if sent is None:
            return f"v[{slot}]"
        device = ascii(self.layout.device_of[self.segment])
        value = self.program.nodes[name].meta.get("val")
        if isinstance(value, torch.Tensor):
            return f"v[{sent}] = v[{slot}].to({device})"
        if isinstance(value, list | tuple):
            return f"v[{sent}] = [each.to({device}) for each in v[{slot}]]"
        return f"v[{sent}] = v[{slot}]"


def literal(value: Any, device: str) -> str:
    """A value as Python text; a ValueError for types that no operator takes."""
    if value is None or type(value) in (bool, int, str):
        return ascii(value)
    if type(value) is float:
        return repr(value) if abs(value) < float("inf") else f"float({str(value)!r})"
    if type(value) is complex:
        return f"complex({literal(value.real, device)}, {literal(value.imag, device)})"
    if isinstance(value, torch.device):
        return f"torch.device({device!a})"
    if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
        return str(value)
    if isinstance(value, fx.immutable_collections.immutable_list | list):
        return f"[{', '.join(literal(each, device) for each in value)}]"
    if isinstance(value, tuple):
        return f"({''.join(literal(each, device) + ', ' for each in value).strip()})"
    raise ValueError(
        f"The model calls an operator with a {type(value).__name__}, which this format cannot write"
        " down; export the module with plain numbers instead."
    )
