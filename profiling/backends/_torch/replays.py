"""Segments of an accelerator as graphs of the device: launches captured once, replayed by one call.

An op begun from Python takes 5 to 20 us, longer than most kernels of one sample compute. A segment
runs from Python in its first step, is captured in the second and replayed from then on. A replay
reads and writes the memory that was captured. So its static inputs are filled first where a value
has come in another tensor, and state is moved out of what replays write when a step advances.
Segments that cannot be captured go on running from Python.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from placement.core.formatting import counted
from placement.formats.torch.program import Node, TorchProgram
from placement.formats.torch.source import Function
from profiling.backends._torch.queues import Capture, Place, Work

Values = list[Any]
_aten = torch.ops.aten
# Their results' shapes, or what comes next, depend on values that the host must wait for.
_WAITING = (torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output)
_BY_MASK = (_aten.index.Tensor, _aten.index_put.default)


@dataclass(frozen=True)
class SegmentIO:
    """Slots of the table of values that a segment takes from outside, and those that it hands on.

    `can_capture` is False where it is known beforehand that the segment cannot be captured.
    """

    reads: tuple[int, ...]
    makes: tuple[int, ...]
    can_capture: bool


@dataclass(frozen=True)
class _Replay:
    """A captured segment: its launches, and the tensors of its inputs and outputs by slot."""

    launch: Work
    inputs: Mapping[int, torch.Tensor]
    outputs: Mapping[int, torch.Tensor]


@dataclass
class Replays:
    """The segments of one program on one accelerator, called as work of its `compute` queue.

    `run` and `segments` are by segment, `state` are the slots of what steps renew. With `capture`
    None every segment runs from Python.
    """

    run: Sequence[Function]
    segments: Sequence[SegmentIO]
    state: frozenset[int]
    place: Place
    capture: Capture | None
    _replays: dict[int, _Replay | None] = field(default_factory=dict)
    _started: set[int] = field(default_factory=set)
    # Where state lies between steps, by slot, once it is this program's own.
    _own: dict[int, torch.Tensor] = field(default_factory=dict)
    _owns_state: bool = False
    # Values no longer in the table that queued work of this step, and of the last one, may read.
    _in_use: tuple[Values, Values] = field(default_factory=lambda: ([], []))

    def anew(self) -> "Replays":
        """The same for a program with values of its own."""
        capture = None if self.capture is None else self.place.capture()
        return Replays(self.run, self.segments, self.state, self.place, capture)

    def __call__(self, segment: int, values: Values) -> None:
        """Run a segment on this table of values."""
        if segment not in self._started:
            self._started.add(segment)
            self.run[segment](values)
            if self.capture is None or not self._launches(segment, values):
                self._replays[segment] = None
            return
        if segment not in self._replays:
            self._replays[segment] = self._captured(segment, values)
        replay = self._replays[segment]
        if replay is not None and not self._fill(replay.inputs, values):
            replay = self._replays[segment] = None
        if replay is None:
            self.run[segment](values)
            return
        replay.launch()
        for slot, output in replay.outputs.items():
            values[slot] = output

    def end_step(self) -> None:
        """Let go of what work of the step before this one may have read."""
        self._in_use = ([], self._in_use[0])

    def must_own_state(self) -> bool:
        """Whether something will be captured, and state is still where it came."""
        return self.capture is not None and not self._owns_state

    def own_state(self, values: Values) -> None:
        """Copy the state into memory of this program's own, once, after its first step.

        Other programs may have begun from the same state in the same memory. So it is copied before
        anything is captured that reads it, or looks at it in another way.
        """
        self._owns_state = True
        self._move_state(values)

    def settle(self, values: Values) -> None:
        """Move new state to memory that no replay writes, for the next step's to read.

        To be called when the step is over; the copies are queued.
        """
        if self._owns_state:
            self._move_state(values)

    def _move_state(self, values: Values) -> None:
        new = {
            slot: values[slot]
            for slot in sorted(self.state)
            if self._is_here(values[slot]) and values[slot] is not self._own.get(slot)
        }
        for slot, value in new.items():
            if not _like(self._own.get(slot), value):
                self._own[slot] = torch.empty_like(value)
        targets = {_memory(self._own[slot]) for slot in new}
        # One state may be what another was: it is read before that one is written.
        sources = [v.clone() if _memory(v) in targets else v for v in new.values()]
        if new:
            torch._foreach_copy_([self._own[slot] for slot in new], sources)
        self._in_use[0].extend((*new.values(), *sources))
        for slot in new:
            values[slot] = self._own[slot]

    def note(self) -> str:
        """How many of the segments that ran are replayed, as a sentence; "" for none."""
        replayed = sum(replay is not None for replay in self._replays.values())
        if not replayed:
            return ""
        of = counted(len(self._started), "segment")
        return f"{replayed} of {of} on {self.place.device} were replayed, each in one call."

    def _captured(self, segment: int, values: Values) -> _Replay | None:
        """Capture a segment, with what the table holds now as its static inputs."""
        assert self.capture is not None
        reads, makes = self.segments[segment].reads, self.segments[segment].makes
        if not all(self._is_here(values[slot]) for slot in reads):
            return None
        inputs = {slot: values[slot] for slot in reads}
        for slot in makes:
            values[slot] = None  # what the step before made needs no room any more
        launch = self.capture(lambda: self.run[segment](values))
        outputs = {slot: values[slot] for slot in makes}
        if launch is None or not all(map(self._is_here, outputs.values())):
            return None
        return _Replay(launch, inputs, outputs)

    def _fill(self, inputs: Mapping[int, torch.Tensor], values: Values) -> bool:
        """Copy values of the table into static inputs, if they fit; False if one does not."""
        new = {slot: static for slot, static in inputs.items() if not _is_at(static, values[slot])}
        if not all(_takes(static, values[slot]) for slot, static in new.items()):
            return False
        for slot, static in new.items():
            static.copy_(values[slot])
            self._in_use[0].append(values[slot])
            values[slot] = static
        return True

    def _launches(self, segment: int, values: Values) -> bool:
        """Whether a segment that has run can be captured, and launches anything: views do not."""
        about = self.segments[segment]
        made, read = ([values[slot] for slot in slots] for slots in (about.makes, about.reads))
        if not about.can_capture or not all(map(self._is_here, (*made, *read))):
            return False
        there = set(map(_memory, read))
        return any(value.numel() and _memory(value) not in there for value in made)

    def _is_here(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and value.device == self.place.device


def replays_of(
    program: TorchProgram,
    segments: Mapping[int, Sequence[str]],
    run: Sequence[Function],
    shared: Mapping[str, int],
    place: Place,
    *,
    in_python: bool = False,
) -> Replays:
    """Of an accelerator's segments, by number the names of their kernels.

    `shared` has the slots of shared values by name. Nothing is captured `in_python`, nor where a
    model has caches, which are written to where they lie.
    """
    capture = None if in_python or program.caches else place.capture()
    state = frozenset(shared[held] for held, _ in program.updates)
    nothing = SegmentIO((), (), can_capture=False)
    about = [nothing] * len(run)
    if capture is not None:
        made_by: dict[str, list[int]] = {}
        for name, slot in shared.items():
            if name in program.maker:
                made_by.setdefault(program.maker[name].name, []).append(slot)
        for number, names in segments.items():
            about[number] = _io(program, names, shared, made_by)
    return Replays(run, about, state, place, capture)


def _io(
    program: TorchProgram,
    names: Sequence[str],
    shared: Mapping[str, int],
    made_by: Mapping[str, Sequence[int]],
) -> SegmentIO:
    own = frozenset(names)
    kernels = [program.nodes[name] for name in names]
    reads = {
        shared[value.name]
        for kernel in kernels
        for value in program.reads(kernel)
        if value.name not in program.maker or program.maker[value.name].name not in own
    }
    makes = {slot for name in names for slot in made_by.get(name, ())}
    waits = any(map(_waits, kernels))
    return SegmentIO(tuple(sorted(reads)), tuple(sorted(makes)), can_capture=not waits)


def _waits(kernel: Node) -> bool:
    """Whether the host must wait for values of the device within an op."""
    if kernel.target in _BY_MASK:
        masks = [node.meta.get("val") for node in kernel.all_input_nodes[1:]]
        return any(getattr(mask, "dtype", None) in (torch.bool, torch.uint8) for mask in masks)
    return any(tag in getattr(kernel.target, "tags", ()) for tag in _WAITING)


def _is_at(static: torch.Tensor, value: Any) -> bool:
    """Whether a value is the same memory seen in the same way, as a new view of it is."""
    if static is value:
        return True
    here = (static.data_ptr(), static.stride())
    return _like(static, value) and here == (value.data_ptr(), value.stride())


def _takes(static: torch.Tensor, value: Any) -> bool:
    """Whether a value can be copied there: not where elements share a place in memory."""
    return _like(static, value) and torch._debug_has_internal_overlap(static) == 0


def _like(one: Any, other: Any) -> bool:
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return False
    return (one.shape, one.dtype, one.device) == (other.shape, other.dtype, other.device)


def _memory(value: torch.Tensor) -> int:
    return value.untyped_storage().data_ptr()
