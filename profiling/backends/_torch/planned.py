"""What the segments of a PyTorch program hold in memory, told before any of them runs."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from placement.core.schedule import Schedule
from placement.formats.torch.program import Node, TorchProgram, num_bytes
from placement.formats.torch.traffic import Traffic
from profiling.backends._torch.lifetimes import Lifetimes, written_over


def planned_peak_bytes(
    program: TorchProgram, schedule: Schedule, lifetimes: Lifetimes, depth: int = 1
) -> dict[str, int]:
    """The most bytes that each device holds at once: state that it reads, and what it makes.

    Lanes are as far ahead of each other as they may be, so that a value is there until a segment
    starts that has awaited all its readers. Of `depth` samples in flight a device computes one; of
    the others it holds what lies between segments. Not counted is what inputs and other runtimes
    bring, and what a kernel needs for itself while it runs.
    """
    lanes: dict[str, list[int]] = {}
    for i, segment in enumerate(schedule.segments):
        lanes.setdefault(segment.device, []).append(i)
    found = _resident_bytes(program, schedule, depth)
    roots = _roots(program)
    for device, lane in lanes.items():
        memory = _Memory(program, schedule, lifetimes, roots, lane)
        for at in range(len(lane)):
            memory.run(at)
        found[device] += memory.peak_bytes + (depth - 1) * memory.most_lying_bytes
    return found


def _resident_bytes(program: TorchProgram, schedule: Schedule, depth: int) -> dict[str, int]:
    """State by each device that reads it, and by who makes it what the new one is written into."""
    found = {segment.device: 0 for segment in schedule.segments}
    device_of = {kernel: s.device for s in schedule.segments for kernel in s.kernels}
    for name, value in program.state.items():
        readers = (user.name for user in program.nodes[name].users)
        for device in {device_of[reader] for reader in readers if reader in device_of}:
            found[device] += num_bytes(value)
    written = written_over(program)
    for name, node in program.updates:
        if node in written:
            made = depth * num_bytes(program.state[name])
            found[device_of[program.maker[node].name]] += made
    return found


def _roots(program: TorchProgram) -> dict[str, Node]:
    """By name of what kernels make the value in whose memory it lies, where a step makes that."""
    traffic, written = Traffic(program), written_over(program)
    found = {}
    for value in (value for values in program.values.values() for value in values):
        root = traffic.root(value)
        if root.name in program.maker and root.name not in written:
            found[value.name] = root
    return found


@dataclass(eq=False)
class _Memory:
    """What a lane has made and somebody still holds, in the course of a step.

    Views share the memory of what they are views of, which is there as long as any of them.
    """

    program: TorchProgram
    schedule: Schedule
    lifetimes: Lifetimes
    roots: dict[str, Node]
    lane: Sequence[int]
    peak_bytes: int = 0
    most_lying_bytes: int = 0
    num_bytes: int = 0
    holders: Counter[str] = field(default_factory=Counter)
    lying: defaultdict[int, list[str]] = field(default_factory=lambda: defaultdict(list))

    def run(self, at: int) -> None:
        """Compute the segment at this place of the lane; those before it have run."""
        self._release(self.lying[at])
        segment = self.lane[at]
        kernels = [self.program.nodes[name] for name in self.schedule.segments[segment].kernels]
        last = {value.name: j for j, k in enumerate(kernels) for value in self.program.reads(k)}
        ends: defaultdict[int, list[str]] = defaultdict(list)
        for j, kernel in enumerate(kernels):
            for value in self.program.values[kernel.name]:
                name = value.name
                if name not in self.roots:
                    continue
                if name in self.lifetimes.readers:
                    self.lying[self.lifetimes.first_without(name, self.lane)].append(name)
                elif self._is_made_in(segment, name):
                    ends[last.get(name, j)].append(name)
                else:
                    continue  # what another segment has made is there until this one ends
                self._hold(name)
            self.peak_bytes = max(self.peak_bytes, self.num_bytes)
            self._release(ends[j])
        self.most_lying_bytes = max(self.most_lying_bytes, self.num_bytes)

    def _is_made_in(self, segment: int, name: str) -> bool:
        maker = self.program.maker[self.roots[name].name]
        return self.schedule.segment_of[maker.name] == segment

    def _hold(self, name: str) -> None:
        root = self.roots[name]
        if not self.holders[root.name]:
            self.num_bytes += num_bytes(root.meta.get("val"))
        self.holders[root.name] += 1

    def _release(self, names: Iterable[str]) -> None:
        for name in names:
            root = self.roots[name]
            self.holders[root.name] -= 1
            if not self.holders[root.name]:
                self.num_bytes -= num_bytes(root.meta.get("val"))
