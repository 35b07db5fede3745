"""Placements of one network as people and methods make them, each a kind of its own."""

import random
from collections.abc import Iterator, Sequence

import placement as pl
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.schedule.segments import make_schedule

NUM_RANDOM, NUM_BY_HAND = 8, 3
AUTO_S = 3.0
# How often a random placement changes the device from one unit to the next, in the logarithm.
RARELY, OFTEN = 0.01, 0.6
KINDS = ("alone", "whole CPU", "heft", "auto", "by hand", "random")


def schedules(problem: Problem, seed: int) -> Iterator[tuple[str, str, Schedule]]:
    """Kind, name and schedule of each placement of a problem on lanes."""
    for device in problem.machine.devices:
        placed = pl.place(problem, "single", settings={"device": device.name})
        yield "alone", device.name, placed.schedule
    heft = pl.place(problem, "heft")
    yield "heft", "heft", heft.schedule
    yield "auto", "auto", pl.place(problem, "auto", time_limit_s=AUTO_S, seed=seed).schedule
    chance = random.Random(seed)
    for number in range(NUM_BY_HAND):
        moved = _block_moved(problem, _units(problem, heft.schedule), chance)
        yield "by hand", f"by hand {number}", _schedule(problem, moved)
    for number in range(NUM_RANDOM):
        share = RARELY * (OFTEN / RARELY) ** chance.random()
        yield "random", f"random {number}", _schedule(problem, _drawn(problem, share, chance))


def _schedule(problem: Problem, units: Sequence[int]) -> Schedule:
    return make_schedule(problem, problem.placement_of(list(units)))


def _units(problem: Problem, schedule: Schedule) -> list[int]:
    """The device of each unit."""
    at = {kernel: segment.device for segment in schedule.segments for kernel in segment.kernels}
    index = {device.name: d for d, device in enumerate(problem.machine.devices)}
    unit_of = problem.unit_of_kernel.tolist()
    found = [0] * problem.num_units
    for op, unit in zip(problem.kernels.ops, unit_of, strict=True):
        found[unit] = index[at[op.name]]
    return found


def _block_moved(problem: Problem, units: Sequence[int], chance: random.Random) -> list[int]:
    """A run of neighbours, as one moves a block of the picture, on another device."""
    first = chance.randrange(len(units))
    num = chance.randint(1, max(1, len(units) // 6))
    device = chance.randrange(problem.num_devices)
    return [device if first <= u < first + num else d for u, d in enumerate(units)]


def _drawn(problem: Problem, share: float, chance: random.Random) -> list[int]:
    device, found = chance.randrange(problem.num_devices), []
    for _ in range(problem.num_units):
        if chance.random() < share:
            device = chance.randrange(problem.num_devices)
        found.append(device)
    return found
