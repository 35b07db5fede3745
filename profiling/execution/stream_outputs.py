"""Are the outputs of a stream those of its inputs, in order and all of them?"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from profiling.backends.base import Program
from profiling.measuring.outputs import Array, compare, num_bytes
from profiling.measuring.reference import Expected

# Outputs that differ wait up to this size for it to be told by how much when the stream is over.
MOST_BYTES = 256 * 2**20
# Compared at once, so that what that takes beside both is small.
BLOCK_BYTES = 2**18


class Outputs:
    """Compares the outputs of every sample with those of the unplaced model on the same input.

    `expected[i]` is for input i, `program` one of those that make them. Comparing takes time from
    the devices, so bits are compared where they lie, and only outputs that differ are copied: by
    how much is told in the end, or whenever too many have come together. `match` is within the
    tolerance of the program, `bit_equal` says that no bit of any sample differs; both are None
    where nothing can be compared. `by_rounding` says that some are no closer than rounding lets
    outputs of this model be.
    """

    def __init__(
        self, expected: Sequence[Expected], program: Program, *, comparable: bool = True
    ) -> None:
        self._expected, self._comparable = expected, comparable
        self._program, self.by_rounding = program, False
        self._held: list[tuple[int, dict[str, Any]]] = []
        self._held_bytes = 0
        self.match: bool | None = True if comparable else None
        self.bit_equal: bool | None = True if comparable else None
        self.max_abs_diff: float | None = 0.0 if comparable else None

    def compare(self, number: int, outputs: dict[str, Any]) -> None:
        """Compare what a sample with input `number` has made, which may change after this."""
        if self._comparable and not same_bits(self._expected[number].outputs, outputs):
            self.bit_equal = False
            reused = self._program.reuses_outputs
            self._held.append((number, deepcopy(outputs) if reused else outputs))
            self._held_bytes += num_bytes(outputs)
            if self._held_bytes > MOST_BYTES:
                self.finish()

    def finish(self) -> None:
        """Tell by how much all that is kept differs, and let go of it."""
        for number, outputs in self._held:
            found = self._expected[number].compared(self._program, outputs)
            self.by_rounding = self.by_rounding or found.by_rounding
            self.match = bool(self.match) and found.match
            self.max_abs_diff = max(self.max_abs_diff or 0.0, found.max_abs_diff)
        self._held, self._held_bytes = [], 0

    @property
    def num_distinct(self) -> int:
        """How many of the expected outputs differ enough for a mix-up to be noticed."""
        different: list[Mapping[str, Any]] = []
        for one in (e.outputs for e in self._expected) if self._comparable else ():
            alike = same_bits if self.bit_equal else self._close
            if not any(alike(one, other) for other in different):
                different.append(one)
        return len(different)

    def _close(self, a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
        return compare(a, b, self._program.tolerance).match


def same_bits(a: Any, b: Any) -> bool:
    """Whether two outputs are the same to the last bit, NaN like any other number."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return list(a) == list(b) and same_bits(list(a.values()), list(b.values()))
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same_bits, a, b))
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        return type(a) is type(b) and bool(a == b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return bool((a == b).all()) if a.dtype.hasobject else _same_bytes(a, b)


def _same_bytes(a: Array, b: Array) -> bool:
    """Without a copy of all where they are large and lie in order."""
    if a.nbytes <= BLOCK_BYTES:
        return a.tobytes() == b.tobytes()
    x, y = (np.ascontiguousarray(v).reshape(-1).view(np.uint8) for v in (a, b))
    blocks = (slice(i, i + BLOCK_BYTES) for i in range(0, x.size, BLOCK_BYTES))
    return all((x[block] == y[block]).all() for block in blocks)
