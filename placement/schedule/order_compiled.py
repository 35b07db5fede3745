"""Orders of execution, compiled: binary heap, upward ranks, topological order by priority."""

import numpy as np

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.core.graph import Ints


@jit
def push(keys: Floats, items: Ints, size: int, key: float, item: int) -> int:
    """Enter (key, item) into a binary heap of `size` entries; returns the new size.

    The least key is at position 0, the least item among equal keys.
    """
    i = size
    while i > 0:
        above = (i - 1) // 2
        if keys[above] < key or (keys[above] == key and items[above] < item):
            break
        keys[i], items[i] = keys[above], items[above]
        i = above
    keys[i], items[i] = key, item
    return size + 1


@jit
def pop(keys: Floats, items: Ints, size: int) -> int:
    """Take the entry at position 0 out of a binary heap; returns the new size."""
    size -= 1
    key, item = keys[size], items[size]
    i = 0
    while True:
        below = 2 * i + 1
        if below >= size:
            break
        other = below + 1
        if other < size and (
            keys[other] < keys[below]
            or (keys[other] == keys[below] and items[other] < items[below])
        ):
            below = other
        if key < keys[below] or (key == keys[below] and item < items[below]):
            break
        keys[i], items[i] = keys[below], items[below]
        i = below
    keys[i], items[i] = key, item
    return size


@jit
def num_waited_for(num_ops: int, producer: Ints, consumer_ptr: Ints, consumers: Ints) -> Ints:
    """How many tensors each op reads that another op makes."""
    waiting = np.zeros(num_ops, dtype=np.int64)
    for t in range(producer.size):
        if producer[t] >= 0:
            for i in range(consumer_ptr[t], consumer_ptr[t + 1]):
                waiting[consumers[i]] += 1
    return waiting


@jit
def by_priority(
    keys: Floats,
    producer: Ints,
    consumer_ptr: Ints,
    consumers: Ints,
    out_ptr: Ints,
    out_tensors: Ints,
) -> Ints:
    """Topological order that takes the ready op with the smallest key, ties in declared order."""
    num_ops = keys.size
    waiting = num_waited_for(num_ops, producer, consumer_ptr, consumers)
    heap_keys = np.empty(num_ops)
    heap_items = np.empty(num_ops, dtype=np.int64)
    size = 0
    for i in range(num_ops):
        if waiting[i] == 0:
            size = push(heap_keys, heap_items, size, keys[i], i)
    order = np.empty(num_ops, dtype=np.int64)
    for step in range(num_ops):
        i = heap_items[0]
        size = pop(heap_keys, heap_items, size)
        order[step] = i
        for o in range(out_ptr[i], out_ptr[i + 1]):
            t = out_tensors[o]
            for c in range(consumer_ptr[t], consumer_ptr[t + 1]):
                j = consumers[c]
                waiting[j] -= 1
                if waiting[j] == 0:
                    size = push(heap_keys, heap_items, size, keys[j], j)
    return order


@jit
def upward_ranks(
    compute_s: Floats,
    device: Ints,
    latency_s: Floats,
    s_per_byte: Floats,
    tensor_bytes: Floats,
    consumer_ptr: Ints,
    consumers: Ints,
    out_ptr: Ints,
    out_tensors: Ints,
) -> Floats:
    """Longest path from the start of each kernel (K,) to the end; compute_s is (K, D)."""
    ranks = np.zeros(device.size)
    for k in range(device.size - 1, -1, -1):
        longest = 0.0
        for o in range(out_ptr[k], out_ptr[k + 1]):
            t = out_tensors[o]
            for c in range(consumer_ptr[t], consumer_ptr[t + 1]):
                r = consumers[c]
                move_s = 0.0
                if device[k] != device[r]:
                    move_s = (
                        latency_s[device[k], device[r]]
                        + tensor_bytes[t] * s_per_byte[device[k], device[r]]
                    )
                longest = max(longest, move_s + ranks[r])
        ranks[k] = compute_s[k, device[k]] + longest
    return ranks
