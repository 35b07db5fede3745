"""Probes: a fixed piece of work on every core of the host's devices, to see what they still give.

A piece shorter than a time slice of the operating system would see nothing of another process: a
thread that wakes up is served at once. So it takes some slices, which is why it is run seldom.
Hashing lets go of the interpreter's lock, needs no library and little memory, and does not slow
other cores.
"""

import hashlib
import time
from collections.abc import Iterable

from placement.core.machine import Device
from profiling.devices.lanes import Clock, Lane, Lanes

PIECE_S = 0.012
TIMEOUT_S = 30.0
_BLOCK = bytes(256 * 1024)


class Probes:
    """Threads that probe all cores at once until closed; devices off the host are not probed."""

    def __init__(self, devices: Iterable[Device], *, clock: Clock = time.perf_counter) -> None:
        probed = [d for d in devices if d.on_host]
        self._device = [d.name for d in probed for _ in _cores(d)]
        lanes = [
            Lane(Device(f"{d.name} core {i}", core_ids=ids), (number,), ((),))
            for number, (d, i, ids) in enumerate(
                (d, i, ids) for d in probed for i, ids in enumerate(_cores(d))
            )
        ]
        self._num_blocks = 8
        self._lanes = Lanes(lanes, len(lanes), self._work, clock=clock)
        if lanes:
            self._seconds()  # the first one is slower: the threads get going
            self._num_blocks = max(1, round(8 * PIECE_S / max(1e-6, min(self._seconds()))))

    def probe(self) -> dict[str, float]:
        """Seconds of the piece by device: of its slowest core."""
        found: dict[str, float] = {}
        for device, seconds in zip(self._device, self._seconds(), strict=True):
            found[device] = max(seconds, found.get(device, 0.0))
        return found

    def close(self) -> None:
        self._lanes.close()

    def _seconds(self) -> list[float]:
        if not self._device:
            return []
        step = self._lanes.step(TIMEOUT_S)
        return [end - start for start, end in zip(step.start_s, step.end_s, strict=True)]

    def _work(self, number: int) -> None:
        for _ in range(self._num_blocks):
            hashlib.sha256(_BLOCK)


def _cores(device: Device) -> tuple[tuple[int, ...], ...]:
    """The cores of a device one by one; any core where it is not pinned."""
    return tuple((core,) for core in device.core_ids) or ((),)
