"""Two pieces of work in registers alone (compiled)."""

from placement.compiled.jit import jit


@jit
def fill_slots(rounds: int) -> int:
    """Eight sums of integers beside one another: an instruction for every slot of a core."""
    a, b, c, d = 1, 2, 3, 4
    e, f, g, h = 5, 6, 7, 8
    for i in range(rounds):
        a, b, c, d = a * 3 + i, b * 5 + i, c * 7 + i, d * 9 + i
        e, f, g, h = e ^ (a + i), f ^ b, g + c, h ^ d
    return a + b + c + d + e + f + g + h


@jit
def follow_chain(rounds: int) -> int:
    """One number after another, each made of the last: most slots stay empty."""
    x = 1
    for _ in range(rounds):
        x = x * 6364136223846793005 + 1442695040888963407
    return x
