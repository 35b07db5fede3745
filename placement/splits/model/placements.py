"""From splits of an instance back to placements of its problem."""

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.splits.model.contract import Units
from placement.splits.model.instance import SplitInstance, device_columns


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


def placement_of(problem: Problem, device_of_class: Ints) -> Placement:
    """The placement with each colour class (the problem's units) on a device of the instance."""
    columns = np.array(device_columns(problem).all, dtype=np.int64)
    devices = problem.allowed.argmax(axis=1)
    devices[: len(device_of_class)] = columns[device_of_class]
    return problem.placement_of(devices)


def placement_of_calls(
    problem: Problem, instance: SplitInstance, slot_of_class: Ints, calls_each: int
) -> Placement:
    """The placement whose accelerators run the calls of slots (-1: CPUs), in their order."""
    k = instance.num_accelerators
    cpu_of_class = k + instance.allowed[:, k:].argmax(axis=1) if instance.num_cpus else k
    device_of_class = np.where(slot_of_class >= 0, slot_of_class // calls_each, cpu_of_class)
    placement = placement_of(problem, device_of_class)
    if calls_each == 1:
        return placement
    kernels = _kernels_by_call(problem, instance, slot_of_class, calls_each)
    names = [problem.machine.devices[i].name for i in device_columns(problem).accelerators]
    used = np.unique(slot_of_class[slot_of_class >= 0]) // calls_each
    counts = np.bincount(used, minlength=k)
    calls = {name: max(1, int(n)) for name, n in zip(names, counts, strict=True)}
    order = problem.placement_of(np.zeros(problem.num_units, dtype=np.int64), kernels).order
    return replace(placement, order=order, calls=calls)


def _turn(accelerator: int, last: int) -> int:
    """How soon a kernel on a CPU (-1), or a call of an accelerator, comes after the last item."""
    if accelerator < 0:
        return 1
    return 2 if accelerator == last else 0


def _kernels_by_call(
    problem: Problem, instance: SplitInstance, slot_of_class: Ints, calls_each: int
) -> list[int]:
    """All kernels in an order that runs each call in one go.

    Two calls of one accelerator in a row would be one, and wait for the inputs of both. So after a
    call another accelerator's comes next, else a CPU kernel, of which no more are spent than that.
    """
    num = instance.num_nodes
    slot = slot_of_class[instance.class_of]
    item = np.where(slot >= 0, num + slot, np.arange(num)).tolist()
    after: dict[int, set[int]] = {i: set() for i in item}
    for n, readers in enumerate(problem.kernels.successors):
        after[item[n]].update(item[r] for r in readers if item[r] != item[n])
    called = sorted(i for i in after if i >= num)
    for first, second in pairwise(called):
        if (first - num) // calls_each == (second - num) // calls_each:
            after[first].add(second)
    members: dict[int, list[int]] = {}
    for n, i in enumerate(item):
        members.setdefault(i, []).append(n)
    waiting = dict.fromkeys(after, 0)
    for targets in after.values():
        for i in sorted(targets):
            waiting[i] += 1
    ready = [i for i in sorted(after) if not waiting[i]]
    order: list[int] = []
    last = -1
    while ready:
        accelerator = {i: (i - num) // calls_each if i >= num else -1 for i in ready}
        nearest = min(ready, key=lambda i: (_turn(accelerator[i], last), i))
        ready.remove(nearest)
        last = accelerator[nearest]
        order += members[nearest]
        for i in sorted(after[nearest]):
            waiting[i] -= 1
            if not waiting[i]:
                ready.append(i)
    assert len(order) == num, "calls wait for each other in a cycle"
    return order
