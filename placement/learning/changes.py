"""Changes of the best placement so far by what was learned: units drawn anew, or groups moved.

The share of units that change is itself drawn, evenly by its logarithm from one unit to the most
that is wanted, as in mutation with heavy tails (Doerr et al., "Fast genetic algorithms", 2017).
"""

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.learning.environment import Bools, Environment


def redrawn(
    environment: Environment,
    devices: Ints,
    likely: Floats,
    num: int,
    most: float,
    chance: np.random.Generator,
) -> Ints:
    """A placement (U,) as many times as wanted, some units on devices by their chances (N, U)."""
    upto = np.cumsum(np.where(environment.allowed, likely + 1e-9, 0.0), axis=1)
    drawn = np.empty((num, environment.num_units), dtype=np.int64)
    for row in drawn:
        at = chance.random(environment.num_units) * upto[:, -1]
        row[:] = (upto <= at[:, None]).sum(axis=1)
    drawn = np.minimum(drawn, environment.num_devices - 1)
    moves = some_units(environment.num_units, num, most, chance)
    found: Ints = np.where(moves & _may(environment, drawn), drawn, devices)
    return found


def regrouped(
    environment: Environment, devices: Ints, groups: Ints, num: int, chance: np.random.Generator
) -> Ints:
    """The same with a group (U,) on any device: all of it, or what of it is on one device."""
    unit = chance.integers(environment.num_units, size=num)
    moves = groups == groups[unit][:, None]
    on_one = (chance.random(num) < 0.5)[:, None]
    moves &= ~on_one | (devices == devices[unit][:, None])
    to = chance.integers(environment.num_devices, size=num)
    drawn = np.repeat(to[:, None], environment.num_units, axis=1)
    found: Ints = np.where(moves & _may(environment, drawn), drawn, devices)
    return found


def some_units(num_units: int, num: int, most: float, chance: np.random.Generator) -> Bools:
    """Which units change in each row (N, U): a drawn share of them, at least one."""
    least = 1.0 / max(1, num_units)
    logs = chance.uniform(np.log(least), np.log(max(most, 2.0 * least)), size=(num, 1))
    moves: Bools = chance.random((num, num_units)) < np.exp(logs)
    one = chance.integers(num_units, size=num)
    moves[np.arange(num), one] |= ~moves.any(axis=1)
    return moves


def _may(environment: Environment, devices: Ints) -> Bools:
    found: Bools = environment.allowed[np.arange(environment.num_units), devices]
    return found
