"""Random numbers for compiled searches: the same in every thread, and uncompiled.

Park and Miller's minimal standard generator ("Random number generators: good ones are hard to
find", CACM 1988) with the multiplier 48271; products stay below 2^47. The state is an array of one
number. What searches need is cheap and repeatable, not unpredictable.
"""

import numpy as np

from placement.compiled.jit import inlined, jit
from placement.core.graph import Ints

MODULUS = 2147483647


@jit
def seeded(seed: int) -> Ints:
    """A state (1,); neighbouring seeds give unrelated sequences."""
    state = np.empty(1, np.int64)
    state[0] = 1 + (seed * 1000003 + 12345) % (MODULUS - 1)
    for _ in range(8):
        state[0] = state[0] * 48271 % MODULUS
    return state


@inlined
def uniform(state: Ints) -> float:
    """A number from 0 to 1, both excluded."""
    state[0] = state[0] * 48271 % 2147483647
    return float(state[0] / 2147483647.0)


@inlined
def below(num: int, state: Ints) -> int:
    """A whole number from 0 to `num` - 1."""
    state[0] = state[0] * 48271 % 2147483647
    return int(state[0] * num // 2147483647)
