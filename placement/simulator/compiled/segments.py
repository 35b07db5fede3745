"""Segments: an order of kernels cut at every crossing between devices, and merged again (compiled).

What merging needs to know is who can wait, and in which order merged segments run; its arrays are
over the segments of a run that kept its details.
"""

import heapq

import numpy as np

from placement.compiled.jit import inner, jit
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.simulator.compiled.links import crosses, find_first_uses
from placement.simulator.flat import Flat
from placement.simulator.run_state import UNUSED, RunState


@jit
def cut(flat: Flat, device: Ints, order: Ints, position: Ints) -> Ints:
    """Segment of every kernel, numbered by their first kernel's place in the order.

    A kernel opens a segment where the one before it on its device was closed or where it is the
    first reader of a tensor that comes from elsewhere; it closes its segment where a tensor of its
    is sent elsewhere.
    """
    num_devices = flat.call_s.size
    producer, on_host, host = flat.producer, flat.on_host, flat.host
    in_ptr, in_tensors, out_ptr, out_tensors = (
        flat.in_ptr,
        flat.in_tensors,
        flat.out_ptr,
        flat.out_tensors,
    )
    first = np.empty(flat.producer.size * num_devices, dtype=np.int32)
    find_first_uses(flat, device, position, first)
    segment_of = np.empty(order.size, dtype=np.int64)
    current = np.full(num_devices, -1, dtype=np.int64)
    num_segments = 0
    for i in range(order.size):
        k = order[i]
        d = device[k]
        opens = flat.each_pays or current[d] < 0
        for j in range(in_ptr[k], in_ptr[k + 1]):
            t = in_tensors[j]
            if first[t * num_devices + d] == i and crosses(producer, device, on_host, host, t, d):
                opens = True
        if opens:
            current[d] = num_segments
            num_segments += 1
        segment_of[k] = current[d]
        for o in range(out_ptr[k], out_ptr[k + 1]):
            t = out_tensors[o]
            for e in range(num_devices):
                if e != d and first[t * num_devices + e] != UNUSED:
                    current[d] = -1
            if flat.is_output[t] and host >= 0 and not on_host[d]:
                current[d] = -1
    return segment_of


@inner
def slack(flat: Flat, state: RunState, step_s: float) -> tuple[Floats, Floats]:
    """Seconds that each segment, and the first transfer of each, could end later in a step no
    longer, everyone waiting for whom they wait for now."""
    num_tasks, num_devices = flat.compute_s.shape
    end_s, send_s = np.full(num_tasks, step_s), np.full(num_tasks, np.inf)
    moved_s = np.full(state.arrived_s.size, step_s)
    lane_s = np.full(num_devices, step_s)
    for i in range(num_tasks - 1, -1, -1):
        k = state.order[i]
        d = state.device[k]
        end_s[k] = lane_s[flat.engine[d]]
        for o in range(flat.out_ptr[k + 1] - 1, flat.out_ptr[k] - 1, -1):
            t = flat.out_tensors[o]
            for e in range(num_devices - 1, -1, -1):
                at = t * num_devices + e
                reads = state.first[at] != UNUSED
                if e == d or not (reads or (flat.is_output[t] and e == flat.host)):
                    continue
                if reads:
                    r = state.order[state.first[at]]
                    latest_s = end_s[r] - (state.end_s[r] - state.start_s[r])
                    moved_s[at] = min(moved_s[at], latest_s)
                start_s = moved_s[at] - (state.arrived_s[at] - state.sent_s[at])
                end_s[k] = min(end_s[k], start_s)
                send_s[k] = min(send_s[k], moved_s[at] - state.arrived_s[at])
                behind = state.behind[at]
                if behind >= 0:
                    moved_s[behind] = min(moved_s[behind], start_s)
        lane_s[flat.engine[d]] = end_s[k] - (state.end_s[k] - state.start_s[k])
    return np.maximum(end_s - state.end_s, 0.0), np.maximum(send_s, 0.0)


