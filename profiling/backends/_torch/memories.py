"""A PyTorch program across memories: the host's, and each accelerator's.

Every memory has a table of the values that live there. A segment is queued on its device and `run`
returns at once; a device's last segment of a step waits until the device is through. What another
memory reads is copied there as soon as it is made, while both go on computing, and the first reader
on a device waits for that copy alone. The state stays where it is read, also from step to step.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from placement.core.machine import Device, Machine
from placement.core.schedule import Schedule
from placement.formats.torch.program import TorchProgram
from placement.formats.torch.source import Where, functions, written_caches
from profiling.backends._torch.instead import ELSEWHERE, ON_HOST
from profiling.backends._torch.lifetimes import lifetimes
from profiling.backends._torch.moves import HOST, Move, moves_of
from profiling.backends._torch.planned import planned_peak_bytes
from profiling.backends._torch.queues import Mark, Place
from profiling.backends._torch.replays import replays_of
from profiling.backends._torch.run import as_array, as_tensor, named_outputs, use_threads
from profiling.backends._torch.streams import HOST as HOST_PLACE
from profiling.backends._torch.streams import copied, place_of, queue_between, settled
from profiling.backends._torch.teams import let_go
from profiling.backends.base import DeviceTimes, Program
from profiling.devices import heap
from profiling.measuring.outputs import ACROSS_DEVICES

Stretch = tuple[Mark, Mark]
Copy = Callable[[Any, Place, Place], Any]


class SpreadTorch(Program):
    """See `profiling.backends.base.Program`; with several `feeds` the inputs can be changed.

    `accelerators` have memories of their own, every other segment works in the host's. With
    `prompt` every segment is over when `run` returns, for callers that take its time. With
    `in_python` none is captured and replayed.
    """

    # Other devices sum in another order, and training steps carry that on.
    tolerance = ACROSS_DEVICES
    # The first step runs from Python, the second is captured.
    settles_after = 2

    def __init__(
        self,
        program: TorchProgram,
        schedule: Schedule,
        machine: Machine,
        feeds: Sequence[Mapping[str, Any]],
        accelerators: Sequence[Device],
        *,
        prompt: bool = False,
        in_python: bool = False,
    ) -> None:
        self._program, self._schedule, self._prompt = program, schedule, prompt
        self._devices = [machine.device(segment.device) for segment in schedule.segments]
        self.rest = let_go if max((d.cores for d in self._devices), default=1) > 1 else None
        self._hosts = [d.name for d in machine.devices if d.on_host]
        away = {d.name: place_of(d.provider, d.own_name) for d in accelerators}
        self._places: list[Place] = [HOST_PLACE, *away.values()]
        number = {name: i for i, name in enumerate(away, 1)}
        self._memory_of = [number.get(d.name, HOST) for d in self._devices]
        self._number = number
        self._moves = moves_of(program, schedule, self._memory_of)
        kernels = [segment.kernels for segment in schedule.segments]
        run, self._shared = functions(
            program,
            kernels,
            [self._where(memory) for memory in self._memory_of],
            in_place=True,
        )
        by_memory = [
            {i: names for i, names in enumerate(kernels) if self._memory_of[i] == memory}
            for memory in range(len(self._places))
        ]
        self._replays = [
            replays_of(program, at, run, self._shared, place, in_python=in_python)
            for place, at in zip(self._places, by_memory, strict=True)
        ]
        self._written = written_caches(program)
        self._feeds = [{k: self._staged(v) for k, v in feed.items()} for feed in feeds]
        self._before = {i: place.watch_memory() for i, place in enumerate(self._places)}
        all_own = [True] * len(self._devices)
        known = lifetimes(program, schedule, self._shared, all_own).to_the_end()
        self.peak_bytes = self._peak_bytes = planned_peak_bytes(program, schedule, known)
        self.actual_devices = self._actual = {d.name: d.provider for d in self._devices}
        self._note = ""
        # Steps that each device has ended, as far as they are counted.
        self._num_ended = dict.fromkeys((d.name for d in self._devices), 0)
        self._handed_out = {name for _, name in program.outputs}
        self._marks: dict[Move, Stretch] = {}
        self._spans: dict[int, Stretch] = {}
        self._tables: list[list[Any]] = [[None] * len(self._shared) for _ in self._places]
        self._at = dict.fromkeys(program.state, HOST)
        with _told_in_words():
            for name, value in program.state.items():
                self._settle(name, HOST, value)
        self.feed(0)

    def beside(self) -> "SpreadTorch":
        """A program of the same functions and the same state with values of its own."""
        other = copy.copy(self)
        other._tables = [list(table) for table in self._tables]
        other._replays = [replays.anew() for replays in self._replays]
        other._marks, other._spans, other._at = {}, {}, dict(self._at)
        return other

    def feed(self, number: int) -> None:
        for name in self._program.inputs:
            label = self._program.labels.get(name, name)
            self._tables[HOST][self._shared[name]] = self._feeds[number][label]

    def run(self, segment: int) -> None:
        self.launch(segment)
        self.finish(segment)

    def launch(self, segment: int) -> None:
        with _told_in_words():
            self._queue(segment)

    def finish(self, segment: int) -> None:
        last = self._moves.ends[segment]
        if last is not None:
            with _told_in_words():
                self._spans[segment][1].wait()
                self._end(segment, last)

    def _queue(self, segment: int) -> None:
        place, moves = self._places[self._memory_of[segment]], self._moves
        if place is HOST_PLACE:
            use_threads(self._devices[segment].cores)
        for move in moves.inputs[segment]:
            self._send(move)
        for move in moves.awaits[segment]:
            place.compute.after(self._marks[move][1])
        began = place.compute.mark()
        table = self._tables[self._memory_of[segment]]
        replays = self._replays[self._memory_of[segment]]
        place.compute.call(lambda: replays(segment, table))
        ended = place.compute.mark()
        self._spans[segment] = (began, ended)
        for move in moves.sends[segment]:
            self._send(move, ended)
        if place is HOST_PLACE and moves.sends[segment]:
            # What sends from here hold up is the segment's own, as in a simulated one.
            self._spans[segment] = (began, place.compute.mark())
        if self._prompt:
            ended.wait()

    def _send(self, move: Move, made: Mark | None = None, copy_of: Copy = copied) -> None:
        """Queue a copy behind the work that makes the value."""
        src, dst = self._places[move.src], self._places[move.dst]
        queue, slot = queue_between(src, dst), self._shared[move.value]
        come_from, go_to = self._tables[move.src], self._tables[move.dst]

        def carry() -> None:
            go_to[slot] = copy_of(come_from[slot], src, dst)

        if made is not None:
            queue.after(made)
        began = queue.mark()
        queue.call(carry)
        self._marks[move] = (began, queue.mark())

    def _end(self, segment: int, outputs: Sequence[Move]) -> None:
        for move in outputs:
            self._marks[move][1].wait()
        memory, name = self._memory_of[segment], self._devices[segment].name
        place, replays = self._places[memory], self._replays[memory]
        replays.end_step()
        if replays.must_own_state():
            place.compute.call(partial(replays.own_state, self._tables[memory]))
            place.compute.mark().wait()
        # Whoever keeps count of memory takes a while to say: later steps take no more than these.
        if self._num_ended[name] > self.settles_after:
            return
        self._num_ended[name] += 1
        self._note_peak(name, memory)
        if self._num_ended[name] == 1:
            self._look_at(self._devices[segment], memory)

    def _note_peak(self, device: str, memory: int) -> None:
        before = self._before[memory]
        if before is not None:
            self._peak_bytes[device] = self._places[memory].peak_bytes() - before

    def _look_at(self, device: Device, memory: int) -> None:
        """Note where the values that a device has made really are."""
        found = self._seen(device.name, memory)
        self._actual[device.name] = found
        if found != device.provider:
            said = f"{device.name} was to compute by {device.provider}, its values are on {found}"
            self.fallbacks = (*self.fallbacks, said)

    def _seen(self, device: str, memory: int) -> str:
        segments = enumerate(self._schedule.segments)
        made = {k for _, s in segments if s.device == device for k in s.kernels}
        values = [
            self._tables[memory][slot]
            for name, slot in self._shared.items()
            if name in self._program.maker and self._program.maker[name].name in made
        ]
        kinds = {v.device.type for v in values if isinstance(v, torch.Tensor)}
        return ", ".join(sorted(kinds or {self._places[memory].device.type}))

    def advance(self) -> None:
        made = [(held, self._value(node)) for held, node in self._program.updates]
        for held, (memory, value) in made:
            self._settle(held, memory, value)
        for place, replays, table in zip(self._places, self._replays, self._tables, strict=True):
            place.compute.call(partial(replays.settle, table))
            place.compute.mark().wait()

    def state(self) -> dict[str, Any]:
        return {held: self._on_host(*self._value(held)) for held, _ in self._program.updates}

    def take_state(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            self._settle(name, HOST, value)
        for made, held in self._written.items():
            if held in state and state[held] is not self._program.state[held]:
                table = self._tables[self._memory_of[self._schedule.segment_of[made]]]
                table[self._shared[made]] = table[self._shared[held]]

    def _settle(self, name: str, memory: int, value: Any) -> None:
        """Let a placeholder of the state have this value of one memory, wherever it is read."""
        readers, before = self._moves.readers.get(name, ()), self._at[name]
        if before != memory and before not in readers:
            self._tables[before][self._shared[name]] = None
        self._tables[memory][self._shared[name]] = value
        self._at[name] = memory
        for other in readers:
            if other != memory:
                move = Move(name, memory, other)
                self._send(move, copy_of=settled)
                self._marks.pop(move)[1].wait()

    def outputs(self) -> dict[str, Any]:
        return named_outputs(self._program, self._output)

    def output(self, name: str) -> Any:
        return as_array(self._output(dict(self._program.outputs)[name]))

    def _output(self, name: str) -> Any:
        if name in self._handed_out:
            return self._tables[HOST][self._shared[name]]
        return self._on_host(*self._value(name))

    def value(self, name: str) -> Any:
        node = self._program.node_of(name)
        move = Move(node, self._moves.home.get(node, HOST), HOST)
        if move in self._marks:
            self._marks[move][1].wait()
            return as_array(self._tables[HOST][self._shared[node]])
        if move.src != HOST:
            # State that nobody reads on the host in this step, and somebody elsewhere in the next.
            self._spans[self._maker(node)][1].wait()
        return as_array(self._on_host(*self._value(node)))

    def take(self, name: str, value: Any) -> None:
        node = self._program.node_of(name)
        tensor = as_tensor(self._program, node, value)
        if node not in self._program.maker:
            self._settle(node, HOST, tensor)
            return
        self._tables[HOST][self._shared[node]] = tensor
        for move in self._moves.sends[self._maker(node)]:
            if move.value == node:
                self._send(move)

    def _maker(self, node: str) -> int:
        """The segment that makes a value."""
        return self._schedule.segment_of[self._program.maker[node].name]

    def _value(self, name: str) -> tuple[int, Any]:
        """A shared value as it is between steps, and its memory."""
        memory = self._moves.home.get(name, self._at.get(name, HOST))
        return memory, self._tables[memory][self._shared[name]]

    def _on_host(self, memory: int, value: Any) -> Any:
        away = memory != HOST and isinstance(value, torch.Tensor)
        return value.cpu() if away else value

    def device_times(self) -> DeviceTimes:
        """Starts are never before the end of what was awaited, though clocks differ a little."""
        copies: dict[Move, tuple[float, float]] = {}
        segments: dict[int, tuple[float, float]] = {}
        # What another runtime has made was sent on when it was taken.
        others = set(range(len(self._devices))) - self._spans.keys()
        for move in (m for i in others for m in self._moves.sends[i] if m in self._marks):
            copies[move] = _times(self._marks[move], 0.0)
        for i in sorted(self._spans):
            for move in self._moves.inputs[i]:
                copies[move] = _times(self._marks[move], 0.0)
            arrived_s = [copies[move][1] for move in self._moves.awaits[i]]
            segments[i] = _times(self._spans[i], max(arrived_s, default=0.0))
            for move in self._moves.sends[i]:
                copies[move] = _times(self._marks[move], segments[i][1])
        for place in self._places:
            place.synchronise_clock()
        return DeviceTimes(segments, self._by_device(copies))

    def _by_device(
        self, copies: Mapping[Move, tuple[float, float]]
    ) -> dict[tuple[str, str], tuple[float, float]]:
        """Copies by label and device; all lanes of the CPU share what comes to the host."""
        names = {number: [name] for name, number in self._number.items()} | {HOST: self._hosts}
        return {
            (self._program.labels.get(move.value, move.value), name): times
            for move, times in copies.items()
            for name in names[move.dst]
        }

    @property
    def lanes_note(self) -> str:  # type: ignore[override]
        return self._note or " ".join(filter(None, (each.note() for each in self._replays)))

    def _where(self, memory: int) -> Where:
        place = self._places[memory]
        return Where(place.device, ON_HOST if memory == HOST else ELSEWHERE)

    def _staged(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            for place in self._places:
                value = place.stage(value)
        return value

    def close(self) -> None:
        if self._tables:
            for device, memory in self._number.items():
                if self._num_ended.get(device):
                    self._note_peak(device, memory)
        self._tables, self._feeds, self._marks, self._spans = [], [], {}, {}
        self._note, self._replays = self.lanes_note, []
        heap.give_back()


@contextmanager
def _told_in_words() -> Iterator[None]:
    """MemoryError where an accelerator has too little for what is placed on it."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise MemoryError(
            "What is placed on an accelerator does not fit into its free memory; place less on it,"
            " or end other programs that use it."
        ) from None


def _times(stretch: Stretch, earliest_s: float) -> tuple[float, float]:
    began_s = max(stretch[0].time_s, earliest_s)
    return began_s, max(stretch[1].time_s, began_s)
