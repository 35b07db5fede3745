"""Random numbers for compiled searches: a generator in an array, the same compiled or not.

Park and Miller's minimal standard generator (Communications of the ACM 31(10), 1988) with the
multiplier 48271; what searches need is cheap and repeatable, not unpredictable.
"""

import numpy as np

from placement.compiled.jit import inlined
from placement.core.graph import Ints

MODULUS = 2147483647


def seeded(seed: int) -> Ints:
    """The state of a generator (1,)."""
    return np.array([(seed * 2654435761 + 12345) % (MODULUS - 1) + 1], dtype=np.int64)


@inlined
def next_share(generator: Ints) -> float:
    """The next number, above 0 and below 1."""
    generator[0] = generator[0] * 48271 % 2147483647
    return float(generator[0] / 2147483647.0)


@inlined
def next_below(generator: Ints, bound: int) -> int:
    """The next whole number from 0 to `bound` - 1."""
    generator[0] = generator[0] * 48271 % 2147483647
    return int(generator[0] % bound)
