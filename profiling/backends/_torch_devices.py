"""Accelerators that PyTorch reaches, as devices."""

import torch

from placement.core.machine import Device

# Arithmetic and memory speeds serve estimates only.
NOMINAL_FLOPS_PER_S, NOMINAL_BYTES_PER_S = 1e13, 5e11


def accelerators(runtime: str) -> tuple[Device, ...]:
    """Every accelerator of the installed build that is here, named like torch names it."""
    if not torch.accelerator.is_available():
        return ()
    kind = str(torch.accelerator.current_accelerator())
    return tuple(_device(kind, i, runtime) for i in range(torch.accelerator.device_count()))


def _device(kind: str, number: int, runtime: str) -> Device:
    label, memory_bytes = kind, None
    if kind == "cuda":
        found = torch.cuda.get_device_properties(number)
        label, memory_bytes = found.name, int(found.total_memory)
    return Device(
        f"{kind}:{number}",
        "gpu",
        runtime,
        f"{kind}:{number}",
        memory_bytes,
        flops_per_s=NOMINAL_FLOPS_PER_S,
        memory_bytes_per_s=NOMINAL_BYTES_PER_S,
        label=label,
    )
