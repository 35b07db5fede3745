"""Idle gaps of devices as blocked sorted lists, for insertion in list schedulers.

A block holds up to WIDTH neighbouring gaps and the length of its longest, so that a search steps
over blocks in which nothing fits.
"""

from typing import NamedTuple

import numpy as np

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.core.graph import Ints

WIDTH = 128
# A sum may round to the end of a gap that is this share of the clock's time too short.
ROUNDING = 1e-15


class Gaps(NamedTuple):
    """Blocks (B) of gaps: `start_s` and `end_s` (B, WIDTH), the first `num_gaps` (B,) in use.

    `blocks` (D, B) lists the first `num_blocks[d]` blocks of device d in order of time; no gap
    of the block at a place ends after `until_s` or is longer than `longest_s` (D, B). The last gap
    of a device never ends. `used[0]` blocks are in use. Gaps shorter than `shortest_s[d]`, the
    shortest kernel, are not kept; where a kernel takes no time, gaps without length are, because it
    fits between two others.
    """

    start_s: Floats
    end_s: Floats
    num_gaps: Ints
    longest_s: Floats
    until_s: Floats
    blocks: Ints
    num_blocks: Ints
    used: Ints
    shortest_s: Floats


def idle(num_kernels: int, shortest_s: Floats) -> Gaps:
    """Devices (D) that are idle from time 0 for ever, with room for the gaps of K kernels."""
    num_devices = shortest_s.size
    most = 2 * num_kernels // WIDTH + num_devices + 2
    gaps = Gaps(
        start_s=np.zeros((most, WIDTH)),
        end_s=np.full((most, WIDTH), np.inf),
        num_gaps=np.zeros(most, dtype=np.int64),
        longest_s=np.full((num_devices, most), np.inf),
        until_s=np.full((num_devices, most), np.inf),
        blocks=np.zeros((num_devices, most), dtype=np.int64),
        num_blocks=np.ones(num_devices, dtype=np.int64),
        used=np.array([num_devices], dtype=np.int64),
        shortest_s=shortest_s,
    )
    gaps.num_gaps[:num_devices] = 1
    gaps.blocks[:, 0] = np.arange(num_devices)
    return gaps


@jit
def find_gap(gaps: Gaps, d: int, ready_s: float, duration_s: float) -> tuple[int, int, float]:
    """First gap of device d that holds a duration from `ready_s` on.

    Returns the place of its block in the device's row, its index in the block, and the start.
    """
    # Fields are read once: each reading counts a reference.
    row, until_s, longest_s = gaps.blocks[d], gaps.until_s[d], gaps.longest_s[d]
    opens_s, closes_s, num_gaps = gaps.start_s, gaps.end_s, gaps.num_gaps
    place, last = 0, gaps.num_blocks[d] - 1
    while place < last:
        middle = (place + last) // 2
        if until_s[middle] < ready_s:
            place = middle + 1
        else:
            last = middle
    while True:
        if duration_s <= longest_s[place]:
            b = row[place]
            for i in range(num_gaps[b]):
                start_s = max(opens_s[b, i], ready_s)
                if start_s + duration_s <= closes_s[b, i]:
                    return place, i, start_s
        place += 1


@jit
def take_gap(gaps: Gaps, d: int, place: int, i: int, start_s: float, end_s: float) -> None:
    """Make device d busy from `start_s` to `end_s`, which lie in gap i of the block at `place`."""
    b = gaps.blocks[d, place]
    opens_s, closes_s = gaps.start_s[b, i], gaps.end_s[b, i]
    if start_s == end_s and start_s in (opens_s, closes_s):
        return
    before = opens_s + gaps.shortest_s[d] <= start_s
    after = end_s + gaps.shortest_s[d] <= closes_s
    if before and after:
        gaps.end_s[b, i] = start_s
        insert_gap(gaps, d, place, i + 1, end_s, closes_s)
        return
    if before:
        gaps.end_s[b, i] = start_s
    elif after:
        gaps.start_s[b, i] = end_s
    else:
        for j in range(i, gaps.num_gaps[b] - 1):
            gaps.start_s[b, j], gaps.end_s[b, j] = gaps.start_s[b, j + 1], gaps.end_s[b, j + 1]
        gaps.num_gaps[b] -= 1
    measure_block(gaps, d, place)


@jit
def insert_gap(gaps: Gaps, d: int, place: int, i: int, opens_s: float, closes_s: float) -> None:
    """Enter a gap at index i of the block at `place` of device d, halving a block that is full."""
    b = gaps.blocks[d, place]
    if gaps.num_gaps[b] == WIDTH:
        halve_block(gaps, d, place)
        if i > WIDTH // 2:
            i -= WIDTH // 2
            measure_block(gaps, d, place)
            place += 1
            b = gaps.blocks[d, place]
    for j in range(gaps.num_gaps[b], i, -1):
        gaps.start_s[b, j], gaps.end_s[b, j] = gaps.start_s[b, j - 1], gaps.end_s[b, j - 1]
    gaps.start_s[b, i], gaps.end_s[b, i] = opens_s, closes_s
    gaps.num_gaps[b] += 1
    measure_block(gaps, d, place)


@jit
def halve_block(gaps: Gaps, d: int, place: int) -> None:
    """Move the later half of a full block into a new block after it."""
    b, new, half = gaps.blocks[d, place], gaps.used[0], WIDTH // 2
    gaps.used[0] += 1
    for j in range(half):
        gaps.start_s[new, j], gaps.end_s[new, j] = (
            gaps.start_s[b, half + j],
            gaps.end_s[b, half + j],
        )
    gaps.num_gaps[b], gaps.num_gaps[new] = half, half
    for j in range(gaps.num_blocks[d], place + 1, -1):
        gaps.blocks[d, j] = gaps.blocks[d, j - 1]
        gaps.until_s[d, j] = gaps.until_s[d, j - 1]
        gaps.longest_s[d, j] = gaps.longest_s[d, j - 1]
    gaps.blocks[d, place + 1] = new
    gaps.until_s[d, place + 1] = gaps.until_s[d, place]
    gaps.until_s[d, place] = gaps.start_s[new, 0]
    gaps.num_blocks[d] += 1
    measure_block(gaps, d, place + 1)


@jit
def measure_block(gaps: Gaps, d: int, place: int) -> None:
    """Note the longest gap of a block, rounded up; less than zero for a block without any."""
    b = gaps.blocks[d, place]
    opens_s, closes_s = gaps.start_s[b], gaps.end_s[b]
    longest_s = -1.0
    for i in range(gaps.num_gaps[b]):
        longest_s = max(longest_s, closes_s[i] - opens_s[i] + ROUNDING * closes_s[i])
    gaps.longest_s[d, place] = longest_s
