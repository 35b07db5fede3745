"""Compiled parts of the division into stages: loads of stages, and the best chains of them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.core.graph import Ints


class Table(NamedTuple):
    """Ideals (M) of the blocks, from the empty one to all, and what stages between them cost.

    `rows` are their bits, without columns where each ideal contains all before it. Sums over the
    blocks inside: `least_s` (M,) with every block where it is fastest, rising, `work_s` (M, W) by
    way to use a device, `lacking` (M, W) blocks that may not be there, `sizes` (M, 5) as in
    `Blocks`. Nets (T) with ends inside and outside an ideal are rows of `cross_ptr`: their numbers
    `cross_nets`, whether their maker is inside and how many of their `num_readers`. `receive_s`
    and `send_s` (W, T) are the least seconds of a transfer. `keeps` (W,) is 1, or 0 where weights
    stream; `is_live` whether values count in memory. `kind` (W,), `stride` and `most` (K,) are
    those of `Kinds`.
    """

    rows: Ints
    least_s: Floats
    work_s: Floats
    lacking: Ints
    sizes: Floats
    cross_ptr: Ints
    cross_nets: Ints
    cross_made: Ints
    cross_read: Ints
    has_maker: Ints
    num_readers: Ints
    num_bytes: Floats
    is_late: NDArray[np.bool_]
    receive_s: Floats
    send_s: Floats
    call_s: Floats
    limit_bytes: Floats
    keeps: Floats
    is_live: bool
    kind: Ints
    stride: Ints
    most: Ints


@jit
def stage_loads_s(table: Table, i: int, j: int, in_turn: bool, loads_s: Floats) -> None:
    """Least load of the stage between ideals i and j for each way (W,), infinite if not allowed.

    A stage sends what is read elsewhere once at least, and makes one call at least. Stages that
    run `in_turn` leave sending to whoever receives.
    """
    num_ways, num_nets = loads_s.size, table.num_readers.size
    for w in range(num_ways):
        loads_s[w] = table.work_s[j, w] - table.work_s[i, w] + table.call_s[w]
    early_bytes, late_bytes = 0.0, 0.0
    a, b = table.cross_ptr[i], table.cross_ptr[j]
    end_a, end_b = table.cross_ptr[i + 1], table.cross_ptr[j + 1]
    while a < end_a or b < end_b:
        net_a = table.cross_nets[a] if a < end_a else num_nets
        net_b = table.cross_nets[b] if b < end_b else num_nets
        net = min(net_a, net_b)
        made, read = 0, 0
        # One that crosses only the border before lies inside the one behind, whole.
        made_by, read_by = table.has_maker[net], table.num_readers[net]
        if net_a == net:
            made, read = table.cross_made[a], table.cross_read[a]
            a += 1
        if net_b == net:
            made_by, read_by = table.cross_made[b], table.cross_read[b]
            b += 1
        makes, reads = made_by - made, read_by - read
        if makes == 0 and reads > 0:
            for w in range(num_ways):
                loads_s[w] += table.receive_s[w, net]
            if table.is_late[net]:
                late_bytes += table.num_bytes[net]
            else:
                early_bytes += table.num_bytes[net]
        elif makes == 1 and reads < table.num_readers[net] and not in_turn:
            for w in range(num_ways):
                loads_s[w] += table.send_s[w, net]
    weight_bytes = table.sizes[j, 0] - table.sizes[i, 0]
    # State does not stream: it is there between steps, wherever weights come from.
    state_bytes, value_bytes = table.sizes[j, 4] - table.sizes[i, 4], 0.0
    if table.is_live:
        early_bytes += table.sizes[j, 1] - table.sizes[i, 1]
        late_bytes += table.sizes[j, 3] - table.sizes[i, 3]
        late_bytes += table.sizes[j, 2] - table.sizes[i, 2]
        value_bytes = max(early_bytes, late_bytes)
    for w in range(num_ways):
        resident_bytes = weight_bytes * table.keeps[w] + state_bytes
        too_large = resident_bytes + value_bytes > table.limit_bytes[w]
        if too_large or table.lacking[j, w] > table.lacking[i, w]:
            loads_s[w] = np.inf


@jit
def best_chains(
    table: Table, cap_s: float, in_turn: bool, every_state: bool
) -> tuple[Floats, Ints]:
    """Least value by (ideal, state) over chains of stages of loads up to `cap_s`.

    A state counts the devices used of each kind. The value is the largest load, or the sum of all
    for stages that run `in_turn`. Also the ideal that the last stage begins at.
    But for `every_state` one is left out, as infinite, where another with no more devices of any
    kind has no larger value: whatever stages follow the one may follow the other.
    """
    num_ideals, num_ways = table.work_s.shape
    used = _used(table)
    num_states = used.shape[1]
    best = np.full((num_ideals, num_states), np.inf)
    came = np.full((num_ideals, num_states), -1, dtype=np.int64)
    # The states that an ideal was reached in are few: listed, they need no search.
    states = np.zeros((num_ideals, num_states), dtype=np.int64)
    counts = np.zeros(num_ideals, dtype=np.int64)
    loads_s, least = np.zeros(num_ways), np.zeros(num_states)
    best[0, 0], counts[0] = 0.0, 1
    for j in range(1, num_ideals):
        for i in range(j - 1, -1, -1):
            if table.least_s[j] - table.least_s[i] > cap_s:
                break
            if counts[i] == 0:
                continue
            inside = True
            for word in range(table.rows.shape[1]):
                if table.rows[i, word] & ~table.rows[j, word]:
                    inside = False
                    break
            if not inside:
                continue
            stage_loads_s(table, i, j, in_turn, loads_s)
            for w in range(num_ways):
                if loads_s[w] > cap_s:
                    continue
                k = table.kind[w]
                stride, most = table.stride[k], table.most[k]
                for n in range(counts[i]):
                    s = states[i, n]
                    if used[k, s] == most:
                        continue
                    value = best[i, s] + loads_s[w] if in_turn else max(best[i, s], loads_s[w])
                    if value < best[j, s + stride]:
                        best[j, s + stride] = value
                        came[j, s + stride] = i
        if not every_state:
            _leave_out(table, used, best[j], least)
        for s in range(num_states):
            if best[j, s] < np.inf:
                states[j, counts[j]] = s
                counts[j] += 1
    return best, came


@jit
def _used(table: Table) -> Ints:
    """How many devices of each kind a state counts (K, S)."""
    num_states = 1
    for k in range(table.most.size):
        num_states *= table.most[k] + 1
    used = np.zeros((table.most.size, num_states), dtype=np.int64)
    for k in range(table.most.size):
        for s in range(num_states):
            used[k, s] = s // table.stride[k] % (table.most[k] + 1)
    return used


@jit
def _leave_out(table: Table, used: Ints, best: Floats, least: Floats) -> None:
    """Make infinite what is no better than a state with no more devices of any kind.

    In `least` (S,) is the least value with no more devices than a state's.
    """
    for s in range(best.size):
        before = np.inf
        for k in range(table.most.size):
            if used[k, s] > 0:
                before = min(before, least[s - table.stride[k]])
        least[s] = min(before, best[s])
        if before <= best[s]:
            best[s] = np.inf
