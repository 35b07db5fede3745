"""Where the values of a placed PyTorch program lie, and who waits for whom.

Segments share one list. A value has a place in it, on the device that makes it. A device of another
kind that reads it has a place of its own for its copy, filled by the first of its segments that
reads it; so a value goes over a link once for each device. State that never changes is copied when
the program is opened.
"""

from dataclasses import dataclass
from functools import cached_property

from placement.core.machine import Machine
from placement.core.schedule import Schedule
from placement.exporters._torch.model import CPU, torch_device
from placement.formats.torch.program import TorchProgram
from placement.formats.torch.source import shared_values


@dataclass(frozen=True, eq=False)
class Layout:
    """See the module; `device_of` is torch's word for the device of each segment."""

    program: TorchProgram
    schedule: Schedule
    machine: Machine

    @cached_property
    def device_of(self) -> tuple[str, ...]:
        devices = [self.machine.device(segment.device) for segment in self.schedule.segments]
        return tuple(torch_device(self.machine, device) for device in devices)

    @cached_property
    def shared(self) -> dict[str, int]:
        return shared_values(self.program, [s.kernels for s in self.schedule.segments])

    @cached_property
    def new_of(self) -> dict[str, str]:
        """The value that each piece of state becomes when a step is over."""
        return dict(self.program.updates)

    def home(self, name: str) -> str:
        """The device that a value is on before anybody copies it."""
        maker = self.program.maker.get(name)
        if maker is not None:
            return self.device_of[self.schedule.segment_of[maker.name]]
        if name not in self.program.state:
            return CPU
        new = self.new_of.get(name, "")
        if new in self.program.maker or new in self.program.inputs:
            return self.home(new)
        return self.device_of[self.readers[name][0]] if name in self.readers else CPU

    @cached_property
    def readers(self) -> dict[str, list[int]]:
        """The segments that read each value, in order."""
        found: dict[str, list[int]] = {}
        for number, segment in enumerate(self.schedule.segments):
            for kernel in segment.kernels:
                for value in self.program.reads(self.program.nodes[kernel]):
                    found.setdefault(value.name, []).append(number)
        return {name: list(dict.fromkeys(numbers)) for name, numbers in found.items()}

    @cached_property
    def copies(self) -> dict[tuple[str, str], int]:
        """Places of copies, by value and by device name; torch's word for state that stays."""
        found: dict[tuple[str, str], int] = {}
        for name, readers in self.readers.items():
            for segment in readers:
                if self.device_of[segment] != self.home(name):
                    key = (name, self._copy_of(name, segment))
                    found.setdefault(key, len(self.shared) + len(found))
        return found

    def _copy_of(self, name: str, segment: int) -> str:
        stays = name in self.program.state and name not in self.new_of
        return self.device_of[segment] if stays else self.schedule.segments[segment].device

    def read(self, name: str, segment: int) -> tuple[int, int | None]:
        """The place where a segment finds a value, and that of the copy it has to make, if any."""
        copy = self._copy_of(name, segment)
        place = self.copies.get((name, copy))
        if place is None:
            return self.shared[name], None
        stays = name in self.program.state and name not in self.new_of
        device = self.schedule.segments[segment].device
        same = (s for s in self.readers[name] if self.schedule.segments[s].device == device)
        if stays or segment != next(same):
            return place, None
        return self.shared[name], place

    @property
    def kept_copies(self) -> list[tuple[str, str, int]]:
        """Copies of state that stays: its name, torch's word for the device, and its place."""
        stays = self.program.state.keys() - self.new_of.keys()
        return [(n, device, i) for (n, device), i in self.copies.items() if n in stays]

    def lanes(self) -> list[tuple[str, list[int], list[list[int]]]]:
        """By device its segments in order, and the segments of others that each has to await."""
        segments = self.schedule.segments
        found = []
        for device in (d.name for d in self.machine.devices):
            own = [i for i, s in enumerate(segments) if s.device == device]
            seen: set[int] = set()
            awaits = []
            for number in own:
                needed = [i for i in self._before(number) if segments[i].device != device]
                awaits.append([i for i in needed if i not in seen])
                seen.update(needed)
            found += [(device, own, awaits)] if own else []
        return found

    def _before(self, segment: int) -> list[int]:
        """Segments that make what a segment reads, in order."""
        program, numbers = self.program, self.schedule.segment_of
        found = set()
        for kernel in self.schedule.segments[segment].kernels:
            for value in program.reads(program.nodes[kernel]):
                if value.name in program.maker:
                    found.add(numbers[program.maker[value.name].name])
        return sorted(found - {segment})
