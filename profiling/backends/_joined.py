"""Several runtimes in one step: each computes on its devices, and the host carries values across.

A value that segments of another runtime read is an array in host memory: the program that made it
hands it over when its segment is over (`Program.value`), before anybody who waits for the segment
may go on, and every program that reads it takes it in (`Program.take`). So the runtimes must make
the same kernels of a model, which they do of its source ops where none of them fuses any.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

from placement.core.decoding import shown
from placement.core.graph import Graph, Tensor
from placement.core.machine import Device, Machine
from placement.core.schedule import Schedule
from profiling.backends.base import Compiled, DeviceTimes, Feeds, Program
from profiling.devices.lanes import Lane
from profiling.measuring.outputs import ACROSS_DEVICES

T = TypeVar("T")
Crossing = tuple[str, tuple[Program, ...]]


class Joined(Compiled):
    """One model as several runtimes have compiled it; the first says what kernels there are."""

    def __init__(self, parts: Mapping[str, Compiled], machine: Machine) -> None:
        self._parts, self._machine = parts, machine
        self._first = next(iter(parts.values()))
        self.kernels, self.sources = self._first.kernels, self._first.sources
        random = (name for part in parts.values() for name in part.random_ops)
        self.random_ops = tuple(dict.fromkeys(random))

    @classmethod
    def of(cls, parts: Mapping[str, Compiled], machine: Machine) -> "Joined":
        """A ValueError says why these runtimes cannot compute one step together."""
        parts = {name: part.by_op() or part for name, part in parts.items()}
        (first, one), *others = parts.items()
        for name, other in others:
            differs = difference(first, one.kernels, name, other.kernels)
            if differs:
                raise ValueError(
                    f"{first} and {name} make different kernels of {one.kernels.name!r}"
                    f" ({differs}); {_remedy(parts)}."
                )
        for name, part in parts.items():
            inner = [t for t in part.kernels.tensors if t.producer is not None and t.consumers]
            # What renews state would have to reach all programs that read it.
            if inner and (part.renewals or not any(map(part.exchanges, inner))):
                raise ValueError(
                    f"{name} exchanges no values of {one.kernels.name!r} with other runtimes, and"
                    f" machine {machine.name!r} has devices of {' and '.join(parts)};"
                    f" {_remedy(parts)}."
                )
        return cls(parts, machine)

    def feeds(self, seed: int, given: Feeds) -> dict[str, Any]:
        return self._first.feeds(seed, given)

    def open(self, schedule: Schedule, feeds: Feeds) -> Program:
        return self._opened(
            schedule, lambda part: (part.open(schedule, self._fed(part, feeds)),), 1
        )[0]

    def open_ring(
        self, schedule: Schedule, feeds: Sequence[Feeds], depth: int
    ) -> tuple[Program, ...]:
        def ring(part: Compiled) -> tuple[Program, ...]:
            return part.open_ring(schedule, [self._fed(part, one) for one in feeds], depth)

        return self._opened(schedule, ring, depth)

    def _opened(
        self,
        schedule: Schedule,
        ring: Callable[[Compiled], tuple[Program, ...]],
        depth: int,
    ) -> tuple[Program, ...]:
        """Programs of the runtimes that a schedule uses; of one alone where it uses no other."""
        runtimes = tuple(self._machine.device(s.device).runtime for s in schedule.segments)
        used = dict.fromkeys(runtimes or list(self._parts)[:1])
        if len(used) == 1:
            return ring(self._parts[next(iter(used))])
        crossing = _crossing(self.kernels, schedule, runtimes)
        for tensor, readers in crossing:
            self._require_exchange(tensor, (runtimes[_maker(schedule, tensor)], *readers))
        rings: dict[str, tuple[Program, ...]] = {}
        try:
            for name in used:
                rings[name] = ring(self._parts[name])
        except BaseException:
            for program in chain.from_iterable(rings.values()):
                program.close()
            raise
        return tuple(
            JoinedProgram(
                schedule, runtimes, {name: ring[i] for name, ring in rings.items()}, crossing
            )
            for i in range(depth)
        )

    def _require_exchange(self, tensor: Tensor, runtimes: Sequence[str]) -> None:
        for name in runtimes:
            if not self._parts[name].exchanges(tensor):
                raise ValueError(
                    f"Value {shown(tensor.name)} ({tensor.dtype}) cannot cross between"
                    f" {' and '.join(runtimes)}, for {name} does not exchange it; place"
                    f" {shown(tensor.producer)} and what reads it on devices of one runtime."
                )

    def _fed(self, part: Compiled, feeds: Feeds) -> Feeds:
        """The inputs in a part's own words."""
        return feeds if part is self._first else part.feeds(0, feeds)

    def unplaced(self, device: Device | None, feeds: Feeds) -> Program:
        part = self._first if device is None else self._parts[device.runtime]
        return part.unplaced(device, self._fed(part, feeds))

    def close(self) -> None:
        for part in self._parts.values():
            part.close()


