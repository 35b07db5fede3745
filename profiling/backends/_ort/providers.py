"""Devices of the installed onnxruntime besides the CPU: every execution provider that really works.

A provider counts when a session on it can be made, tried once in a process of its own: drivers
write to the terminal, and some crash where the hardware they expect is missing.
"""

import functools
import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass

from placement.core.machine import Device
from profiling.backends._ort.sessions import CPU
from profiling.backends.base import NOMINAL
from profiling.devices.cores import host_memory_bytes

# Providers that compute elsewhere than on this computer, or are the CPU that the lanes stand for.
_NOT_DEVICES = ("AzureExecutionProvider", CPU)
_SHORT = {"DmlExecutionProvider": "directml"}
_KIND = {
    "ACL": "cpu",
    "ArmNN": "cpu",
    "CoreML": "npu",
    "Dnnl": "cpu",
    "OpenVINO": "cpu",
    "QNN": "npu",
    "RKNPU": "npu",
    "SNPE": "npu",
    "VSINPU": "npu",
    "Xnnpack": "cpu",
}
_PROBE = """
import json, sys
import onnxruntime as ort
options = ort.SessionOptions()
options.log_severity_level = 4
if sys.argv[1].startswith(("CUDA", "Tensorrt")) and hasattr(ort, "preload_dlls"):
    ort.preload_dlls()  # what it says goes before the answer
model = bytes.fromhex(sys.argv[2])
session = ort.InferenceSession(model, options, providers=[sys.argv[1]], enable_fallback=0)
print(json.dumps(session.get_providers()[0] == sys.argv[1]))
"""
# Relu of one float as an ONNX model (IR version 8, opset 13): a probe needs no onnx package.
_RELU = (
    "08083a320a0c0a0178120179220452656c7512005a0f0a0178120a0a08080112"
    "040a020801620f0a0179120a0a08080112040a02080142040a00100d"
)


@dataclass(frozen=True)
class _Found:
    """A provider's device as onnxruntime lists it."""

    provider: str
    kind: str
    label: str


def providers() -> tuple[Device, ...]:
    """A device for every execution provider that works here, numbered by provider ("cuda:0").

    Empty where onnxruntime is not installed or has only its CPU provider.
    """
    try:
        import onnxruntime
    except ImportError:
        return ()
    listed = [
        _Found(
            device.ep_name,
            device.device.type.name.lower(),
            device.device.metadata.get("Description", ""),
        )
        for device in onnxruntime.get_ep_devices()
    ]
    # Providers without a device list of their own, or none for this hardware, still may work.
    names = {found.provider for found in listed}
    listed += [_Found(p, "", "") for p in onnxruntime.get_available_providers() if p not in names]
    devices: list[Device] = []
    numbers: dict[str, int] = {}
    for found in listed:
        if found.provider in _NOT_DEVICES or not works(found.provider):
            continue
        name = short_name(found.provider)
        numbers[name] = numbers.get(name, -1) + 1
        devices.append(_device(name, numbers[name], found))
    return tuple(devices)


def short_name(provider: str) -> str:
    """What a provider's devices are called: "cuda" for CUDAExecutionProvider."""
    return _SHORT.get(provider, provider.removesuffix("ExecutionProvider").lower())


@functools.cache
def works(provider: str) -> bool:
    """Whether a session on this provider can be made here; tried once per process."""
    command = (sys.executable, "-c", _PROBE, provider, _RELU)
    with suppress(OSError, subprocess.SubprocessError, ValueError):
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        return json.loads(done.stdout.strip().splitlines()[-1]) is True
    return False


def _device(name: str, number: int, found: _Found) -> Device:
    kind = found.kind or _KIND.get(found.provider.removesuffix("ExecutionProvider"), "gpu")
    flops_per_s, memory_bytes_per_s = NOMINAL[kind]
    memory_bytes = host_memory_bytes() if kind == "cpu" else None
    label = found.label or found.provider
    if name in ("cuda", "tensorrt", "nvtensorrtrtx"):
        told = _nvidia(number)
        if told is not None:
            label, memory_bytes, flops_per_s, memory_bytes_per_s = told
    return Device(
        name=f"{name}:{number}",
        kind=kind,
        runtime="onnxruntime",
        provider=found.provider,
        memory_bytes=memory_bytes,
        flops_per_s=flops_per_s,
        memory_bytes_per_s=memory_bytes_per_s,
        label=label,
    )


def _nvidia(number: int) -> tuple[str, int, float, float] | None:
    """Name, memory, peak float32 arithmetic and memory speed of an NVIDIA GPU, as its driver says.

    Two operations per core and clock, two transfers per memory clock; None without the driver.
    """
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no library or no driver, each with its own kind of error
        return None
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(number)
        label = pynvml.nvmlDeviceGetName(handle)
        memory_bytes = int(pynvml.nvmlDeviceGetMemoryInfo(handle).total)
        flops_per_s, memory_bytes_per_s = NOMINAL["gpu"]
        with suppress(pynvml.NVMLError):
            clock = pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM)
            flops_per_s = 2e6 * clock * pynvml.nvmlDeviceGetNumGpuCores(handle)
        with suppress(pynvml.NVMLError):
            clock = pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_MEM)
            memory_bytes_per_s = 2e6 * clock * pynvml.nvmlDeviceGetMemoryBusWidth(handle) / 8
        return str(label), memory_bytes, flops_per_s, memory_bytes_per_s
    except pynvml.NVMLError:
        return None
    finally:
        with suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()
