"""What a program will hold in memory, known and checked before anything is allocated."""

from collections.abc import Mapping, Sequence

from placement.core.machine import Device, Machine
from profiling.backends._ort_optimise import Optimised
from profiling.backends._ort_parts import Part


def peak_bytes(
    optimised: Optimised,
    parts: Sequence[Part],
    devices: Sequence[Device],
    buffer_of: Mapping[str, int],
    capacity: Sequence[int],
) -> dict[str, int]:
    """Bytes of weights and border buffers by device; a buffer counts where it is first written."""
    weight = {t.name: optimised.num_bytes(t) for t in optimised.model.graph.initializer}
    peak = {device.name: 0 for device in devices}
    seen: set[str | int] = set()
    for part, device in zip(parts, devices, strict=True):
        for name in part.weights:
            if name not in seen:
                seen.add(name)
                peak[device.name] += weight.get(name, 0)
        for name in part.outputs:
            number = buffer_of.get(name)
            if number is not None and number not in seen:
                seen.add(number)
                peak[device.name] += capacity[number]
    return peak


def check_memory(peak: Mapping[str, int], machine: Machine) -> None:
    """ValueError where a device, or the host for all devices on it, has less memory than needed."""
    import psutil

    on_host = 0
    for name, num_bytes in peak.items():
        device = machine.device(name)
        on_host += num_bytes if device.on_host else 0
        if device.memory_bytes is not None and num_bytes > device.memory_bytes:
            raise ValueError(
                f"Weights and values on {name!r} need {num_bytes} bytes, it has"
                f" {device.memory_bytes}; move some ops to another device."
            )
    free = psutil.virtual_memory().available
    if on_host > free:
        raise ValueError(
            f"Weights and values in host memory need {on_host} bytes, {free} are free; close other"
            " programs or place less on the CPU."
        )
