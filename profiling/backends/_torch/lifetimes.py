"""How long lanes keep the values that segments share: until nobody can still read them.

Lanes run side by side, so which reader of a value ends last is certain only where it has awaited
the others (`profiling.backends._ancestors`). Such a reader lets go of the value as it ends; without
one, every lane does before its first segment that has awaited all readers. What no lane is certain
of within a step, and outputs, are let go of in the next one, as the lane that makes them begins it;
what another program has made stays until it comes again.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from placement.core.schedule import Schedule
from placement.formats.torch.program import TorchProgram, is_update
from placement.formats.torch.source import written_caches
from profiling.backends._ancestors import ancestors


@dataclass(frozen=True, eq=False)
class Lifetimes:
    """Names of values to let go of, by segment: `before` it starts, and when it has run (`after`).

    `readers` are the segments that must have ended before a value may be let go of, `ended` those
    that have when a segment starts; both are bits of integers, with one more than there are
    segments for whoever has the outputs when a step is over.
    """

    readers: Mapping[str, int]
    ended: tuple[int, ...]
    before: tuple[tuple[str, ...], ...]
    after: tuple[tuple[str, ...], ...]

    def first_without(self, name: str, lane: Sequence[int]) -> int:
        """Where in a lane the first segment is that starts when a value has no reader any more.

        That is behind the lane's last segment where there is none.
        """
        return _first_behind(self.readers[name], self.ended, lane)

    def to_the_end(self) -> "Lifetimes":
        """The same values, all kept to the end of the step."""
        nothing = ((),) * len(self.ended)
        return replace(self, ended=(0,) * len(self.ended), before=nothing, after=nothing)


def lifetimes(
    program: TorchProgram, schedule: Schedule, shared: Collection[str], own: Sequence[bool]
) -> Lifetimes:
    """The lifetimes of the `shared` values that kernels make; `own` says which segments run here.

    What another runtime reads is handed over when the segment that makes it has ended.
    """
    readers, ended = _readers(program, schedule, shared, own)
    makers = {name: schedule.segment_of[program.maker[name].name] for name in readers}
    lanes: dict[str, list[int]] = {}
    for i, segment in enumerate(schedule.segments):
        if own[i]:
            lanes.setdefault(segment.device, []).append(i)
    before: list[list[str]] = [[] for _ in ended]
    after: list[list[str]] = [[] for _ in ended]
    kept = written_over(program)
    for name, bits in readers.items():
        last, maker = bits.bit_length() - 1, makers[name]
        if last < 0:
            continue  # neither made nor read here
        if last not in (maker, len(ended)) and not (bits ^ 1 << last) & ~ended[last]:
            after[last].append(name)
            continue
        ends = ((lane, _first_behind(bits, ended, lane)) for lane in lanes.values())
        found = [lane[at] for lane, at in ends if at < len(lane)]
        if not found and own[maker] and name not in kept:
            found = lanes[schedule.segments[maker].device][:1]
        for i in found:
            before[i].append(name)
    return Lifetimes(readers, tuple(ended), tuple(map(tuple, before)), tuple(map(tuple, after)))


def written_over(program: TorchProgram) -> frozenset[str]:
    """Values that are written into memory that is there already: updates, and caches."""
    caches = written_caches(program)
    made = {node for _, node in program.updates if node in program.maker}
    return frozenset(node for node in made if node in caches or is_update(program.maker[node]))


def _readers(
    program: TorchProgram, schedule: Schedule, shared: Collection[str], own: Sequence[bool]
) -> tuple[dict[str, int], list[int]]:
    """See `Lifetimes`."""
    segment_of = schedule.segment_of
    readers = {name: 0 for name in shared if name in program.maker}
    awaited: list[set[int]] = [set() for _ in schedule.segments]
    for kernel in program.kernels:
        reader = segment_of[kernel.name]
        for value in program.reads(kernel):
            if value.name not in program.maker:
                continue
            maker = segment_of[program.maker[value.name].name]
            if maker != reader:
                awaited[reader].add(maker)
                if own[reader] or own[maker]:
                    readers[value.name] |= 1 << (reader if own[reader] else maker)
    for _, name in (*program.outputs, *program.updates):
        if name in readers:
            readers[name] |= 1 << len(awaited)
    return readers, ancestors(schedule, awaited)


def _first_behind(bits: int, ended: Sequence[int], lane: Sequence[int]) -> int:
    """Where in a lane the first segment is that starts when all of `bits` have ended."""
    return bisect_left(lane, True, key=lambda i: not bits & ~ended[i])
