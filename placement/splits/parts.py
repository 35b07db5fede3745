"""Devices for the parts of a split: those that units are pinned to first, the others in order."""

import numpy as np

from placement.core.graph import Ints
from placement.splits.contract import Units


def devices_of_parts(units: Units, parts: list[tuple[bool, Ints]]) -> Ints:
    """Device of each unit (U,), given parts as (on a CPU, units), at most one pin in each.

    Parts are as many as there are devices at most; a part without a pin takes the first device of
    its kind that no pin has.
    """
    instance = units.instance
    taken = {int(units.pinned[part].max()) for _, part in parts} - {-1}
    free = [d for d in range(instance.num_devices) if d not in taken]
    device_of_unit = np.full(units.num_units, -1, dtype=np.int64)
    for on_cpu, part in parts:
        device = int(units.pinned[part].max())
        if device < 0:
            device = next(d for d in free if (d >= instance.num_accelerators) == on_cpu)
            free.remove(device)
        device_of_unit[part] = device
    return device_of_unit


def call_devices(units: Units, parts: list[tuple[bool, Ints]]) -> Ints:
    """The same for calls: any number of parts may run on CPUs, and each unit on its own CPU."""
    calls = [part for part in parts if not part[0]]
    device_of_unit = devices_of_parts(units, calls)
    on_cpu = device_of_unit < 0
    first_cpu = units.instance.num_accelerators
    device_of_unit[on_cpu] = np.maximum(units.pinned[on_cpu], first_cpu)
    return device_of_unit
