"""Compiled drawing of placements whose units choose one after another among devices with room."""

import math

import numpy as np

from placement.compiled.jit import inlined, jit
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.learning.environment import Bools


@inlined
def narrow(allowed: Bools, size: float, room: Floats, mask: Bools) -> None:
    """The devices (D,) that may hold a unit and have room; all that may hold it where none has."""
    has_room = False
    for d in range(room.size):
        mask[d] = allowed[d] and size <= room[d]
        has_room = has_room or mask[d]
    if not has_room:
        mask[:] = allowed


@inlined
def chosen(logits: Floats, mask: Bools, uniform: float) -> int:
    """The device at which the sum of chances first passes a number from 0 to 1."""
    most = -np.inf
    for d in range(mask.size):
        if mask[d]:
            most = max(most, logits[d])
    total = 0.0
    for d in range(mask.size):
        if mask[d]:
            total += math.exp(logits[d] - most)
    left = uniform * total
    last = 0
    for d in range(mask.size):
        if mask[d]:
            last = d
            left -= math.exp(logits[d] - most)
            if left < 0.0:
                break
    return last


@jit
def draw_each(
    logits: Floats,
    uniforms: Floats,
    allowed: Bools,
    size_bytes: Floats,
    limit_bytes: Floats,
    order: Ints,
    devices: Ints,
    masks: Bools,
) -> None:
    """Placements (N, U) by logits (N or 1, U, D), and their masks where there is one for each."""
    is_tight = masks.shape[0] == devices.shape[0]
    for n in range(devices.shape[0]):
        room = limit_bytes.copy()
        own, mask = logits[n % logits.shape[0]], masks[n if is_tight else 0]
        for u in order:
            if is_tight:
                narrow(allowed[u], size_bytes[u], room, mask[u])
            d = chosen(own[u], mask[u], uniforms[n, u])
            devices[n, u] = d
            room[d] -= size_bytes[u]


@jit
def mask_each(
    devices: Ints,
    allowed: Bools,
    size_bytes: Floats,
    limit_bytes: Floats,
    order: Ints,
    masks: Bools,
) -> None:
    """The masks (N, U, D) of given placements (N, U)."""
    for n in range(devices.shape[0]):
        room = limit_bytes.copy()
        for u in order:
            narrow(allowed[u], size_bytes[u], room, masks[n, u])
            room[devices[n, u]] -= size_bytes[u]
