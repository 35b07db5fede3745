"""Placements within memory: what every list scheduler does when a device cannot hold its part.

Whether memory suffices is decided by the definition in `core.violations`, on the schedule that the
placement gets. A method that misses it tries again with tightened limits; then the result is
repaired (`repair.py`); then a `ValueError` says by figures what is missing. Packing is hard in
general, so the error says "found", not "exists", unless the weights alone settle it.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.search.needs import limit_bytes, missing_bytes, unit_bytes
from placement.search.repair import all_placements, relieved, repacked

# Shares of the memory limits that are given to a method one after another.
SCALES = (1.0, 0.9, 0.75, 0.6, 0.45, 0.3)
# Placements, those that exceed least, from which units are moved one by one.
STARTS = 3


def within_memory(
    problem: Problem, attempt: Callable[[float], Placement], scales: Sequence[float] = SCALES
) -> Placement:
    """The first of the attempts, one per share of the memory limits, that keeps to memory.

    If none does, the one that exceeds least is repaired. Raises a ValueError that names the device
    and the bytes it lacks when that fails too.
    """
    require_room_for_weights(problem)
    tried: list[tuple[float, int, Placement]] = []

    def attempts() -> Iterator[Placement]:
        yield from map(attempt, scales)
        yield from repacked(problem, min(tried)[2])
        yield from (relieved(problem, placement) for _, _, placement in sorted(tried)[:STARTS])

    for placement in attempts():
        missing = missing_bytes(problem, placement)
        if not missing.any():
            return placement
        tried.append((float(missing.sum()), len(tried), placement))
    for placement in all_placements(problem):
        if not missing_bytes(problem, placement).any():
            return placement
    raise ValueError(
        f"No placement within memory was found: {_lacks(problem, min(tried)[2])};"
        f" {remedy(problem)}."
    )


def require_memory(problem: Problem, placement: Placement) -> Placement:
    """The placement itself; a ValueError says what a device lacks that cannot hold its part."""
    if missing_bytes(problem, placement).any():
        raise ValueError(
            f"The placement does not fit: {_lacks(problem, placement)}; {remedy(problem)}."
        )
    return placement


def require_room_for_weights(problem: Problem) -> None:
    """ValueError where the weights alone exceed all devices, or a unit each device it may use."""
    limits, weights = limit_bytes(problem), unit_bytes(problem)
    if weights.sum() > limits.sum():
        raise ValueError(
            f"The weights need {weights.sum():.0f} bytes, all devices together have"
            f" {limits.sum():.0f}; {remedy(problem)}."
        )
    most = np.where(problem.allowed, limits, -1.0).max(axis=1, initial=-1.0)
    too_big = np.flatnonzero(weights > most)
    if too_big.size:
        unit = int(too_big[0])
        name = problem.graph.ops[problem.ops_of_unit[unit][0]].name
        raise ValueError(
            f"The weights of op {name!r} and what moves with it need {weights[unit]:.0f} bytes, no"
            f" device it may run on has more than {most[unit]:.0f}; {remedy(problem)}."
        )


def _lacks(problem: Problem, placement: Placement) -> str:
    missing = missing_bytes(problem, placement)
    return ", ".join(
        f"device {problem.machine.devices[d].name!r} lacks {missing[d]:.0f} bytes"
        for d in np.flatnonzero(missing)
    )


def remedy(problem: Problem) -> str:
    pins = " remove pins," if problem.pins else ""
    return f"give the devices more memory,{pins} use a smaller batch or add a device"
