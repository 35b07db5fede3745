"""What a program has besides its sessions: buffers, inputs, outputs that nobody computes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placement.core.machine import Device, Machine
from placement.core.schedule import Schedule
from profiling.backends._ort.buffers import share_buffers
from profiling.backends._ort.memory import peak_bytes
from profiling.backends._ort.optimise import Optimised
from profiling.backends._ort.parts import Part
from profiling.backends._ort.values import Value
from profiling.backends.base import Feeds
from profiling.devices.memory import check_memory

ALIGNMENT = 4096


@dataclass(frozen=True, eq=False)
class Layout:
    """The parts of a schedule with their devices, and where the values between them lie.

    `names` are the model's outputs; `constants` those that no part makes, by number of `feeds`.
    `fixed` are the values that have one size in every run and lie in buffers, `buffer_of` and
    `capacity` say in which and how large these are.
    """

    parts: tuple[Part, ...]
    devices: tuple[Device, ...]
    names: tuple[str, ...]
    feeds: tuple[Feeds, ...]
    constants: tuple[dict[str, Any], ...]
    fixed: Mapping[str, Value]
    buffer_of: Mapping[str, int]
    capacity: Sequence[int]
    peak_bytes: Mapping[str, int]

    @classmethod
    def of(
        cls,
        optimised: Optimised,
        values: Mapping[str, Value],
        schedule: Schedule,
        parts: Sequence[Part],
        machine: Machine,
        feeds: Sequence[Feeds],
        depth: int = 1,
    ) -> "Layout":
        """ValueError where the devices' memory does not hold weights and `depth` times buffers."""
        names = tuple(value.name for value in optimised.model.graph.output)
        fixed = {n: values[n] for part in parts for n in part.outputs if values[n].fixed}
        sizes = {name: value.num_bytes for name, value in fixed.items()}
        kept = _kept(names, parts, values)
        buffer_of, capacity = share_buffers(schedule, parts, sizes, kept)
        devices = tuple(machine.device(segment.device) for segment in schedule.segments)
        peak = peak_bytes(optimised, parts, devices, buffer_of, capacity, depth)
        check_memory(peak, machine)
        return cls(
            parts=tuple(parts),
            devices=devices,
            names=names,
            feeds=tuple(feeds),
            constants=tuple(_constant_outputs(optimised, parts, one) for one in feeds),
            fixed=fixed,
            buffer_of=buffer_of,
            capacity=capacity,
            peak_bytes=peak,
        )

    def allocate(self) -> dict[str, np.ndarray[Any, Any]]:
        """Arrays in new buffers for all values that are `fixed`."""
        buffers = [_aligned(size) for size in self.capacity]
        return {n: _view(buffers[self.buffer_of[n]], value) for n, value in self.fixed.items()}


def _kept(names: Sequence[str], parts: Sequence[Part], values: Mapping[str, Value]) -> set[str]:
    """Values whose buffers nothing else may use: the model's outputs, and what parts read that make
    dictionaries, for these are run once more when the outputs are fetched.
    """
    again = (part for part in parts if any("map(" in values[n].type for n in part.outputs))
    return {*names, *(name for part in again for name in part.inputs)}


def _aligned(size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    memory = np.empty(size + ALIGNMENT, dtype=np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size]


def _view(memory: np.ndarray[Any, np.dtype[np.uint8]], value: Value) -> np.ndarray[Any, Any]:
    assert value.dtype is not None and value.shape is not None
    return memory[: value.num_bytes].view(value.dtype).reshape(value.shape)


def _constant_outputs(
    optimised: Optimised, parts: Sequence[Part], feeds: Mapping[str, Any]
) -> dict[str, Any]:
    """Outputs that no kernel computes: inputs handed through and weights."""
    from onnx import numpy_helper

    made = {name for part in parts for name in part.outputs}
    names = [v.name for v in optimised.model.graph.output if v.name not in made]
    found = {name: feeds[name] for name in names if name in feeds}
    for tensor in optimised.model.graph.initializer:
        if tensor.name in names:
            found[tensor.name] = numpy_helper.to_array(optimised.with_data(tensor))
    return found
