"""Running a PyTorch program on CPU lanes: in segments, or whole as the framework runs it by itself.

Values that cross borders are handed on in one list, from which lanes take them out again behind
their last readers (`lifetimes.py`); nothing is copied between lanes of the CPU. A step starts from
the same state every time: what it would update is among its outputs. Segments are graphs of the
library, but for those that cannot be (`graphs.py`).
"""

import copy
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import fx

from placement.core.formatting import counted
from placement.core.machine import Device, Machine
from placement.core.schedule import Schedule
from placement.formats.torch.program import Node, TorchProgram, is_update
from placement.formats.torch.source import (
    Function,
    function,
    shared_values,
    written_caches,
)
from profiling.backends._torch.graphs import NotCaptured, captured, use_interpreter
from profiling.backends._torch.lifetimes import lifetimes, written_over
from profiling.backends._torch.planned import planned_peak_bytes
from profiling.backends._torch.teams import let_go
from profiling.backends.base import Program
from profiling.devices import heap
from profiling.devices.cores import usable_cores
from profiling.measuring.outputs import nudged

_thread = threading.local()
# Numbers of elements after which memory is aligned as before, whatever their type.
ALIGNED = 64


class PlacedTorch(Program):
    """See `profiling.backends.base.Program`; with several `feeds` the inputs can be changed.

    Devices of another runtime than `runtime` are not this program's. With `in_python` no segment is
    a graph. There are `depth` such programs beside each other.
    """

    def __init__(
        self,
        program: TorchProgram,
        schedule: Schedule,
        machine: Machine,
        feeds: Sequence[Mapping[str, Any]],
        *,
        runtime: str,
        in_python: bool = False,
        depth: int = 1,
    ) -> None:
        devices = [machine.device(segment.device) for segment in schedule.segments]
        self._program, self._feeds = program, feeds
        self._cores = [device.cores for device in devices]
        self.waits_awake = all(device.on_host for device in devices)
        self.rest = let_go if max(self._cores, default=1) > 1 else None
        segments = [segment.kernels for segment in schedule.segments]
        self._written, self._written_over = written_caches(program), written_over(program)
        self._shared = shared_values(program, segments)
        self._run, reasons = _functions(program, segments, self._shared, in_python)
        if not in_python:
            self.lanes_note = lanes_note(reasons, len(segments))
        self.actual_devices = {device.name: "cpu" for device in devices}
        own = [device.runtime == runtime for device in devices]
        known = lifetimes(program, schedule, self._shared, own)
        self._before, self._after = (
            [tuple(self._shared[name] for name in names) for names in by_segment]
            for by_segment in (known.before, known.after)
        )
        self.peak_bytes = planned_peak_bytes(program, schedule, known, depth)
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
        for held, node in self._program.updates:
            self._values[self._shared[node]] = self._spare(held, node)
        self.feed(0)

    def _spare(self, held: str, node: str) -> torch.Tensor | None:
        """What a piece of state may have its new value written to; None where that is made anew."""
        is_spare = node in self._written_over
        return torch.empty_like(self._program.state[held]) if is_spare else None

    def feed(self, number: int) -> None:
        for name in self._program.inputs:
            label = self._program.labels.get(name, name)
            self._values[self._shared[name]] = self._feeds[number][label]

    def advance(self) -> None:
        values = self._values
        new = [values[self._shared[node]] for _, node in self._program.updates]
        for (held, node), value in zip(self._program.updates, new, strict=True):
            old = values[self._shared[held]]
            values[self._shared[held]] = value
            if node in self._written:
                continue  # the next step writes into this very cache
            # Two tensors take turns; what the model itself holds is never written to.
            mine = old is not self._program.state[held]
            values[self._shared[node]] = old if mine else self._spare(held, node)

    def state(self) -> dict[str, Any]:
        return {held: self._values[self._shared[held]] for held, _ in self._program.updates}

    def take_state(self, state: Mapping[str, Any]) -> None:
        made_of = {held: made for made, held in self._written.items()}
        for name, value in state.items():
            self._values[self._shared[name]] = value
            if name in made_of and value is not self._program.state[name]:
                self._values[self._shared[made_of[name]]] = value

    def run(self, segment: int) -> None:
        use_threads(self._cores[segment])
        values = self._values
        for place in self._before[segment]:
            values[place] = None
        self._run[segment](values)
        for place in self._after[segment]:
            values[place] = None

    def outputs(self) -> dict[str, Any]:
        return named_outputs(self._program, lambda name: self._values[self._shared[name]])

    def output(self, name: str) -> Any:
        return as_array(self._values[self._shared[dict(self._program.outputs)[name]]])

    def value(self, name: str) -> Any:
        return as_array(self._values[self._shared[self._program.node_of(name)]])

    def take(self, name: str, value: Any) -> None:
        node = self._program.node_of(name)
        self._values[self._shared[node]] = as_tensor(self._program, node, value)

    def close(self) -> None:
        self._values = []
        heap.give_back()


def _functions(
    program: TorchProgram,
    segments: Sequence[Sequence[str]],
    shared: Mapping[str, int],
    in_python: bool,
) -> tuple[list[Function], list[str]]:
    """A function per segment, and why some are no graphs."""
    found, reasons = [], []
    for i, names in enumerate(segments):
        try:
            if not in_python:
                found.append(captured(program, names, shared, i))
                continue
        except NotCaptured as error:
            reasons.append(str(error))
        found.append(function(program, names, shared, i, reuse=True, in_place=True))
    return found, reasons