class JoinedProgram(Program):
    """A program of each runtime over the whole schedule; outputs come together in the first.

    Outputs may differ as far as those of any of them, and as other runtimes sum in another order.
    """

    def __init__(
        self,
        schedule: Schedule,
        runtimes: Sequence[str],
        programs: Mapping[str, Program],
        crossing: Sequence[tuple[Tensor, Sequence[str]]],
    ) -> None:
        self._programs = tuple(programs.values())
        self._runs = [programs[name] for name in runtimes]
        devices = (segment.device for segment in schedule.segments)
        self._program_of = dict(zip(devices, self._runs, strict=True))
        self._leaving: list[list[Crossing]] = [[] for _ in runtimes]
        for tensor, readers in crossing:
            takers = tuple(programs[name] for name in readers)
            self._leaving[_maker(schedule, tensor)].append((tensor.name, takers))
        tolerances = [ACROSS_DEVICES, *(p.tolerance for p in self._programs)]
        self.tolerance = max(t[0] for t in tolerances), max(t[1] for t in tolerances)
        self.fallen = tuple(sorted({i for p in self._programs for i in p.fallen}))
        self.rest = next((p.rest for p in self._programs if p.rest is not None), None)

    def pinned(self, lanes: Sequence[Lane]) -> Sequence[Lane]:
        """As the programs have it that run the lanes' segments."""
        pinned = {
            lane.device.name: lane
            for program in self._programs
            for lane in program.pinned(
                [lane for lane in lanes if self._program_of.get(lane.device.name) is program]
            )
        }
        return [pinned.get(lane.device.name, lane) for lane in lanes]

    @property
    def actual_devices(self) -> Mapping[str, str]:  # type: ignore[override]
        return self._of_own(lambda program: program.actual_devices)

    @property
    def fallbacks(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(said for p in self._programs for said in p.fallbacks)

    @property
    def lanes_note(self) -> str:  # type: ignore[override]
        return next((p.lanes_note for p in self._programs if p.lanes_note), "")

    @property
    def reuses_outputs(self) -> bool:  # type: ignore[override]
        return self._programs[0].reuses_outputs

    @property
    def settles_after(self) -> int:  # type: ignore[override]
        return max(program.settles_after for program in self._programs)

    @property
    def peak_bytes(self) -> Mapping[str, int]:  # type: ignore[override]
        return self._of_own(lambda program: program.peak_bytes)

    def _of_own(self, asked: Callable[[Program], Mapping[str, T]]) -> dict[str, T]:
        """What each program says of the devices that are its own."""
        return {d: asked(p)[d] for d, p in self._program_of.items() if d in asked(p)}

    def run(self, segment: int) -> None:
        program = self._runs[segment]
        program.run(segment)
        for name, takers in self._leaving[segment]:
            value = program.value(name)
            for taker in takers:
                taker.take(name, value)

    def outputs(self) -> dict[str, Any]:
        return self._programs[0].outputs()

    def views(self) -> dict[str, Any]:
        return self._programs[0].views()

    def output(self, name: str) -> Any:
        return self._programs[0].output(name)

    def device_times(self) -> DeviceTimes | None:
        told = [t for p in self._programs if (t := p.device_times()) is not None]
        segments = {k: v for t in told for k, v in t.segments.items()}
        copies = {k: v for t in told for k, v in t.copies.items()}
        return DeviceTimes(segments, copies) if told else None

    def feed(self, number: int) -> None:
        for program in self._programs:
            program.feed(number)

    def stop(self) -> None:
        for program in self._programs:
            program.stop()

    def close(self) -> None:
        for program in self._programs:
            program.close()


def _remedy(parts: Mapping[str, Compiled]) -> str:
    whole = " or ".join(f"local:{name}" for name in parts)
    return f"choose devices of one runtime, as machine {whole} has them"


def difference(first: str, a: Graph, second: str, b: Graph) -> str:
    """How two graphs of kernels differ, as the middle of a sentence; empty where they are alike."""
    for one, of, other in ((first, a, b), (second, b, a)):
        extra = next((op.name for op in of.ops if op.name not in other.index), None)
        if extra is not None:
            return f"only {one} has {shown(extra)}"
    known = _edges(b)
    found = next((name for name, edge in _edges(a).items() if known.get(name) != edge), None)
    if found is None and len(known) == len(_edges(a)):
        return ""
    return f"value {shown(found)} goes other ways" if found else f"only {second} has more values"


def _edges(graph: Graph) -> dict[str, tuple[str | None, frozenset[str], bool]]:
    """Maker and readers of every value that somebody reads, and whether it is an output."""
    return {
        t.name: (t.producer, frozenset(t.consumers), t.is_output)
        for t in graph.tensors
        if t.consumers or t.is_output
    }


def _maker(schedule: Schedule, tensor: Tensor) -> int:
    """The segment that makes a value of a kernel."""
    assert tensor.producer is not None, tensor.name
    return schedule.segment_of[tensor.producer]


def _crossing(
    kernels: Graph, schedule: Schedule, runtimes: Sequence[str]
) -> list[tuple[Tensor, tuple[str, ...]]]:
    """Values that other runtimes than the maker's read, with these; the first has the outputs."""
    found = []
    for tensor in kernels.tensors:
        if tensor.producer is None:
            continue
        readers = dict.fromkeys(runtimes[schedule.segment_of[name]] for name in tensor.consumers)
        if tensor.is_output:
            readers.setdefault(runtimes[0])
        readers.pop(runtimes[_maker(schedule, tensor)], None)
        if readers:
            found.append((tensor, tuple(readers)))
    return found
