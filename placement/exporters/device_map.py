"""A device map for Hugging Face accelerate: which module of a PyTorch model goes to which device.

`json.load` of the file is the `device_map` of `dispatch_model` and `from_pretrained`: module paths
to torch's devices, a number for a CUDA device. A longer path goes before a shorter one.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

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
        return refused_device(export.problem.machine, export.placement)

    def note(self, export: Export) -> str:
        """What a map of modules leaves out of this placement, in a sentence or two."""
        found = _modules(export)
        machine = export.problem.machine
        used = dict.fromkeys(export.placement.device_of.values())
        lanes = [name for name in used if machine.device(name).on_host]
        said = []
        if len(lanes) > 1:
            said.append("The library accelerate knows one CPU, so all lanes of it are one device.")
        if found.split:
            said.append(
                f"A device map cannot divide the work of one module: {_listed(found.split)}"
                f" {'goes' if len(found.split) == 1 else 'go'} where most of it is placed."
            )
        runs_on = _runs_on(found.entries)
        if runs_on != found.entries:
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


def _modules(export: Export) -> "ModuleMap":
    from placement.exporters._torch.model import program_of, torch_device
    from placement.exporters._torch.module_map import ModuleMap

    machine = export.problem.machine
    used = dict.fromkeys(export.placement.device_of.values())
    word_of = {name: torch_device(machine, machine.device(name)) for name in used}
    device_of = {op: word_of[device] for op, device in export.placement.device_of.items()}
    return ModuleMap(program_of(export.model), device_of)


def _runs_on(entries: dict[str, str]) -> dict[str, str]:
    """Where accelerate computes each module: what is kept on the CPU on the first accelerator."""
    main = next((device for device in entries.values() if device != CPU), CPU)
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
