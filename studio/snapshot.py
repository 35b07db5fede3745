"""Everything a page draws from, derived from the project on disk through a cache."""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from placement.api.place import Placed
from placement.api.steps import Steps
from placement.constraints.fusion import mended
from placement.constraints.pins import whole
from placement.core.amounts import in_unit
from placement.core.machine import Machine
from placement.core.model import Model
from placement.core.objective import CallRules
from placement.core.placement import Placement
from placement.core.problem import Objective, Problem
from placement.core.profile import Profile
from placement.core.violations import violations
from placement.placers import placer_class
from placement.placers.base import Placer
from placement.schedule.simulated import Simulated
from profiling import backends
from studio.project import edits
from studio.project.facts import Facts, Named
from studio.project.file_cache import by_identity
from studio.project.files import NotWritten
from studio.project.placements import Shelf
from studio.project.store import Project, Settings

# For the first look at a model, the one that is liked best first; the last fits every problem.
FIRST_PLACERS = ("heft", "greedy_fill", "linear_dp", "single")
FOLLOWED = "followed step by step"


class Cache(Protocol):
    """The verbs with their results kept: the same question gets the same object back."""

    def model(self, source: str, dims: tuple[tuple[str, int | str], ...]) -> Model: ...
    def machine(self, spec: str, lanes: int | None) -> Machine: ...
    def machine_for(self, opened: Model, on: Machine) -> Machine: ...
    def profile(self, opened: Model, on: Machine) -> Profile | None: ...
    def can_measure(self, opened: Model, on: Machine) -> bool: ...
    def problem(
        self,
        opened: Model,
        on: Machine,
        measured: Profile | None,
        objective: Objective,
        offload: bool,
        rules: CallRules,
    ) -> Problem: ...
    def pinned(
        self,
        posed: Problem,
        pins: Mapping[str, str],
        sequences: Mapping[str, tuple[str, ...]],
    ) -> Problem: ...
    def placed(self, posed: Problem, placer: str) -> Placed: ...
    def simulated(self, posed: Problem, placement: Placement) -> Simulated: ...
    def violations(self, posed: Problem, placement: Placement) -> tuple[str, ...]: ...
    def bound(self, posed: Problem) -> float: ...
    def bound_of(self, posed: Problem, placement: Placement) -> float: ...


class Session(Protocol):
    """Whoever looks at a project: whether it may write there, and how its changes are kept.

    `unwritable` says why nobody can write, empty where somebody can. What is written inside
    `change` is kept all together or not at all; `lost` says then what is not saved. `say` leaves a
    message ("info", "success", "warning", "error") for the next drawing, `show_run` picks a run.
    """

    def may_write(self) -> bool: ...
    def unwritable(self) -> str: ...
    def change(self, lost: str) -> AbstractContextManager[None]: ...
    def say(self, kind: str, text: str) -> None: ...
    def show_run(self, job_id: str) -> None: ...


