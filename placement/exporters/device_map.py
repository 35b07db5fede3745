"""A device map for Hugging Face accelerate: which module of a PyTorch model goes to which device.

`json.load` of the file is the `device_map` of `dispatch_model` and `from_pretrained`: module paths
to torch's devices, a number for a CUDA device. A longer path goes before a shorter one. Weights
that stream are on "cpu": accelerate keeps them there and sends them to the first accelerator, which
computes with them, whenever their module is called.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from placement.core.machine import Machine
from placement.exporters.base import Export, Exporter
from placement.files.output import write_text

if TYPE_CHECKING:
    from placement.exporters._torch.module_map import ModuleMap

CPU = "cpu"
MOST_NAMES = 3


class DeviceMap(Exporter):
    """Writes one JSON object; `note` says what modules cannot express of the placement."""

    name = "device-map"
    title = "accelerate device map"
    summary = "a device for every module, for Hugging Face accelerate (inference)"
    suffix = ".json"

    def missing(self, export: Export) -> str:
        from placement.exporters._torch.model import not_torch, program_of, refused_device

        reason = not_torch(export.model)
        if reason:
            return reason
        if any(op.phase != "forward" for op in export.model.graph.ops):
            return (
                f"{export.model.graph.name!r} is a training step, and a device map is for"
                " inference; export it as a PyTorch module instead."
            )
        if not program_of(export.model).kernels:
            return f"{export.model.graph.name!r} has no ops, so there is nothing to put anywhere."
        machine = export.problem.machine
        used = dict.fromkeys(export.placement.device_of.values())
        return refused_device(machine, (machine.device(name).engine or name for name in used))

    def note(self, export: Export) -> str:
        """What a map of modules leaves out of this placement, in a sentence or two."""
        found = _modules(export)
        machine = export.problem.machine
        used = dict.fromkeys(export.placement.device_of.values())
        lanes = [name for name in used if machine.device(name).on_host]
        engines = {machine.device(name).engine for name in used} - {""}
        said = []
        if len(lanes) > 1:
            said.append("The library accelerate knows one CPU, so all lanes of it are one device.")
        split = _split(export, found)
        if split:
            said.append(
                f"A device map cannot divide the work of one module: {_listed(split)}"
                f" {'goes' if len(split) == 1 else 'go'} where most of it is placed."
            )
        runs_on = _runs_on(found.entries)
        if {_word(machine, engine) for engine in engines} - {_main(found.entries)}:
            said.append(
                "The library accelerate lets weights stream to one accelerator alone, the first of"
                f" the map ({_main(found.entries)}), which then computes what streams to others."
            )
        if lanes and runs_on != found.entries:
            said.append(
                "The library accelerate keeps the weights of modules placed on the CPU there, but"
                " computes these modules on an accelerator."
            )
        mixing = found.mixing(runs_on)
        if mixing:
            said.append(
                f"{_listed(mixing)} would get tensors from two devices at once, which the library"
                " accelerate does not bring together; place each as a whole."
            )
        return " ".join(said)

    def export(self, export: Export, path: Path) -> None:
        content = {name: _short(device) for name, device in _modules(export).entries.items()}
        write_text(path, json.dumps(content, indent=1) + "\n")


def _modules(export: Export, *, where_computed: bool = False) -> "ModuleMap":
    """Modules where their weights are kept, or where they are computed."""
    from placement.exporters._torch.model import program_of
    from placement.exporters._torch.module_map import ModuleMap

    machine, graph = export.problem.machine, export.model.graph
    used = dict.fromkeys(export.placement.device_of.values())
    word_of = {name: _word(machine, machine.device(name).engine or name) for name in used}
    streaming = {name for name in used if machine.device(name).streams_from}
    device_of = {op: word_of[device] for op, device in export.placement.device_of.items()}
    for op in (op for op in graph.ops if op.param_bytes and not where_computed):
        if export.placement.device_of[op.name] in streaming:
            device_of[op.name] = CPU
    return ModuleMap(program_of(export.model), device_of)


def _word(machine: Machine, name: str) -> str:
    from placement.exporters._torch.model import torch_device

    return torch_device(machine, machine.device(name))


def _split(export: Export, found: "ModuleMap") -> tuple[str, ...]:
    """Modules whose ops are computed in several places, or whose weights are kept in several."""
    apart = set(_modules(export, where_computed=True).split)
    modules = (m for m in found.root.all() if m.name in apart or len(m.param_bytes) > 1)
    return tuple(module.name for module in modules)


def _main(entries: Mapping[str, str]) -> str:
    """The device that computes what is kept on the CPU: the first accelerator of the map."""
    return next((device for device in entries.values() if device != CPU), CPU)


def _runs_on(entries: dict[str, str]) -> dict[str, str]:
    """Where accelerate computes each module: what is kept on the CPU on the first accelerator."""
    main = _main(entries)
    return {name: main if device == CPU else device for name, device in entries.items()}


def _short(device: str) -> str | int:
    """A CUDA device by its number, as accelerate writes it."""
    kind, _, number = device.partition(":")
    return int(number or 0) if kind == "cuda" else device


def _listed(names: Sequence[str]) -> str:
    shown = [repr(name or "the model itself") for name in names[:MOST_NAMES]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


EXPORTER = DeviceMap()
