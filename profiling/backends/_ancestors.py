"""Which segments have certainly ended when another one starts: it has awaited them.

They come before it through data or through the order of one device. A segment that merely happens
to end earlier does not count, for lanes run side by side.
"""

from collections.abc import Iterable, Sequence

from placement.core.schedule import Schedule


def ancestors(schedule: Schedule, awaited: Sequence[Iterable[int]]) -> list[int]:
    """Per segment those that have ended when it starts, as the bits of an integer.

    `awaited` are by segment the earlier ones that make what it reads.

    >>> from placement.core.schedule import Segment
    >>> schedule = Schedule(tuple(Segment(device, (name,)) for device, name in ("ax", "by", "az")))
    >>> [f"{bits:b}" for bits in ancestors(schedule, [(), (), (1,)])]
    ['0', '0', '11']
    """
    last: dict[str, int] = {}
    ended: list[int] = []
    for i, (segment, makers) in enumerate(zip(schedule.segments, awaited, strict=True)):
        direct = set(makers)
        if segment.device in last:
            direct.add(last[segment.device])
        last[segment.device] = i
        bits = 0
        for j in direct:
            bits |= ended[j] | 1 << j
        ended.append(bits)
    return ended
