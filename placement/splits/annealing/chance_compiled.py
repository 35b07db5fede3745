"""A small random generator for compiled searches: the same numbers in every thread and uncompiled.

Park and Miller, "Random number generators: good ones are hard to find", CACM 1988, with the
multiplier 48271; products stay below 2^47. The state is an array of one number.
"""

import numpy as np

from placement.compiled.jit import jit
from placement.core.graph import Ints

MODULUS = 2147483647


@jit
def seeded(seed: int) -> Ints:
    """A state; neighbouring seeds give unrelated sequences."""
    state = np.empty(1, np.int64)
    state[0] = 1 + (seed * 1000003 + 12345) % (MODULUS - 1)
    for _ in range(8):
        state[0] = state[0] * 48271 % MODULUS
    return state


@jit
def uniform(state: Ints) -> float:
    """A number from 0 to 1, both excluded."""
    state[0] = state[0] * 48271 % MODULUS
    return float(state[0] / MODULUS)


@jit
def below(num: int, state: Ints) -> int:
    """A whole number from 0 to `num` - 1."""
    state[0] = state[0] * 48271 % MODULUS
    return int(state[0] * num // MODULUS)
