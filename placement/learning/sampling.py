"""Drawing placements unit by unit, so that no device is given more than its memory.

A policy whose units choose on their own cannot keep to a limit that they share. Here they choose
one after another, the hardest to place first, each among the devices that still have room for it.
The masks under which they chose are given back: the chance of a placement is that under its masks
(`networks/masked.py`), and the chances of all placements that can be drawn add up to one.
"""

from typing import NamedTuple

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.learning.environment import Bools, Environment


class Sample(NamedTuple):
    """Placements (N, U), and the devices among which each unit chose, (N, U, D).

    Where units cannot be too large together one mask is that of all placements, (1, U, D).
    """

    devices: Ints
    masks: Bools


def draw(environment: Environment, logits: Floats, uniforms: Floats) -> Sample:
    """A placement for each row of uniform random numbers (N, U).

    The logits are those of all placements, (U, D), or of each, (N, U, D). Where no device that may
    hold a unit has room for it all of them count, and the placement is one that may not be.
    """
    from placement.learning.compiled.sampling import draw_each

    devices = np.empty(uniforms.shape, dtype=np.int64)
    masks = _masks(environment, len(uniforms))
    draw_each(
        np.ascontiguousarray(logits.reshape(-1, *environment.allowed.shape), dtype=np.float64),
        np.ascontiguousarray(uniforms, dtype=np.float64),
        environment.allowed,
        environment.size_bytes,
        environment.limit_bytes,
        in_turn(environment),
        devices,
        masks,
    )
    return Sample(devices, masks)


def masks_of(environment: Environment, devices: Ints) -> Bools:
    """The masks under which placements (N, U) would have been drawn.

    A placement within memory is within its masks: what has room for all has room for each in turn.
    """
    from placement.learning.compiled.sampling import mask_each

    masks = _masks(environment, len(devices))
    if environment.is_tight:
        mask_each(
            np.ascontiguousarray(devices, dtype=np.int64),
            environment.allowed,
            environment.size_bytes,
            environment.limit_bytes,
            in_turn(environment),
            masks,
        )
    return masks


def in_turn(environment: Environment) -> Ints:
    """The units (U,) in the order in which they choose: few devices first, then large ones."""
    num_devices = environment.allowed.sum(axis=1)
    found: Ints = np.lexsort((-environment.size_bytes, num_devices))
    return found


def _masks(environment: Environment, num: int) -> Bools:
    allowed = environment.allowed[None]
    return np.repeat(allowed, num, axis=0) if environment.is_tight else allowed.copy()
