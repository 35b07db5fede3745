"""Two pieces of work in registers alone, timed without the interpreter (compiled)."""

from placement.compiled.jit import inner, jit
from placement.core.graph import Ints
from profiling.devices.lanes_compiled import now_ns


@inner
def fill_slots(rounds: int) -> int:
    """Eight sums of integers beside one another: an instruction for every slot of a core."""
    a, b, c, d = 1, 2, 3, 4
    e, f, g, h = 5, 6, 7, 8
    for i in range(rounds):
        a, b, c, d = a * 3 + i, b * 5 + i, c * 7 + i, d * 9 + i
        e, f, g, h = e ^ (a + i), f ^ b, g + c, h ^ d
    return a + b + c + d + e + f + g + h


@inner
def follow_chain(rounds: int) -> int:
    """One number after another, each made of the last: most slots stay empty."""
    x = 1
    for i in range(rounds):
        # Multiplications alone a compiler would join.
        x = (x ^ (x >> 13)) * 6364136223846793005 + i
    return x


@jit
def time_pieces(slots: int, links: int, functions: Ints, now: Ints, found: Ints) -> None:
    """Nanoseconds of both pieces, of so many rounds, by turns; writes `found` (times, 2).

    What they compute is written down, too (2,), or nothing would have to be computed.
    """
    times = found.shape[0] - 1
    for i in range(times):
        begun_ns = now_ns(functions, now)
        found[times, 0] = fill_slots(slots)
        between_ns = now_ns(functions, now)
        found[times, 1] = follow_chain(links)
        found[i, 0] = between_ns - begun_ns
        found[i, 1] = now_ns(functions, now) - between_ns