@dataclass(frozen=True)
class Studio:
    """A project at the moment of drawing; parts that are not asked for are not computed."""

    project: Project
    settings: Settings
    cache: Cache
    session: Session

    @cached_property
    def model(self) -> Model:
        dims = tuple(sorted(self.settings.dims.items()))
        return self.cache.model(self.project.source, dims)

    @cached_property
    def machine(self) -> Machine:
        """The machine to place on, with a device for weights that stream from each memory."""
        return self.problem.machine if self.settings.offload else self.stated_machine

    @cached_property
    def stated_machine(self) -> Machine:
        """The machine that was chosen; a file that carries its own machine keeps it."""
        if self.model.problem is not None:
            return self.model.problem.machine
        lanes = self.settings.lanes if self.settings.machine == "local" else None
        named = self.cache.machine(self.project.machine_spec, lanes)
        return self.cache.machine_for(self.model, named)

    @cached_property
    def emulated(self) -> bool:
        """Whether runs on this machine follow a virtual clock."""
        return backends.emulated(self.machine.devices)

    @cached_property
    def profile(self) -> Profile | None:
        if self.model.problem is not None:
            return None
        return self.cache.profile(self.model, self.stated_machine)

    @cached_property
    def problem(self) -> Problem:
        return self.problem_for(self.settings.objective)

    def problem_for(self, objective: Objective) -> Problem:
        """The problem with another goal."""
        settings = self.settings
        return self.cache.problem(
            self.model,
            self.stated_machine,
            self.profile,
            objective,
            settings.offload,
            settings.rules,
        )

    @cached_property
    def can_measure(self) -> bool:
        """Whether the model can be executed and all devices are on this computer."""
        return self.cache.can_measure(self.model, self.machine)

    @cached_property
    def shelf(self) -> Shelf:
        return Shelf.of(self.project.folder, self.model.graph, self.machine)

    @cached_property
    def named(self) -> Named:
        """The placement on the screen; an empty shelf first gets one, so there is one to see."""
        if self.shelf.is_empty:
            self._fill_shelf()
        found = self.shelf.current
        assert found is not None
        return found

    @cached_property
    def unplaced(self) -> str:
        """Why there is no placement to look at, in a sentence; empty where there is one."""
        try:
            _ = self.named
        except ValueError as error:
            return str(error)
        return ""

    def _fill_shelf(self) -> None:
        """Place the model for a first look, only to be looked at where that cannot be written."""
        if not self.session.may_write() and not self.session.unwritable():
            raise ValueError("The window that owns this project is opening a model; reload soon.")
        first = first_placer(self.problem)
        placed = self.cache.placed(self.problem, first)
        given = placed.placement, facts_of(placed)
        if self.session.may_write():
            with self.session.change("The first placement is not saved."):
                self.shelf.add(first, given[0], first, given[1])
        if self.shelf.is_empty:
            self.shelf.lend(first, *given)

    @cached_property
    def placement(self) -> Placement:
        """The current placement with every fusion group on one device.

        Groups are known only after measuring, so a placement from before may split one; it is
        mended, and the mended one stored, because the command line reads the file.
        """
        stored = self.shelf.read(self.named.name)
        whole = _mended(self.problem, stored)
        if whole is not stored and self.session.may_write():
            # Whatever reads the file mends it as well.
            with suppress(NotWritten):
                self.shelf.replace(self.named.name, whole)
        return whole

    @cached_property
    def pins(self) -> Mapping[str, str]:
        """Ops that stay where they are, with those that move together with them, by device."""
        return whole(self.problem, self.shelf.pins)

    @cached_property
    def sequences(self) -> Mapping[str, tuple[str, ...]]:
        """By device the order of ops that is pinned there."""
        ops, devices = self.model.graph.index, self.machine.index
        kept = self.shelf.sequences.items()
        return {d: o for d, o in kept if d in devices and all(op in ops for op in o)}

    @cached_property
    def state(self) -> edits.State:
        """What edits by hand change."""
        placed = self.placement
        held = self.pins, placed.order, placed.replicas, self.sequences
        return edits.State(placed.device_of, *held)

    @cached_property
    def history(self) -> edits.History:
        return self.shelf.history(self.named.name)

    @cached_property
    def pinned_problem(self) -> Problem:
        """The problem with its pins, for whoever decides; a prediction does not depend on them."""
        return self.cache.pinned(self.problem, self.pins, self.sequences)

    @cached_property
    def simulated(self) -> Simulated:
        return self.cache.simulated(self.problem, self.placement)

    @property
    def costs(self) -> str:
        """Where the times come from, in plain words."""
        return self.problem.costs.origin_in_words

    @property
    def is_estimate(self) -> bool:
        return self.problem.costs.origin == "analytic"


_mended = by_identity(16)(mended)


def first_placer(problem: Problem) -> str:
    """The method that places a model when it is opened: quick, and made for such problems."""
    return next(name for name in FIRST_PLACERS if _is_quick(placer_class(name), problem))


def _is_quick(kind: type[Placer], problem: Problem) -> bool:
    fits = problem.objective in kind.objectives and problem.execution in kind.executions
    return fits and kind.is_quick(problem)


