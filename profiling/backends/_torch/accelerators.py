"""Devices that the installed PyTorch has besides the CPU: CUDA (ROCm's too), XPU and Metal.

PyTorch is asked in a process of its own: loading it takes seconds and memory, a driver that starts
keeps memory on its GPU, and one that fails may take the process with it. Nobody is asked where the
build or the computer cannot have any.
"""

import functools
import json
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from placement.core.machine import Device
from profiling.backends.base import NOMINAL

# A device counts when it adds two numbers.
_PROBE = """
import json, torch
found = []
def add(kind, number, label, memory_bytes, about=None):
    name = f"{kind}:{number}"
    try:
        torch.ones(1, device=name).add(1).cpu()
    except Exception:
        return
    read = lambda field: int(getattr(about, field, 0) or 0)
    found.append({
        "name": name, "provider": kind, "label": label, "memory_bytes": int(memory_bytes),
        "cores": read("multi_processor_count"), "generation": [read("major"), read("minor")],
        "clock_khz": read("clock_rate"), "memory_clock_khz": read("memory_clock_rate"),
        "bus_bits": read("memory_bus_width"),
    })
for kind in ("cuda", "xpu"):
    module = getattr(torch, kind, None)
    if module is not None and module.is_available():
        for number in range(module.device_count()):
            about = module.get_device_properties(number)
            add(kind, number, about.name, about.total_memory, about)
if torch.backends.mps.is_available():
    add("mps", 0, "Apple GPU", torch.mps.recommended_max_memory())
print(json.dumps(found))
"""
# What a driver leaves in /dev: NVIDIA's, Windows' for its Linux, AMD's, and any for graphics.
_DRIVERS = ("nvidia[0-9]*", "dxg", "kfd", "dri/renderD*")
# Accelerators whose launches are captured and replayed (`replays.py`).
CAPTURED = ("cuda",)
_NARROW = ((6, 0), (7, 0), (7, 2), (7, 5), (8, 0))


def accelerators() -> tuple[Device, ...]:
    """A device for every accelerator that PyTorch can use here, under PyTorch's own names."""
    return tuple(map(_device, _probed())) if _possible() else ()


def why_none() -> str:
    """Why PyTorch has no accelerator here, as the rest of a sentence."""
    if _is_cpu_build():
        return "the installed PyTorch is built for the CPU alone, pytorch.org has others"
    return "PyTorch finds no such device on this computer"


def _possible() -> bool:
    """Whether asking PyTorch is worth its while."""
    if torch_version() is None or _is_cpu_build():
        return False
    dev = Path("/dev")
    return sys.platform != "linux" or any(any(dev.glob(pattern)) for pattern in _DRIVERS)


def torch_version() -> str | None:
    """The installed PyTorch, None where there is none."""
    try:
        return version("torch")
    except PackageNotFoundError:
        return None


def _is_cpu_build() -> bool:
    return (torch_version() or "").endswith("+cpu")


@functools.cache
def _probed() -> tuple[dict[str, Any], ...]:
    """What PyTorch says, asked once per process; nothing where it fails or hangs."""
    with suppress(OSError, subprocess.SubprocessError, ValueError, IndexError):
        done = subprocess.run(
            (sys.executable, "-c", _PROBE), capture_output=True, text=True, timeout=120, check=True
        )
        return tuple(json.loads(done.stdout.strip().splitlines()[-1]))
    return ()


def _device(found: dict[str, Any]) -> Device:
    flops_per_s, memory_bytes_per_s = _speeds(found)
    return Device(
        name=found["name"],
        kind="gpu",
        runtime="torch",
        provider=found["provider"],
        memory_bytes=found["memory_bytes"] or None,
        flops_per_s=flops_per_s,
        memory_bytes_per_s=memory_bytes_per_s,
        label=found["label"],
    )


def _speeds(found: dict[str, Any]) -> tuple[float, float]:
    """Peak float32 arithmetic and memory speed where the driver tells, else nominal figures.

    An NVIDIA multiprocessor has 64 or 128 float32 units by generation, each multiplies and adds in
    a clock; memory moves twice in its clock.
    """
    flops_per_s, memory_bytes_per_s = NOMINAL["gpu"]
    if found["provider"] != "cuda":
        return flops_per_s, memory_bytes_per_s
    width = 64 if tuple(found["generation"]) in _NARROW else 128
    told = 2e3 * found["cores"] * width * found["clock_khz"]
    told_bytes = 2e3 * found["memory_clock_khz"] * found["bus_bits"] / 8
    return float(told or flops_per_s), float(told_bytes or memory_bytes_per_s)
