"""Everything a page draws from, derived from the project on disk through the caches."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pages.ui import cached, choices, edits
from pages.ui.projects import Project, Settings
from pages.ui.shelf import HAND, Named, Shelf
from placement import pipeline as pl
from placement.core.machine import Machine
from placement.core.model import Model
from placement.core.placement import Placement
from placement.core.problem import Problem, in_unit
from placement.core.profile import Profile
from placement.core.violations import violations
from placement.mend import mended
from placement.pipeline import Simulated
from placement.placers import placer_class
from placement.placers._base import Placer

# For the first look at a model, the one that is liked best first; the last fits every problem.
FIRST_PLACERS = ("heft", "greedy_fill", "linear_dp", "single")


@dataclass(frozen=True)
class Studio:
    """A project at the moment of drawing; parts that are not asked for are not computed."""

    project: Project
    settings: Settings

    @cached_property
    def model(self) -> Model:
        dims = tuple(sorted((str(k), int(v)) for k, v in self.settings.dims.items()))
        return cached.model(self.project.source, dims)

    @cached_property
    def machine(self) -> Machine:
        """The machine to place on; a file that carries its own machine keeps it."""
        if self.model.problem is not None:
            return self.model.problem.machine
        return cached.machine(self.project.machine_spec, self.settings.lanes)

    @cached_property
    def profile(self) -> Profile | None:
        if self.model.problem is not None:
            return None
        return cached.profile(self.model, self.machine)

    @cached_property
    def problem(self) -> Problem:
        return cached.problem(self.model, self.machine, self.profile, self.settings.objective)

    @cached_property
    def can_measure(self) -> bool:
        """Whether the model can be executed and all devices are on this computer."""
        return cached.can_measure(self.model, self.machine)

    @cached_property
    def shelf(self) -> Shelf:
        return Shelf.of(self.project.folder, self.model.graph, self.machine)

    @cached_property
    def named(self) -> Named:
        """The placement on the screen; an empty shelf first gets one, so there is one to see."""
        if self.shelf.current is None:
            if not choices.may_write():
                raise ValueError(
                    "The window that owns this project is opening a model; reload soon."
                )
            first = first_placer(self.problem)
            placed = cached.placed(self.problem, first)
            self.shelf.add(first, placed.placement, first, facts_of(placed))
        found = self.shelf.current
        assert found is not None
        return found

    @cached_property
    def placement(self) -> Placement:
        """The current placement with every fusion group on one device.

        Groups are known only after measuring, so a placement from before may split one; it is
        mended, and the mended one stored, because the command line reads the file.
        """
        stored = self.shelf.read(self.named.name)
        whole = mended(self.problem, stored)
        if whole is not stored and choices.may_write():
            self.shelf.replace(self.named.name, whole)
        return whole

    @cached_property
    def simulated(self) -> Simulated:
        return cached.simulated(self.problem, self.placement)

    @property
    def costs(self) -> str:
        """Where the times come from, in plain words."""
        return {
            "measured": "measured on this machine",
            "analytic": "estimated by formula, not measured",
            "given": "given in the file",
        }[self.problem.costs.origin]

    @property
    def is_estimate(self) -> bool:
        return self.problem.costs.origin == "analytic"


def first_placer(problem: Problem) -> str:
    """The method that places a model when it is opened: quick, and made for such problems."""
    return next(name for name in FIRST_PLACERS if _is_quick(placer_class(name), problem))


def _is_quick(kind: type[Placer], problem: Problem) -> bool:
    fits = problem.objective in kind.objectives and problem.execution in kind.executions
    return fits and len(problem.kernels.ops) <= kind.quick_up_to


def studio() -> Studio:
    opened = choices.project()
    return Studio(opened, opened.settings)


def bound_of(now: Studio) -> float:
    """Seconds that no placement can beat, in the objective."""
    return cached.bound(now.problem)


def violations_of(now: Studio) -> tuple[str, ...]:
    """What is wrong with the current placement, one sentence each."""
    return violations(now.problem, now.simulated.schedule, now.placement.calls)


def facts_of(placed: pl.Placed) -> dict[str, Any]:
    """What is worth keeping of a placer's answer; values in their unit, as the command prints."""
    return {
        "value": in_unit(placed.value, placed.unit),
        "unit": placed.unit,
        "costs": placed.costs,
        "objective": placed.objective,
        "lower_bound": in_unit(placed.lower_bound, placed.unit),
        "proven_optimal": placed.proven_optimal,
        "seconds": placed.seconds,
        "account": placed.account,
    }


def with_devices(placement: Placement, device_of: Mapping[str, str]) -> Placement:
    """The placement with other devices; what a method said about order and calls is void then."""
    return Placement(placement.graph, placement.machine, device_of)


def edit(now: Studio, ops: tuple[str, ...], device: str) -> str:
    """Move ops by hand; on a placer's result the edit goes to a copy. What to tell, if anything."""
    change = edits.assign(now.problem, now.placement.device_of, ops, device)
    if change is None:
        return ""
    name, told = now.named.name, ""
    if not now.named.by_hand:
        name = now.shelf.add("manual", now.placement, HAND, {"from": name})
        told = f"Your edit went to a new placement, {name!r}; {now.named.name!r} is as it was."
    moved = with_devices(now.placement, edits.applied(now.placement.device_of, change))
    now.shelf.edit(name, moved, now.shelf.history(name).add(change))
    now.project.change()
    extra = len(change.changes) - len(set(ops) & {op for op, _, _ in change.changes})
    if extra:
        also = f"{extra} more op{'s' if extra > 1 else ''} moved along (fused into one kernel)."
        told = f"{told} {also}".strip()
    return told


def step_back(now: Studio) -> None:
    _travel(now, edits.undo)


def step_forward(now: Studio) -> None:
    _travel(now, edits.redo)


def _travel(now: Studio, move: Any) -> None:
    history = now.shelf.history(now.named.name)
    device_of, after = move(now.placement.device_of, history)
    if after != history:
        now.shelf.edit(now.named.name, with_devices(now.placement, device_of), after)
        now.project.change()