def bound_of(now: Studio) -> float:
    """Seconds that nothing like the placement on the screen can beat; see `bounds_of`."""
    return bounds_of(now, (now.named,))[now.named.name]


def bounds_of(now: Studio, items: Sequence[Named]) -> dict[str, float]:
    """Seconds that nothing like these placements can beat, by name: the best that anybody proved.

    Several calls or replicas have bounds of their own; what is proven of all other placements does
    not hold for them.
    """
    usual_s, found = common_bound_s(now), {}
    for item in items:
        placement, bound_s = now.shelf.read(item.name), usual_s
        if is_unusual(placement):
            bound_s = max(now.cache.bound_of(now.problem, placement), _proven(now, item.facts))
        found[item.name] = bound_s
    return found


def bound_for(now: Studio, placement: Placement) -> float:
    """Seconds that nothing like a placement can beat, which need not be on the shelf."""
    if is_unusual(placement):
        return now.cache.bound_of(now.problem, placement)
    return common_bound_s(now)


def common_bound_s(now: Studio) -> float:
    """The best bound of placements with the usual calls and without replicas, by whomever."""
    usual = [i for i in now.shelf.items if not is_unusual(now.shelf.read(i.name))]
    return max([now.cache.bound(now.problem), *(_proven(now, i.facts) for i in usual)])


def predicted_s(now: Studio, names: Iterable[str]) -> dict[str, float]:
    """Seconds of the goal that placements are predicted to take, by name, whoever made them.

    Those that break a rule are left out.
    """
    found = {name: mended(now.problem, now.shelf.read(name)) for name in names}
    return {
        name: now.cache.simulated(now.problem, placement).value
        for name, placement in found.items()
        if not now.cache.violations(now.problem, placement)
    }


def is_unusual(placement: Placement) -> bool:
    """Whether it does what common bounds do not allow for: several calls, or replicas."""
    return max((placement.calls or {}).values(), default=1) > 1 or bool(placement.replicas)


def _proven(now: Studio, facts: Facts) -> float:
    """The bound, in seconds, that a method told about this very problem; 0 where it did not."""
    if facts.problem != now.problem.fingerprint:
        return 0.0
    return (facts.lower_bound or 0.0) / in_unit(1.0, facts.unit or "s")


def violations_of(now: Studio) -> tuple[str, ...]:
    """What is wrong with the current placement, one sentence each."""
    return violations(now.problem, now.simulated.schedule, now.placement.calls)


def facts_of(placed: Placed) -> Facts:
    """What is worth keeping of a placer's answer; values in their unit, as the command prints."""
    return Facts(
        value=_told(in_unit(placed.value, placed.unit)),
        unit=placed.unit,
        costs=placed.costs,
        objective=placed.objective,
        lower_bound=_told(in_unit(placed.lower_bound, placed.unit)),
        proven_optimal=placed.proven_optimal,
        seconds=placed.seconds,
        account=placed.account,
        problem=placed.problem,
    )


def facts_of_steps(now: Studio, found: Steps) -> Facts:
    """The same of an answer that was followed step by step; the seconds are those of following."""
    posed, placement = now.pinned_problem, found.placement
    value_s = now.cache.simulated(posed, placement).value
    unusual = is_unusual(placement)
    known_s = now.cache.bound_of(posed, placement) if unusual else now.cache.bound(posed)
    bound_s = max(known_s, found.bound_s)
    is_least = value_s <= bound_s * (1 + 1e-9) < math.inf
    return Facts(
        value=_told(in_unit(value_s, posed.unit)),
        unit=posed.unit,
        costs=posed.costs.origin,
        objective=posed.objective,
        lower_bound=_told(in_unit(bound_s, posed.unit)),
        proven_optimal=is_least and not now.cache.violations(posed, placement),
        seconds=found.seconds,
        account="; ".join(filter(None, (found.account, FOLLOWED))),
        problem=posed.fingerprint,
    )


def _told(value: float) -> float | None:
    """A value that JSON has a number for."""
    return value if math.isfinite(value) else None
