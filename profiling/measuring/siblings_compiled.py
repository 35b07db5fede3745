"""Two pieces of work in registers, and cache lines that cores write for each other, timed without
the interpreter (compiled).
"""

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


@jit
def pass_on(
    number: int, rounds: int, most_ns: int, lines: Ints, functions: Ints, now: Ints, took_ns: Ints
) -> None:
    """Each core writes the next one's line once its own was written, the last one the first's.

    `lines` (cores, words of a line) are zero before. After one round, in which all arrive, the
    first core writes to `took_ns` (times,) what so many rounds took, each time. Nobody goes on for
    longer than `most_ns`; what is not done by then stays as it was.
    """
    begun_ns = now_ns(functions, now)
    started_ns, following = begun_ns, (number + 1) % lines.shape[0]
    for i in range(took_ns.shape[0] * rounds + 1):
        if number == 0:
            lines[following, 0] = i + 1
        # The clock is a call of which the compiler knows nothing, so each try reads the line anew.
        while lines[number, 0] != i + 1:
            if now_ns(functions, now) - begun_ns > most_ns:
                return
        if number > 0:
            lines[following, 0] = i + 1
        elif i % rounds == 0:
            ended_ns = now_ns(functions, now)
            if i > 0:
                took_ns[i // rounds - 1] = ended_ns - started_ns
            started_ns = ended_ns
