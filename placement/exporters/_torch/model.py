"""What the formats for PyTorch share: whether a model is one, and its devices in torch's words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from placement.core.machine import Device, Machine
from placement.core.model import Model
from placement.exporters.base import without_content

if TYPE_CHECKING:
    from placement.formats.torch.program import TorchProgram

CPU = "cpu"
_DEVICE = re.compile(r"(cuda|xpu)(:\d{1,3})?|mps(:0)?")


def not_torch(model: Model) -> str:
    """Why a model has no PyTorch program to write, empty if it has."""
    lacking = "not a PyTorch model; this format is made of its modules"
    return without_content(model, "torch", lacking)


def without_weights(model: Model) -> str:
    """Why a format that holds the weights has nothing to write of a model, empty if it has."""
    if model.has_weights:
        return ""
    return (
        f"{model.graph.name!r} has no weights (it is a configuration), so no file of it can"
        " run; export its device map, or a picture."
    )


def program_of(model: Model) -> TorchProgram:
    """The program of a model that `not_torch` has nothing against."""
    found: TorchProgram = model.content()
    return found


def torch_device(machine: Machine, device: Device) -> str:
    """The device as torch calls it: "cpu" for every lane of the CPU, "cuda:1", "mps".

    GPUs that are called otherwise (of a machine that is emulated) get the numbers that no name has,
    in order: those of their provider's devices, else of CUDA's.
    """
    if device.streams_from:
        raise ValueError(
            f"PyTorch has no word for the device {device.name!r}, whose weights stream; export a"
            " device map, or place its ops elsewhere."
        )
    if device.on_host:
        return CPU
    if _DEVICE.fullmatch(device.name):
        return device.name
    kind = _unnumbered(device)
    if kind == "mps":
        return kind
    if kind:
        others = [d.name for d in machine.devices if _unnumbered(d) == kind]
        words = (f"{kind}:{number}" for number in range(2 * len(machine.devices)))
        free = [word for word in words if word not in machine.index]
        return free[others.index(device.name)]
    raise ValueError(
        f"PyTorch has no word for the device {device.name!r} ({device.kind}); place its ops on a"
        " CPU or a GPU."
    )


def _unnumbered(device: Device) -> str:
    """What kind of device one is whose name does not say it; empty for those that torch lacks."""
    if device.on_host or _DEVICE.fullmatch(device.name):
        return ""
    provider = device.provider if _DEVICE.fullmatch(device.provider) else ""
    return provider.partition(":")[0] or ("cuda" if device.kind == "gpu" else "")


def refused_device(machine: Machine, names: Iterable[str]) -> str:
    """Why PyTorch cannot use one of these devices, empty if it can use all."""
    for name in dict.fromkeys(names):
        try:
            torch_device(machine, machine.device(name))
        except ValueError as error:
            return str(error)
    return ""
