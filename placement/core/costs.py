"""What computing and moving costs on a machine, as arrays over kernels and devices."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placement.core.formatting import counted
from placement.core.load import Load

Floats = NDArray[np.float64]
# Where costs come from, and in words for people.
ORIGINS = {
    "measured": "measured on this machine",
    "analytic": "estimated by formula, not measured",
    "given": "given in the file",
}


@dataclass(frozen=True, eq=False)
class Costs:
    """Seconds of every kernel on every device, and of every byte between devices.

    With K kernels and D devices: `compute_s` is (K, D), infinite where a device cannot run a
    kernel; `call_s` (D,) is paid once per call; `latency_s` and `s_per_byte` are (D, D), row the
    sender, column the receiver, zero on the diagonal. `overhead` (2, D, D) are the shares of
    a transfer's time that hold up the sender and the receiver. `workspace_bytes` (K,) is scratch
    memory while a kernel runs. `contention` says how much slower a host device computes for
    every other host device that computes at the same time (0.1: a tenth), because they share
    memory. `load` is what others computed while it was measured, `spread` (K, D) the interquartile
    ranges over the medians of what was measured, where these are known. `refined_by` is the number
    of live runs that the measured times were refined by.
    """

    compute_s: Floats
    call_s: Floats
    latency_s: Floats
    s_per_byte: Floats
    origin: str
    workspace_bytes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    overhead: Floats = field(default_factory=lambda: np.zeros((2, 0, 0)))
    contention: float = 0.0
    load: Load | None = None
    spread: Floats | None = None
    refined_by: int = 0

    def __post_init__(self) -> None:
        # In rows, whatever made them: what is compiled would be compiled anew for other arrays.
        for name in ("compute_s", "call_s", "latency_s", "s_per_byte", "overhead"):
            rows = np.ascontiguousarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, rows)
        num_kernels, num_devices = self.compute_s.shape
        if self.origin not in ORIGINS:
            raise ValueError(f"Costs have origin {self.origin!r}; use one of {tuple(ORIGINS)}.")
        if self.overhead.size == 0:
            object.__setattr__(self, "overhead", np.zeros((2, num_devices, num_devices)))
        if self.workspace_bytes.size == 0:
            object.__setattr__(self, "workspace_bytes", np.zeros(num_kernels, dtype=np.int64))
        shapes = (
            (self.call_s, (num_devices,)),
            (self.latency_s, (num_devices, num_devices)),
            (self.s_per_byte, (num_devices, num_devices)),
            (self.overhead, (2, num_devices, num_devices)),
            (self.workspace_bytes, (num_kernels,)),
        )
        for array, shape in shapes:
            assert array.shape == shape, f"cost array of shape {array.shape}, expected {shape}"
        for array in (self.compute_s, self.call_s, self.latency_s, self.s_per_byte):
            if np.isnan(array).any() or (array < 0).any():
                raise ValueError("Costs hold a negative time or none at all; use zero or more.")
            if array is not self.compute_s and np.isinf(array).any():
                raise ValueError("Costs hold an infinite call or transfer; use finite times.")
            array.setflags(write=False)
        # Not a number is no share either.
        if not ((self.overhead >= 0).all() and (self.overhead.sum(axis=0) <= 1).all()):
            raise ValueError("Costs have overheads of links that are no shares; use 0 to 1.")
        self.overhead.setflags(write=False)
        if not 0 <= self.contention < np.inf:
            raise ValueError(f"Costs have contention {self.contention}; use zero or more.")
        self.workspace_bytes.setflags(write=False)
        if self.spread is not None:
            assert self.spread.shape == self.compute_s.shape, self.spread.shape
            self.spread.setflags(write=False)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Another process's arrays could be written to, and methods would be compiled anew for such.
        vars(self).update(state)
        self.__post_init__()

    @property
    def origin_in_words(self) -> str:
        """Where the costs come from, and what speaks against them."""
        said = ORIGINS[self.origin]
        if self.refined_by:
            said += f", refined by {counted(self.refined_by, 'live run')}"
        return f"{said}, while {self.load.words}" if self.load and self.load.is_busy else said

    def transfer_s(self, src: int, dst: int, num_bytes: float) -> float:
        """Seconds to send a tensor from device `src` to device `dst`."""
        if src == dst:
            return 0.0
        return float(self.latency_s[src, dst] + num_bytes * self.s_per_byte[src, dst])