@jit
def harmless_pairs(flat: Flat, state: RunState, step_s: float) -> Ints:
    """Neighbours (a, b) on a device, in the order of b: b's inputs are early and a's values can
    wait until b ends."""
    num_tasks, num_devices = flat.compute_s.shape
    producer, device, on_host, host = flat.producer, state.device, flat.on_host, flat.host
    slack_s, send_slack_s = slack(flat, state, step_s)
    last = np.full(num_devices, -1, dtype=np.int64)
    pairs = np.empty((num_tasks, 2), dtype=np.int64)
    num_pairs = 0
    for i in range(num_tasks):
        b = state.order[i]
        d = state.device[b]
        a = last[d]
        last[d] = b
        if a < 0:
            continue
        arrived_s = 0.0
        for j in range(flat.in_ptr[b], flat.in_ptr[b + 1]):
            t = flat.in_tensors[j]
            at = t * num_devices + d
            if state.first[at] == i and crosses(producer, device, on_host, host, t, d):
                arrived_s = max(arrived_s, state.arrived_s[at])
        delay_in_s = max(0.0, arrived_s - state.start_s[a])
        delay_out_s = delay_in_s + (state.end_s[b] - state.start_s[b])
        if delay_in_s <= slack_s[a] and delay_out_s <= send_slack_s[a]:
            pairs[num_pairs, 0], pairs[num_pairs, 1] = a, b
            num_pairs += 1
    return pairs[:num_pairs]


@jit
def merged_order(flat: Flat, device: Ints, order: Ints, into: Ints, num_merged: int) -> Ints:
    """Merged segments in an order that respects data and lanes, the smallest number first; shorter
    than `num_merged` if they wait for each other in a cycle.

    `into[s]` is the number of the merged segment that s becomes part of.
    """
    num_edges = flat.consumers.size + order.size
    source, target = np.empty(num_edges, dtype=np.int64), np.empty(num_edges, dtype=np.int64)
    n = 0
    for t in range(flat.producer.size):
        p = flat.producer[t]
        if p < 0:
            continue
        for c in range(flat.consumer_ptr[t], flat.consumer_ptr[t + 1]):
            source[n], target[n] = into[p], into[flat.consumers[c]]
            n += 1
    last = np.full(flat.call_s.size, -1, dtype=np.int64)
    for s in order:
        d = flat.engine[device[s]]
        if last[d] >= 0:
            source[n], target[n] = into[last[d]], into[s]
            n += 1
        last[d] = s
    return topological(num_merged, source[:n], target[:n])


@inner
def topological(num_nodes: int, source: Ints, target: Ints) -> Ints:
    """Nodes in topological order of the edges, the smallest ready first; edges from a node to
    itself count for nothing."""
    ptr = np.zeros(num_nodes + 1, dtype=np.int64)
    waiting = np.zeros(num_nodes, dtype=np.int64)
    for i in range(source.size):
        if source[i] != target[i]:
            ptr[source[i] + 1] += 1
            waiting[target[i]] += 1
    ptr = np.cumsum(ptr)
    place, after = ptr.copy(), np.empty(ptr[-1], dtype=np.int64)
    for i in range(source.size):
        if source[i] != target[i]:
            after[place[source[i]]] = target[i]
            place[source[i]] += 1
    ready = [np.int64(0)]
    ready.pop()
    for v in np.flatnonzero(waiting == 0):
        heapq.heappush(ready, v)
    found = np.empty(num_nodes, dtype=np.int64)
    n = 0
    while len(ready) > 0:
        v = heapq.heappop(ready)
        found[n] = v
        n += 1
        for j in range(ptr[v], ptr[v + 1]):
            waiting[after[j]] -= 1
            if waiting[after[j]] == 0:
                heapq.heappush(ready, after[j])
    return found[:n]
