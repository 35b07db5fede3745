"""Running a PyTorch program on CPU lanes: in segments, or whole as the framework runs it by itself.

Values that cross borders are handed on in one list; nothing is copied between lanes of the CPU. A
step starts from the same state every time: what it would update is among its outputs.
"""

import copy
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from placement.core.machine import Device, Machine
from placement.core.schedule import Schedule
from placement.loaders._torch_program import Node, TorchProgram, num_bytes
from placement.loaders._torch_source import functions
from profiling.backends.base import Program
from profiling.cores import usable_cores

_thread = threading.local()


class PlacedTorch(Program):
    """See `profiling.backends.base.Program`; with several `feeds` the inputs can be changed."""

    def __init__(
        self,
        program: TorchProgram,
        schedule: Schedule,
        machine: Machine,
        feeds: Sequence[Mapping[str, Any]],
    ) -> None:
        devices = [machine.device(segment.device) for segment in schedule.segments]
        self._program, self._feeds = program, feeds
        self._cores = [device.cores for device in devices]
        segments = [segment.kernels for segment in schedule.segments]
        self._run, self._shared = functions(program, segments)
        self.actual_devices = {device.name: "cpu" for device in devices}
        self.peak_bytes = planned_peak_bytes(program, schedule)
        self._allocate()

    def beside(self) -> "PlacedTorch":
        """A program of the same functions with values of its own."""
        other = copy.copy(self)
        other._allocate()
        return other

    def _allocate(self) -> None:
        self._values: list[Any] = [None] * len(self._shared)
        for name, value in self._program.state.items():
            self._values[self._shared[name]] = value
        self.feed(0)

    def feed(self, number: int) -> None:
        for name in self._program.inputs:
            label = self._program.labels.get(name, name)
            self._values[self._shared[name]] = self._feeds[number][label]

    def advance(self) -> None:
        new = [self._values[self._shared[node]] for _, node in self._program.updates]
        for (held, _), value in zip(self._program.updates, new, strict=True):
            self._values[self._shared[held]] = value

    def state(self) -> dict[str, Any]:
        return {held: self._values[self._shared[held]] for held, _ in self._program.updates}

    def take_state(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            self._values[self._shared[name]] = value

    def run(self, segment: int) -> None:
        use_threads(self._cores[segment])
        self._run[segment](self._values)

    def outputs(self) -> dict[str, Any]:
        return named_outputs(self._program, lambda name: self._values[self._shared[name]])

    def output(self, name: str) -> Any:
        return as_array(self._values[self._shared[dict(self._program.outputs)[name]]])

    def close(self) -> None:
        self._values = []


class WholeTorch(Program):
    """The whole graph by the framework's own executor, with a lane's cores or all of the CPU's."""

    def __init__(
        self, program: TorchProgram, device: Device | None, feeds: Mapping[str, Any]
    ) -> None:
        from torch import fx

        self._program = program
        self._cores = len(usable_cores()) if device is None else device.cores
        names = list(dict.fromkeys(n for _, n in (*program.outputs, *program.updates)))
        graph = fx.Graph()
        made: dict[Node, Node] = {}
        for node in program.graph.nodes:
            if node.op != "output":
                made[node] = graph.node_copy(node, made.__getitem__)
        graph.output(tuple(made[program.nodes[name]] for name in names))
        self._names, self._module = names, fx.GraphModule({}, graph)
        given = {program.labels.get(n, n): n for n in program.inputs}
        values = {given[label]: value for label, value in feeds.items()} | dict(program.state)
        self._order = [n.name for n in program.graph.nodes if n.op == "placeholder"]
        self._arguments = [values.get(name) for name in self._order]
        self._results: tuple[Any, ...] = ()

    def run(self, segment: int) -> None:
        use_threads(self._cores)
        self._results = self._module(*self._arguments)

    def advance(self) -> None:
        made = dict(zip(self._names, self._results, strict=True))
        for held, name in self._program.updates:
            self._arguments[self._order.index(held)] = made[name]

    def state(self) -> dict[str, Any]:
        return {h: self._arguments[self._order.index(h)] for h, _ in self._program.updates}

    def take_state(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            self._arguments[self._order.index(name)] = value

    def outputs(self) -> dict[str, Any]:
        found = dict(zip(self._names, self._results, strict=True))
        return named_outputs(self._program, found.__getitem__)

    def close(self) -> None:
        self._arguments, self._results = [], ()


def use_threads(number: int) -> None:
    """Let the calling thread compute with this many threads; asked once per thread."""
    if getattr(_thread, "number", 0) != number:
        # A thread takes over what others have set when it first asks; so it asks first.
        torch.get_num_threads()
        torch.set_num_threads(number)
        _thread.number = number


def named_outputs(program: TorchProgram, value_of: Any) -> dict[str, Any]:
    """Outputs and, behind them, the state after the step, as arrays by label."""
    found = {label: as_array(value_of(name)) for label, name in program.outputs}
    for placeholder, name in program.updates:
        found[program.labels.get(placeholder, placeholder)] = as_array(value_of(name))
    return found


def as_array(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    value = value.detach().cpu()
    return (value.float() if value.dtype == torch.bfloat16 else value).numpy().copy()


def planned_peak_bytes(program: TorchProgram, schedule: Schedule) -> dict[str, int]:
    """State that each device reads, and what is alive at once of what its segments make.

    Values that other segments read are kept to the end of the step.
    """
    segment_of = schedule.segment_of
    readers: dict[str, set[int]] = {}
    for kernel in program.kernels:
        for value in program.reads(kernel):
            readers.setdefault(value.name, set()).add(segment_of[kernel.name])
    inner: dict[str, int] = {}
    kept: dict[str, int] = {}
    for i, segment in enumerate(schedule.segments):
        peak, shared = _segment_bytes(program, segment.kernels, i, readers)
        inner[segment.device] = max(inner.get(segment.device, 0), peak)
        kept[segment.device] = kept.get(segment.device, 0) + shared
    for name, value in program.state.items():
        for device in {schedule.segments[i].device for i in readers.get(name, ())}:
            kept[device] += num_bytes(value)
    return {device: inner[device] + kept[device] for device in inner}


def _segment_bytes(
    program: TorchProgram, kernels: Sequence[str], number: int, readers: Mapping[str, set[int]]
) -> tuple[int, int]:
    """The most bytes alive at once of what only this segment reads, and the bytes of the rest."""
    nodes = [program.nodes[name] for name in kernels]
    last = {value.name: j for j, k in enumerate(nodes) for value in program.reads(k)}
    ends: dict[int, int] = {}
    alive = peak = shared = 0
    for j, kernel in enumerate(nodes):
        for value in program.values[kernel.name]:
            size = num_bytes(value.meta.get("val"))
            if readers.get(value.name, set()) - {number}:
                shared += size
            else:
                alive += size
                end = last.get(value.name, j)
                ends[end] = ends.get(end, 0) + size
        peak = max(peak, alive)
        alive -= ends.get(j, 0)
    return peak, shared
