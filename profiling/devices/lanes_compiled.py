"""The segments of a lane in one native call: wait, run, hand over, next, without the interpreter.

Whatever is not arithmetic is called by its address, an argument like any other, so that the
compiled code can be kept on disk. Such a call may change all memory as far as the compiler knows,
so what another thread has written is read anew after it. `functions` are those addresses: of the
segments' function, acquire, release, a clock that returns or one that writes (one of them is 0),
and `sched_yield`. `over` (1,) is set by whoever ends all lanes.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from placement.compiled.jit import inlined, inner, jit
from placement.core.costs import Floats
from placement.core.graph import Ints

# Between two tries there is less than a microsecond, unless the core was given to others: to a
# process that wants it, for some milliseconds; for less only to what is soon done, or by the host.
ABSENCE_NS = 1_000_000
ROUNDS_ASLEEP = 10
_WORD, _INT = ir.IntType(64), ir.IntType(32)
# Tells a core that its thread only tries, so that another one on the same core gets its slots.
_X86, _ARM = ("llvm.x86.sse2.pause", ()), ("llvm.aarch64.hint", (ir.Constant(_INT, 1),))
_RELAX = {"x86_64": _X86, "aarch64": _ARM, "arm64": _ARM}


class LaneSegments(NamedTuple):
    """What a lane runs: in which round after its first one a sample's segment runs (S,),
    `arguments` (S, slots, 3) of their function, and addresses of locks (locks, slots). Segment i
    waits for rows `first_wait[i]` to `first_wait[i + 1]` of `waits`, and opens rows
    `first_signal[i]` to `first_signal[i + 1]` of `signals`; both have S + 1 numbers."""

    stages: Ints
    arguments: Ints
    first_wait: Ints
    waits: Ints
    first_signal: Ints
    signals: Ints


class LaneRecord(NamedTuple):
    """What a lane tells of its last round: in seconds begin and end of segments (S,), and when a
    wait was over (waits,), NaN where nobody waited. `status` (2,) is the answer of a segment that
    failed, and for how many rounds more the thread sleeps at once; into `now` (1,) the clock may
    write its nanoseconds."""

    start_s: Floats
    end_s: Floats
    resumed_s: Floats
    status: Ints
    now: Ints


class LaneSamples(NamedTuple):
    """The samples of a lane of a pipeline. They end below `limit[0]`, which may fall to a number
    that has not begun. By slot there are locks for "the sample may begin" (`go`) and "this lane is
    done with it" (`done`), and since when it is (`ended_s`). `times_s` (rounds, S, 2) has the times
    of the last so many rounds, round r in row r modulo their number."""

    limit: Ints
    go: Ints
    done: Ints
    ended_s: Floats
    times_s: Floats


def _intrinsic(typed: Callable[..., Any]) -> Any:
    """What compiled code calls with one argument less than this has."""
    return intrinsic(typed)


def _by_address(builder: Any, address: Any, result: Any, given: Any) -> Any:
    kind = ir.FunctionType(result, [value.type for value in given])
    return builder.call(builder.inttoptr(address, kind.as_pointer()), given)


@_intrinsic
def _call(typing_context: Any, address: Any, first: Any, second: Any, third: Any) -> Any:
    """What a function of three addresses returns, itself an address."""

    def generated(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return _by_address(builder, given[0], _WORD, given[1:])

    return types.int64(types.int64, types.int64, types.int64, types.int64), generated


@_intrinsic
def _acquire(typing_context: Any, address: Any, lock: Any, waits: Any) -> Any:
    """`PyThread_acquire_lock`: 1 once the lock is taken, 0 where it is not and nobody waits."""

    def generated(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        waiting = builder.trunc(given[2], _INT)
        taken = _by_address(builder, given[0], _INT, (given[1], waiting))
        return builder.sext(taken, _WORD)

    return types.int64(types.int64, types.int64, types.int64), generated


@_intrinsic
def _release(typing_context: Any, address: Any, lock: Any) -> Any:
    """`PyThread_release_lock`."""

    def generated(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        _by_address(builder, given[0], ir.VoidType(), given[1:])
        return ir.Constant(_WORD, 0)

    return types.int64(types.int64, types.int64), generated


@_intrinsic
def _clock(typing_context: Any, address: Any) -> Any:
    """Nanoseconds, of a function that returns them."""

    def generated(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return _by_address(builder, given[0], _WORD, ())

    return types.int64(types.int64), generated


@_intrinsic
def _clock_into(typing_context: Any, address: Any, where: Any) -> Any:
    """Nanoseconds into memory, of a function that writes them there."""

    def generated(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        _by_address(builder, given[0], _INT, given[1:])
        return ir.Constant(_WORD, 0)

    return types.int64(types.int64, types.int64), generated


@_intrinsic
def _relax(typing_context: Any) -> Any:
    """Leave the core to its other hardware thread for a moment, where there is a way to say so."""

    def generated(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        if known := _RELAX.get(builder.module.triple.split("-")[0]):
            name, told = known
            kind = ir.FunctionType(ir.VoidType(), [value.type for value in told])
            builder.call(builder.module.declare_intrinsic(name, (), kind), told)
        return ir.Constant(_WORD, 0)

    return types.int64(), generated


@_intrinsic
def _yield(typing_context: Any, address: Any) -> Any:
    """`sched_yield`: let others have the core first, if they want it."""

    def generated(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.sext(_by_address(builder, given[0], _INT, ()), _WORD)

    return types.int64(types.int64), generated


@_intrinsic
def _fence(typing_context: Any) -> Any:
    """Nothing that this thread reads or writes passes this point, on any kind of computer."""

    def generated(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        builder.fence("seq_cst")
        return ir.Constant(_WORD, 0)

    return types.int64(), generated


@inlined
def now_ns(functions: Ints, now: Ints) -> int:
    """Nanoseconds of the clock among these addresses; `now` (1,) is where it may write."""
    if functions[4]:
        _clock_into(functions[4], now.ctypes.data)
    else:
        now[0] = _clock(functions[3])
    return int(now[0])


@inlined
def meet(
    lane: int, met: Ints, functions: Ints, patience_ns: int, over: Ints, status: Ints, now: Ints
) -> None:
    """Stay awake until all lanes have come here as often (`met`, by lane), for `patience_ns` at
    most; not where the thread is one that sleeps at once, or is kept from its core meanwhile."""
    met[lane] += 1
    last_ns = now_ns(functions, now)
    until_ns = last_ns + (patience_ns if status[1] == 0 else 0)
    while met.min() < met[lane] and over[0] == 0 and last_ns < until_ns:
        _relax()
        time_ns = now_ns(functions, now)
        if time_ns - last_ns > ABSENCE_NS:
            status[1] = ROUNDS_ASLEEP
            break
        last_ns = time_ns


@inlined
def barrier(
    lane: int, met: Ints, functions: Ints, patience_ns: int, over: Ints, status: Ints, now: Ints
) -> None:
    """Stay until all lanes have come here, however long that takes, or `over` is set: none may read
    any more what the next round writes. After `patience_ns`, or where others want the core, it is
    theirs between two tries."""
    _fence()
    met[lane] += 1
    last_ns = now_ns(functions, now)
    until_ns = last_ns + (patience_ns if status[1] == 0 else 0)
    while met.min() < met[lane] and over[0] == 0:
        time_ns = now_ns(functions, now)
        if time_ns - last_ns > ABSENCE_NS:
            status[1] = ROUNDS_ASLEEP
        if time_ns >= until_ns or status[1] != 0:
            _yield(functions[5])
            time_ns = now_ns(functions, now)
        else:
            _relax()
        last_ns = time_ns
    _fence()


@inlined
def take(lock: int, functions: Ints, patience_ns: int, status: Ints, now: Ints) -> None:
    """Take a lock: try for `patience_ns`, then sleep. A thread that was kept from its core
    meanwhile, because others want it, sleeps at once for some rounds (`status[1]` are left), or it
    would use up the share of time that it needs for computing.
    """
    last_ns = now_ns(functions, now)
    until_ns = last_ns + (patience_ns if status[1] == 0 else 0)
    while _acquire(functions[1], lock, 0) == 0:
        _relax()
        time_ns = now_ns(functions, now)
        if time_ns - last_ns > ABSENCE_NS:
            status[1] = ROUNDS_ASLEEP
        last_ns = time_ns
        if time_ns >= until_ns or status[1] != 0:
            _acquire(functions[1], lock, 1)
            break


@jit
def take_for_python(
    lock: int,
    functions: Ints,
    patience_ns: int,
    status: Ints,
    now: Ints,
    lane: int,
    until_ns: Ints,
    most_ns: int,
) -> None:
    """Take a lock for a lane in Python.

    `until_ns` says by lane when it will have let go of the interpreter's lock. Who came back before
    would sleep for that lock, and be woken: so it comes then, or after `most_ns`.
    """
    mine_ns, until_ns[lane] = until_ns[lane], 0
    take(lock, functions, patience_ns, status, now)
    time_ns = now_ns(functions, now)
    last_ns = time_ns + most_ns
    while time_ns < min(until_ns.max(), last_ns):
        _relax()
        time_ns = now_ns(functions, now)
    until_ns[lane] = mine_ns


@inner
def _run_segments(
    segments: LaneSegments,
    record: LaneRecord,
    functions: Ints,
    over: Ints,
    patience_ns: int,
    number: int,
    limit: int,
) -> int:
    """Run each segment of a lane once: in round `number` for sample `number` minus its stage.

    Samples below 0 and from `limit` on are passed over. A lock is tried for `patience_ns` before
    the thread sleeps (`take`). Returns the number of segments when all have run, the number of one
    that failed, whose answer is in `record.status[0]`, or -1 when `over` is set.
    """
    status, now = record.status, record.now
    slots = segments.arguments.shape[1]
    for i in range(len(segments.stages)):
        sample = number - segments.stages[i]
        if sample < 0 or sample >= limit:
            continue
        slot = sample % slots
        for j in range(segments.first_wait[i], segments.first_wait[i + 1]):
            lock = segments.waits[j, slot]
            record.resumed_s[j] = np.nan
            if _acquire(functions[1], lock, 0) == 0:
                take(lock, functions, patience_ns, status, now)
                record.resumed_s[j] = now_ns(functions, now) / 1e9
        if over[0] != 0:
            return -1
        record.start_s[i] = now_ns(functions, now) / 1e9
        given = segments.arguments[i, slot]
        status[0] = _call(functions[0], given[0], given[1], given[2])
        record.end_s[i] = now_ns(functions, now) / 1e9
        if status[0] != 0:
            return i
        for j in range(segments.first_signal[i], segments.first_signal[i + 1]):
            _release(functions[2], segments.signals[j, slot])
    return len(segments.stages)


@jit
def run_step(
    stages: Ints,
    arguments: Ints,
    first_wait: Ints,
    waits: Ints,
    first_signal: Ints,
    signals: Ints,
    start_s: Floats,
    end_s: Floats,
    resumed_s: Floats,
    status: Ints,
    now: Ints,
    functions: Ints,
    over: Ints,
    patience_ns: int,
    limit: int,
    bounds_s: Floats,
    lane: int,
    met: Ints,
    again: int,
) -> int:
    """Run each segment of a lane once, nothing where `limit` is 0; see `_run_segments`.

    The lanes of a step meet before it begins, for one that is woken tens of microseconds after
    another would be waited for, and when it is over, for a core that has slept finds its caches
    cold (`met` counts by lane). `bounds_s` are the times between. Before the round that counts
    there are `again` others, of which nothing is told: in steps whose segments make the same
    however often they run. The arrays of `LaneSegments` and `LaneRecord` come one by one, in their
    order, for the interpreter takes long to unpack a tuple of arrays, and a step may be over in
    less than 0.1 ms.
    """
    segments = LaneSegments(stages, arguments, first_wait, waits, first_signal, signals)
    record = LaneRecord(start_s, end_s, resumed_s, status, now)
    status[1] = max(status[1] - 1, 0)
    for left in range(again, -1, -1):
        if limit:
            meet(lane, met, functions, patience_ns, over, status, now)
        bounds_s[0] = now_ns(functions, now) / 1e9
        ended = _run_segments(segments, record, functions, over, patience_ns, 0, limit)
        if ended < len(stages):
            return ended
        bounds_s[1] = now_ns(functions, now) / 1e9
        if left:
            barrier(lane, met, functions, patience_ns, over, status, now)
        elif limit:
            meet(lane, met, functions, patience_ns, over, status, now)
    return len(stages)


@jit
def run_rounds(
    segments: LaneSegments,
    record: LaneRecord,
    samples: LaneSamples,
    functions: Ints,
    over: Ints,
    patience_ns: int,
    first: int,
    most: int,
) -> int:
    """Run a lane of a pipeline for `most` rounds from `first` on, or until no sample is left.

    Returns how many rounds were run: less than `most` where no sample is left, where `over` is set,
    or where a segment failed, whose answer is in `record.status[0]` then.
    """
    slots, last = segments.arguments.shape[1], len(segments.stages) - 1
    for number in range(first, first + most):
        record.status[1] = max(record.status[1] - 1, 0)
        begins, ends = number - segments.stages[0], number - segments.stages[last]
        if 0 <= begins < samples.limit[0] and over[0] == 0:
            # Its lock is opened by a thread that needs a core for it: this one sleeps at once.
            _acquire(functions[1], samples.go[begins % slots], 1)
        # Those of later segments began before the first one's: none of them is beyond.
        until = samples.limit[0]
        if ends >= until or over[0] != 0:
            return number - first
        ended = _run_segments(segments, record, functions, over, patience_ns, number, until)
        if ended <= last:
            return number - first
        row = samples.times_s[number % len(samples.times_s)]
        row[:, 0], row[:, 1] = record.start_s, record.end_s
        if ends >= 0:
            samples.ended_s[ends % slots] = record.end_s[last]
            _release(functions[2], samples.done[ends % slots])
    return most
