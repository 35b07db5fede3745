"""Segments of an accelerator as graphs of the device, whose launches one call repeats.

An op begun from Python takes 5 to 20 us, longer than most kernels of one sample compute. A step is
run once as it is, recorded in the next, and replayed from then on. A replay works in the memory
that was recorded: what a segment reads is brought there first where another tensor has come, and
what it makes lies there every time. Segments that cannot be recorded run as they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from placement.core.formatting import counted
from placement.formats.torch.program import TorchProgram
from placement.formats.torch.source import Function
from profiling.backends._torch.queues import Place, Recorder, Work

Values = list[Any]


@dataclass(frozen=True)
class _Replay:
    """A segment's launches again; the places of the tensors that they read, and of those made."""

    again: Work
    reads: Mapping[int, torch.Tensor]
    makes: Mapping[int, torch.Tensor]


@dataclass
class Replays:
    """The segments of one program on one accelerator, run as work of its `compute` queue.

    `run`, `reads` and `makes` are by segment: its function, and the places in the table of values
    of what it takes from outside and of what it hands on. `state` are the places of what steps
    renew. `recorder` is None where nothing can be recorded.
    """

    run: Sequence[Function]
    reads: Sequence[Sequence[int]]
    makes: Sequence[Sequence[int]]
    state: frozenset[int]
    place: Place
    recorder: Recorder | None
    _known: dict[int, _Replay | None] = field(default_factory=dict)
    _started: set[int] = field(default_factory=set)

    @classmethod
    def of(
        cls,
        program: TorchProgram,
        segments: Sequence[Sequence[str]],
        run: Sequence[Function],
        shared: Mapping[str, int],
        place: Place,
        *,
        records: bool = True,
    ) -> "Replays":
        """By segment the names of its kernels; who writes into a cache is not recorded."""
        reads, makes = [], []
        for names in map(frozenset, segments):
            kernels = [program.nodes[name] for name in sorted(names)]
            outside = {
                value.name
                for kernel in kernels
                for value in program.reads(kernel)
                if value.name not in program.maker or program.maker[value.name].name not in names
            }
            made = {n for n in shared if n in program.maker and program.maker[n].name in names}
            reads.append(sorted(shared[name] for name in outside))
            makes.append(sorted(shared[name] for name in made))
        state = frozenset(shared[held] for held, _ in program.updates)
        recorder = place.recorder() if records and not program.caches else None
        return cls(run, reads, makes, state, place, recorder)

    def anew(self) -> "Replays":
        """The same for a program with values of its own."""
        again = None if self.recorder is None else self.place.recorder()
        return Replays(self.run, self.reads, self.makes, self.state, self.place, again)

    def note(self) -> str:
        """How many of the segments that ran twice are replayed, as a sentence; "" for none."""
        replayed = sum(found is not None for found in self._known.values())
        if not replayed:
            return ""
        of = counted(len(self._started), "segment")
        return f"{replayed} of {of} on {self.place.device} ran as recorded launches, in one call."

    def __call__(self, segment: int, values: Values) -> None:
        """Run a segment of this table of values."""
        if self.recorder is None:
            self.run[segment](values)
            return
        if segment not in self._started:
            self._started.add(segment)
            self.run[segment](values)
            if not self._launches(segment, values):
                self._known[segment] = None
            return
        if segment not in self._known:
            self._known[segment] = self._recorded(segment, values)
        found = self._known[segment]
        if found is not None and not _brought(found, values):
            found = self._known[segment] = None
        if found is None:
            self.run[segment](values)
            return
        found.again()
        for slot, made in found.makes.items():
            values[slot] = made

    def settle(self, values: Values) -> None:
        """Bring new state to where replays read it, before one writes over where it was made."""
        fixed = {
            slot: read
            for found in self._known.values()
            if found is not None
            for slot, read in found.reads.items()
            if slot in self.state and not _is_at(read, values[slot])
        }
        alike = [slot for slot, read in fixed.items() if _takes(read, values[slot])]
        if alike:
            torch._foreach_copy_([fixed[slot] for slot in alike], [values[slot] for slot in alike])
        for slot in alike:
            values[slot] = fixed[slot]

    def _launches(self, segment: int, values: Values) -> bool:
        """Whether a segment that has run has its device compute; views of what is there do not."""
        made = [values[slot] for slot in self.makes[segment]]
        read = [values[slot] for slot in self.reads[segment]]
        if not all(map(self._is_here, made)) or not all(map(self._is_here, read)):
            return False
        there = {value.untyped_storage().data_ptr() for value in read}
        return any(v.numel() and v.untyped_storage().data_ptr() not in there for v in made)

    def _recorded(self, segment: int, values: Values) -> _Replay | None:
        """A segment's launches, recorded while it is run; None where they cannot be."""
        assert self.recorder is not None
        if not all(self._is_here(values[slot]) for slot in self.reads[segment]):
            return None
        for slot in self.state.intersection(self.reads[segment]):
            if not any(found and slot in found.reads for found in self._known.values()):
                values[slot] = values[slot].clone()  # the model's own, and other programs', too
        reads = {slot: values[slot] for slot in self.reads[segment]}
        for slot in self.makes[segment]:
            values[slot] = None  # what the step before made needs no room any more
        again = self.recorder(lambda: self.run[segment](values))
        makes = {slot: values[slot] for slot in self.makes[segment]}
        if again is None or not all(map(self._is_here, makes.values())):
            return None
        return _Replay(again, reads, makes)

    def _is_here(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and value.device.type == self.place.device.type


def _brought(found: _Replay, values: Values) -> bool:
    """Whether all that a replay reads is where it reads it; brought there where it can be."""
    away = {slot: read for slot, read in found.reads.items() if not _is_at(read, values[slot])}
    if not all(_takes(read, values[slot]) for slot, read in away.items()):
        return False
    for slot, read in away.items():
        read.copy_(values[slot])
        values[slot] = read
    return True


def _is_at(one: torch.Tensor, other: Any) -> bool:
    """Whether another tensor is the same memory seen in the same way, as new views of it are."""
    if one is other:
        return True
    return _alike(one, other) and (one.data_ptr(), one.stride()) == (
        other.data_ptr(),
        other.stride(),
    )


def _takes(one: torch.Tensor, other: Any) -> bool:
    """Whether another tensor can be copied there: not where elements share a place in memory."""
    return _alike(one, other) and torch._debug_has_internal_overlap(one) == 0


def _alike(one: torch.Tensor, other: Any) -> bool:
    return isinstance(other, torch.Tensor) and (one.shape, one.dtype, one.device) == (
        other.shape,
        other.dtype,
        other.device,
    )
