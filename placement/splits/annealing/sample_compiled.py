"""Compiled parts of latency by subgraph calls: the seconds of one sample, and moves of units.

Slot s holds the units of one call, call s % q of accelerator s // q; slot -1 is the CPUs.
"""

from typing import NamedTuple

import numpy as np

from placement.compiled.jit import inlined, jit
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.model.contract import UnitArrays
from placement.splits.model.nets_compiled import count_nets
from placement.splits.model.timing import TimedNodes


class Slots(NamedTuple):
    """Seconds, bytes and nodes of each slot (S,), and units of each net there (T, S)."""

    call_s: Floats
    held_bytes: Floats
    nodes_in: Ints
    held: Ints


@jit
def slots_of(slot: Ints, units: UnitArrays, nodes: TimedNodes, num_slots: int) -> Slots:
    """The slots' sums for the slot of each unit (U,)."""
    seconds, held_bytes = np.zeros(num_slots), np.zeros(num_slots)
    nodes_in = np.zeros(num_slots, np.int64)
    for u in range(len(slot)):
        if slot[u] >= 0:
            seconds[slot[u]] += units.acc_s[u]
            held_bytes[slot[u]] += units.size_bytes[u]
            nodes_in[slot[u]] += nodes.node_ptr[u + 1] - nodes.node_ptr[u]
    held = count_nets(slot, num_slots, num_slots, units, seconds)
    return Slots(seconds, held_bytes, nodes_in, held)


@jit
def sample_s(
    slot: Ints,
    call_s: Floats,
    nodes_in: Ints,
    calls_each: int,
    cpu_s: Floats,
    nodes: TimedNodes,
    room: Ints,
    ready_s: Floats,
) -> float:
    """Seconds of one sample, infinite if calls wait for each other in a cycle.

    A node of a call is fed when each predecessor is done or fed in the same call; a call runs when
    all its nodes are fed and the call before it on its accelerator is done. `cpu_s` (N,) are the
    seconds of nodes on a CPU. `room` (5, N + S) is scratch, `ready_s` (N + S,) is left with the
    time at which each node on a CPU and each call had its inputs.
    """
    unit_of, succ_ptr, succ = nodes.unit_of, nodes.succ_ptr, nodes.succ
    num = len(cpu_s)
    waiting, queue, following, fed, newest = room[0], room[1], room[2], room[3], room[4]
    ready_s[:] = 0.0
    tail = begin(nodes_in, calls_each, nodes.pred_ptr, waiting, queue, fed, newest)
    head = done = 0
    last = 0.0
    while head < tail:
        item = queue[head]
        head += 1
        s = item - num if item >= num else slot[unit_of[item]]
        if item < num and s >= 0:
            following[item] = newest[s]
            newest[s] = item
            fed[s] += 1
            if fed[s] == nodes_in[s] + (s % calls_each > 0):
                queue[tail] = num + s
                tail += 1
            for p in range(succ_ptr[item], succ_ptr[item + 1]):
                v = succ[p]
                if slot[unit_of[v]] == s:
                    tail = fewer(v, waiting, queue, tail)
            continue
        end = ready_s[item] + (call_s[s] if item >= num else cpu_s[item])
        if item < num or nodes_in[s] > 0:
            last = max(last, end)
        if item >= num and (s + 1) % calls_each > 0:
            ready_s[item + 1] = max(ready_s[item + 1], end)
            fed[s + 1] += 1
            if fed[s + 1] == nodes_in[s + 1] + 1:
                queue[tail] = item + 1
                tail += 1
        n = newest[s] if item >= num else item
        while n >= 0:
            done += 1
            for p in range(succ_ptr[n], succ_ptr[n + 1]):
                v = succ[p]
                t = slot[unit_of[v]]
                if t >= 0 and t == s:
                    continue
                to = num + t if t >= 0 else v
                ready_s[to] = max(ready_s[to], end)
                tail = fewer(v, waiting, queue, tail)
            n = following[n] if item >= num else -1
    return last if done == num else np.inf


@jit
def begin(
    nodes_in: Ints,
    calls_each: int,
    pred_ptr: Ints,
    waiting: Ints,
    queue: Ints,
    fed: Ints,
    newest: Ints,
) -> int:
    """Queue what waits for nothing: empty first calls, nodes without predecessors; the tail."""
    num, tail = len(pred_ptr) - 1, 0
    for s in range(len(nodes_in)):
        fed[s] = 0
        newest[s] = -1
        if nodes_in[s] == 0 and s % calls_each == 0:
            queue[tail] = num + s
            tail += 1
    for n in range(num):
        waiting[n] = pred_ptr[n + 1] - pred_ptr[n]
        if waiting[n] == 0:
            queue[tail] = n
            tail += 1
    return tail


@jit
def fewer(v: int, waiting: Ints, queue: Ints, tail: int) -> int:
    """Let node v wait for one predecessor less, and queue it after the last; the new tail."""
    waiting[v] -= 1
    if waiting[v] == 0:
        queue[tail] = v
        tail += 1
    return tail


@inlined
def move(u: int, to: int, slot: Ints, slots: Slots, units: UnitArrays, nodes: TimedNodes) -> None:
    """Put unit u into slot `to` (-1: the CPUs) and keep the slots' sums true."""
    call_s, held_bytes, nodes_in, held = slots
    acc_s, size_bytes, node_ptr = units.acc_s, units.size_bytes, nodes.node_ptr
    unit_ptr, unit_nets = units.unit_ptr, units.unit_nets
    net_ptr, net_cost_s = units.net_ptr, units.net_cost_s
    old = slot[u]
    slot[u] = to
    if old >= 0:
        call_s[old] -= acc_s[u]
        held_bytes[old] -= size_bytes[u]
        nodes_in[old] -= node_ptr[u + 1] - node_ptr[u]
    if to >= 0:
        call_s[to] += acc_s[u]
        held_bytes[to] += size_bytes[u]
        nodes_in[to] += node_ptr[u + 1] - node_ptr[u]
    for p in range(unit_ptr[u], unit_ptr[u + 1]):
        net = unit_nets[p]
        pins = net_ptr[net + 1] - net_ptr[net]
        if old >= 0:
            if held[net, old] == 1:
                call_s[old] -= net_cost_s[net]
            elif held[net, old] == pins:
                call_s[old] += net_cost_s[net]
            held[net, old] -= 1
        if to >= 0:
            held[net, to] += 1
            if held[net, to] == 1:
                call_s[to] += net_cost_s[net]
            elif held[net, to] == pins:
                call_s[to] -= net_cost_s[net]
