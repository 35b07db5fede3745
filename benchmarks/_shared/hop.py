"""A value to another actor and an answer back, as a compiled graph of Ray's carries them."""

import time
from typing import Any

import numpy as np


class Hop:
    """An actor of such a graph; its class is loaded by name on every node."""

    def __init__(self) -> None:
        self._value: Any = np.ones(1, np.uint8)
        self._began_s = 0.0

    def give(self, num_bytes: int) -> Any:
        """The value; time runs from here."""
        if self._value.nbytes != num_bytes:
            self._value = np.ones(num_bytes, np.uint8)
        self._began_s = time.perf_counter()
        return self._value

    def take(self, value: Any) -> int:
        """Copy it out of the channel, as whoever computes with it later must."""
        return int(np.array(value).nbytes)

    def taken(self, num_bytes: int) -> float:
        """Seconds since the value was given."""
        return time.perf_counter() - self._began_s
