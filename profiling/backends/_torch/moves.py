"""Which values of a PyTorch program cross from one memory to another, when, and who waits for them.

A value crosses once to each memory that has a reader, when its segment is over; model inputs when
the first segment of that memory's device begins. Outputs end in host memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from placement.core.schedule import Schedule
from placement.formats.torch.program import TorchProgram

# The number of the host's memory.
HOST = 0


@dataclass(frozen=True)
class Move:
    """A value on its way from one memory to another."""

    value: str
    src: int
    dst: int


@dataclass(frozen=True)
class Moves:
    """What a step moves; memories are numbers.

    By segment: `inputs` to bring before it, `awaits` what arrives for its device and nobody there
    has awaited, `sends` what leaves after it, and `ends` the outputs on their way if it is the last
    of its device, None if it is not. `home` is the memory that makes each value, `readers` has the
    memories that read each placeholder.
    """

    inputs: tuple[tuple[Move, ...], ...]
    awaits: tuple[tuple[Move, ...], ...]
    sends: tuple[tuple[Move, ...], ...]
    ends: tuple[tuple[Move, ...] | None, ...]
    home: dict[str, int]
    readers: dict[str, tuple[int, ...]]


def moves_of(program: TorchProgram, schedule: Schedule, memory_of: Sequence[int]) -> Moves:
    """The moves of a schedule whose segments work in these memories."""
    segment_of, number = schedule.segment_of, len(schedule.segments)
    home = {value: memory_of[segment_of[k.name]] for value, k in program.maker.items()}
    sends: list[dict[Move, None]] = [{} for _ in range(number)]
    awaits: list[dict[Move, None]] = [{} for _ in range(number)]
    readers: dict[str, set[int]] = {}
    # Kernels in the schedule's order, so that the first segment to read a value awaits it.
    kernels = [program.nodes[name] for s in schedule.segments for name in s.kernels]
    for kernel in kernels:
        reader = segment_of[kernel.name]
        for value in program.reads(kernel):
            maker = program.maker.get(value.name)
            if maker is None:
                readers.setdefault(value.name, set()).add(memory_of[reader])
            src = HOST if maker is None else memory_of[segment_of[maker.name]]
            if src == memory_of[reader] or value.name in program.state:
                continue
            move = Move(value.name, src, memory_of[reader])
            awaits[reader][move] = None
            if maker is not None:
                sends[segment_of[maker.name]][move] = None
    for _, name in program.outputs:
        if home.get(name, HOST) != HOST:
            sends[segment_of[program.maker[name].name]][Move(name, home[name], HOST)] = None
    return Moves(
        inputs=_inputs(program, awaits, memory_of),
        awaits=_once(schedule, awaits),
        sends=tuple(map(tuple, sends)),
        ends=_ends(program, schedule, sends),
        home=home,
        readers={name: tuple(sorted(memories)) for name, memories in readers.items()},
    )


def _inputs(
    program: TorchProgram, awaits: Sequence[dict[Move, None]], memory_of: Sequence[int]
) -> tuple[tuple[Move, ...], ...]:
    """Every input that a memory reads, at the first segment there."""
    found: list[tuple[Move, ...]] = []
    for segment, memory in enumerate(memory_of):
        first = memory not in memory_of[:segment]
        moves = dict.fromkeys(move for each in awaits for move in each if move.dst == memory)
        found.append(tuple(m for m in moves if first and m.value in program.inputs))
    return tuple(found)


def _once(schedule: Schedule, awaits: Sequence[dict[Move, None]]) -> tuple[tuple[Move, ...], ...]:
    """Each device awaits a value once: what its later segments read is there."""
    seen: dict[str, set[Move]] = {}
    found = []
    for segment, moves in zip(schedule.segments, awaits, strict=True):
        known = seen.setdefault(segment.device, set())
        found.append(tuple(move for move in moves if move not in known))
        known.update(moves)
    return tuple(found)


def _ends(
    program: TorchProgram, schedule: Schedule, sends: Sequence[dict[Move, None]]
) -> tuple[tuple[Move, ...] | None, ...]:
    """At the last segment of each device, its outputs that go to the host."""
    outputs = {name for _, name in program.outputs}
    devices = [segment.device for segment in schedule.segments]
    going: dict[str, list[Move]] = {device: [] for device in devices}
    for device, moves in zip(devices, sends, strict=True):
        going[device] += [m for m in moves if m.dst == HOST and m.value in outputs]
    return tuple(
        None if device in devices[i + 1 :] else tuple(going[device])
        for i, device in enumerate(devices)
    )
