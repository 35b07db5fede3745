"""Devices for the parts of a split: those that units are pinned to first, the others in order."""

from typing import NamedTuple

import numpy as np

from placement.core.graph import Ints
from placement.splits.model.contract import Units


class Part(NamedTuple):
    """Units that a device holds, or that each of some accelerators holds, which share the load."""

    on_cpu: bool
    units: Ints
    replicas: int = 1


def devices_of_parts(units: Units, parts: list[Part]) -> tuple[Ints, Ints]:
    """Device of each unit (U,), and accelerators that share each device's part (D,).

    There are as many devices as parts need, and at most one pin in each part; a part without a pin
    takes the first device of its kind that no pin has.
    """
    instance = units.instance
    taken = {int(units.pinned[part.units].max()) for part in parts} - {-1}
    free = [d for d in range(instance.num_devices) if d not in taken]
    device_of_unit = np.full(units.num_units, -1, dtype=np.int64)
    replicas = np.ones(instance.num_devices, dtype=np.int64)
    for part in parts:
        device = int(units.pinned[part.units].max())
        if device < 0:
            device = next(d for d in free if (d >= instance.num_accelerators) == part.on_cpu)
            free.remove(device)
        device_of_unit[part.units] = device
        replicas[device] = part.replicas
    return device_of_unit, replicas


def call_devices(units: Units, parts: list[Part]) -> Ints:
    """The same for calls: any number of parts may run on CPUs, and each unit on its own CPU."""
    calls = [part for part in parts if not part.on_cpu]
    device_of_unit, _ = devices_of_parts(units, calls)
    on_cpu = device_of_unit < 0
    first_cpu = units.instance.num_accelerators
    device_of_unit[on_cpu] = np.maximum(units.pinned[on_cpu], first_cpu)
    return device_of_unit