def lanes_note(reasons: Sequence[str], num_segments: int) -> str:
    """How segments ran, and why `reasons` of them not as graphs."""
    note = "Segments ran natively, without the interpreter's lock."
    if reasons:
        which = f"{len(reasons)} of {counted(num_segments, 'segment')}"
        note = f"{note[:-1]}, but for {which}, because {reasons[0]}."
    return note


class WholeTorch(Program):
    """The whole graph by the framework's own executor, with a lane's cores or all of the CPU's."""

    def __init__(
        self, program: TorchProgram, device: Device | None, feeds: Mapping[str, Any]
    ) -> None:
        self._program = program
        self._cores = len(usable_cores()) if device is None else device.cores
        self.rest = let_go if self._cores > 1 else None
        self._names, self._module = _whole(program)
        given = {program.labels.get(n, n): n for n in program.inputs}
        values = {given[label]: value for label, value in feeds.items()} | dict(program.state)
        places = [n.name for n in program.graph.nodes if n.op == "placeholder"]
        self._arguments = {name: values.get(name) for name in places}
        # What updates write over, behind the other arguments.
        self._spare = dict.fromkeys((name for _, name in program.updates), None)
        self._results: tuple[Any, ...] = ()

    def run(self, segment: int) -> None:
        use_threads(self._cores)
        self._results = self._module(*self._arguments.values(), *self._spare.values())
        made = dict(zip(self._names, self._results, strict=True))
        self._spare = {name: made[name] for name in self._spare}

    def advance(self) -> None:
        made = dict(zip(self._names, self._results, strict=True))
        for held, name in self._program.updates:
            old = self._arguments[held]
            self._arguments[held] = made[name]
            # Two tensors take turns; what the model itself holds is never written to.
            self._spare[name] = None if old is self._program.state[held] else old

    def state(self) -> dict[str, Any]:
        return {held: self._arguments[held] for held, _ in self._program.updates}

    def take_state(self, state: Mapping[str, Any]) -> None:
        self._arguments.update(state)

    def nudge(self) -> None:
        noise = np.random.default_rng(0)
        for name, value in self._arguments.items():
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                self._arguments[name] = _nudged(value, noise)

    def outputs(self) -> dict[str, Any]:
        found = dict(zip(self._names, self._results, strict=True))
        return named_outputs(self._program, found.__getitem__)

    def close(self) -> None:
        self._arguments, self._spare, self._results = {}, {}, ()
        heap.give_back()


def _nudged(value: torch.Tensor, noise: np.random.Generator) -> torch.Tensor:
    """`outputs.nudged` of a tensor; half precision by one unit in the last place."""
    if value.dtype == torch.float32:
        return torch.from_numpy(nudged(value.numpy(), noise))
    drawn = torch.from_numpy(noise.uniform(-1.0, 1.0, tuple(value.shape)))
    return (value * (1 + torch.finfo(value.dtype).eps * drawn)).to(value.dtype)


def _whole(program: TorchProgram) -> tuple[list[str], fx.GraphModule]:
    """A module that makes the values of these names from placeholders and what may be written to.

    The latter are one more placeholder for each value that an update makes.
    """
    names = list(dict.fromkeys(n for _, n in (*program.outputs, *program.updates)))
    graph = fx.Graph()
    made: dict[Node, Node] = {}
    for node in program.graph.nodes:
        if node.op == "placeholder":
            made[node] = graph.node_copy(node, made.__getitem__)
    results = dict.fromkeys(name for _, name in program.updates)
    spare = {name: graph.placeholder(f"spare_{i}") for i, name in enumerate(results)}
    for node in program.graph.nodes:
        if node.op == "call_function":
            made[node] = graph.node_copy(node, made.__getitem__)
            if is_update(node):
                parts = sorted(node.users, key=lambda part: part.args[1])
                made[node].kwargs = {"out": [spare[part.name] for part in parts]}
    graph.output(tuple(made[program.nodes[name]] for name in names))
    return names, fx.GraphModule({}, graph)


def use_threads(number: int) -> None:
    """Let the calling thread compute with this many threads; asked once per thread."""
    if getattr(_thread, "number", 0) != number:
        # A thread takes over what others have set when it first asks; so it asks first.
        torch.get_num_threads()
        torch.set_num_threads(number)
        use_interpreter()
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


def as_tensor(program: TorchProgram, name: str, value: Any) -> torch.Tensor:
    """What `as_array` has made of a value, as the program's kernels read it.

    It lies in memory as what the kernel makes here: kernels sum in an order that follows from that.
    """
    like = program.nodes[name].meta["val"]
    given = torch.from_numpy(np.array(value))
    sides = tuple(zip(like.shape, like.stride(), strict=True))
    reach = 1 + sum((size - 1) * stride for size, stride in sides)
    # One place in memory for several elements: repeated ones, or windows that overlap.
    if reach < like.numel() or like.numel() == 0 or any(stride == 0 for _, stride in sides):
        return given.to(like.dtype)
    offset = like.storage_offset() % ALIGNED
    room = torch.empty(offset + reach, dtype=like.dtype)
    return room.as_strided(like.shape, like.stride(), offset).copy_(given)
