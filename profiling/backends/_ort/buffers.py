"""Preallocated memory for the values that cross borders, reused where nobody can still read it.

A buffer may be taken over by the value of a later part only if every part that touched its old
value has certainly ended when the later one starts (`profiling.backends._ancestors`).
"""

from collections.abc import Mapping, Sequence

from placement.core.schedule import Schedule
from profiling.backends._ancestors import ancestors
from profiling.backends._ort.parts import Part


def share_buffers(
    schedule: Schedule, parts: Sequence[Part], sizes: Mapping[str, int], kept: set[str]
) -> tuple[dict[str, int], list[int]]:
    """Buffer number of every value in `sizes`, and the bytes of each buffer.

    Values in `kept` (the model's outputs) have a buffer to themselves.
    """
    maker = {name: i for i, part in enumerate(parts) for name in part.outputs}
    awaited = [[maker[name] for name in part.inputs if name in maker] for part in parts]
    before = ancestors(schedule, awaited)
    touched: dict[str, int] = {}
    for i, part in enumerate(parts):
        for name in (*part.inputs, *part.outputs):
            touched[name] = touched.get(name, 0) | 1 << i
    buffer_of: dict[str, int] = {}
    capacity: list[int] = []
    busy: list[int] = []
    for i, part in enumerate(parts):
        for name in part.outputs:
            if name not in sizes:
                continue
            best = -1
            if name not in kept:
                free = [b for b, users in enumerate(busy) if users >= 0 and not users & ~before[i]]
                best = max(free, key=lambda b: _fit(capacity[b], sizes[name]), default=-1)
            if best < 0:
                best = len(capacity)
                capacity.append(0)
                busy.append(0)
            capacity[best] = max(capacity[best], sizes[name])
            busy[best] = -1 if name in kept else touched[name]
            buffer_of[name] = best
    return buffer_of, capacity


def _fit(capacity: int, size: int) -> tuple[bool, int]:
    """Prefer the smallest buffer that is large enough, else the largest one."""
    return (capacity >= size, -capacity if capacity >= size else capacity)
