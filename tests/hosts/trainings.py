"""A small training, alone or over hosts, and what is the same about both."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import placement as pl
from placement.core.events import Emit, silent
from placement.core.machine import Machine
from placement.core.model import Model
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.verb_options import TrainOptions
from profiling.devices.lanes import Step
from profiling.training.loop import Trained, train
from profiling.training.sites import LiveSite
from tests.profiling.live import problem_of

SIZES = {"batch": 1, "length": 1, "depth": 2, "width": 8}
STEPS = 8


@dataclass(frozen=True)
class Reached:
    """What a training has come to."""

    run: Trained
    state: dict[str, Any]


@functools.cache
def opened() -> Model:
    return pl.load("nmt:training", SIZES)


@functools.cache
def alone() -> Reached:
    """The training on this computer."""
    model = opened()
    return trained(model, pl.machine_for(model, pl.machine("two-lanes")))


def nothing(number: int) -> None:
    """What is done before a step that nobody disturbs."""


def trained(
    model: Model,
    machine: Machine,
    before: Callable[[int], object] = nothing,
    *,
    resume: bool = False,
    seed: int = 0,
    on: int | None = None,
    emit: Emit = silent,
) -> Reached:
    """A training in a placement by chance, or `on` one device; `before` gets each number once."""

    class Site(LiveSite):
        number, begun = 0, -1

        def step(self) -> Step:
            if self.begun < self.number:
                self.begun = self.number
                before(self.number)
            made = super().step()
            self.number += 1
            return made

    problem = problem_of(model, machine)
    site = Site(problem, model, TrainOptions(resume=resume))
    place = (lambda left: drawn(left, seed)) if resume else None
    try:
        begun = drawn(problem, seed, on)
        run = train(problem, begun, site, steps=STEPS, place=place, emit=emit)
        return Reached(run, {name: np.asarray(value) for name, value in site.state().items()})
    finally:
        site.close()


def drawn(problem: Problem, seed: int, on: int | None = None) -> Placement:
    """Every unit on a device drawn by chance, or on this one."""
    drawn = np.random.default_rng(seed).integers(0, problem.num_devices, problem.num_units)
    return problem.placement_of(drawn if on is None else [on] * problem.num_units)


def is_same(found: Reached, expected: Reached) -> bool:
    """Whether losses and state are the same to the bit."""
    return (
        found.run.losses == expected.run.losses
        and found.state.keys() == expected.state.keys() != set()
        and all(np.array_equal(found.state[name], expected.state[name]) for name in found.state)
    )
