"""What a program will hold in memory, known before anything is allocated."""

from collections.abc import Mapping, Sequence

from placement.core.machine import Device
from profiling.backends._ort_optimise import Optimised
from profiling.backends._ort_parts import Part


def peak_bytes(
    optimised: Optimised,
    parts: Sequence[Part],
    devices: Sequence[Device],
    buffer_of: Mapping[str, int],
    capacity: Sequence[int],
    depth: int,
) -> dict[str, int]:
    """Bytes of weights and border buffers by device; a buffer counts where it is first written.

    Weights are there once, buffers `depth` times.
    """
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
                peak[device.name] += depth * capacity[number]
    return peak
