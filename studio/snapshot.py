"""Everything a page draws from, derived from the project on disk through a cache."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from placement.api.place import Placed
from placement.constraints.fusion import mended
from placement.constraints.pins import whole
from placement.core import formatting
from placement.core.amounts import in_unit
from placement.core.machine import Machine
from placement.core.model import Model
from placement.core.objective import CallRules
from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.core.profile import Profile
from placement.core.violations import violations
from placement.drawing.names import names_of
from placement.placers import placer_class
from placement.placers.base import Placer
from placement.schedule.order import moved, spelled_order
from placement.schedule.reordering import Blocked, broken_sequences, run_before
from placement.schedule.simulated import Simulated
from profiling import backends
from studio.project import edits
from studio.project.facts import HAND, Facts, Named
from studio.project.file_cache import by_identity
from studio.project.files import NotWritten
from studio.project.placements import Shelf
from studio.project.store import Project, Settings

# For the first look at a model, the one that is liked best first; the last fits every problem.
FIRST_PLACERS = ("heft", "greedy_fill", "linear_dp", "single")


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


def common_bound_s(now: Studio) -> float:
    """The best bound of placements with the usual calls and without replicas, by whomever."""
    usual = [i for i in now.shelf.items if not is_unusual(now.shelf.read(i.name))]
    return max([now.cache.bound(now.problem), *(_proven(now, i.facts) for i in usual)])


def by_hand_s(now: Studio) -> dict[str, float]:
    """Seconds of the goal that placements made by hand are predicted to take, by name.

    Those that break a rule are left out.
    """
    names = [item.name for item in now.shelf.items if item.by_hand]
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


def _told(value: float) -> float | None:
    """A value that JSON has a number for."""
    return value if math.isfinite(value) else None


def all_on(now: Studio, device: str) -> Placement:
    """A placement with every op on one device, as far as pins and support allow.

    Nothing of the one on the screen is left in it: its order is open.
    """
    move = edits.assign(now.problem, now.state, now.model.graph.index, device)
    changed = edits.applied(now.state, edits.Edit("", move.changes))
    return Placement(now.placement.graph, now.placement.machine, changed.device_of)


def edit(
    now: Studio,
    ops: Sequence[str],
    device: str,
    *,
    before: Sequence[str] | None = None,
    within_rules: bool = False,
) -> str:
    """Move ops by hand; on a placer's result the edit goes to a copy. What to tell, if anything.

    A ValueError says why none of the ops may go there; those that may are moved without the others.
    With `before` they run there right before these ops, last of all where there are none. With
    `within_rules` nothing moves, either, where a placement that keeps all rules would break one, as
    by going beyond a memory.
    """
    step, stayed = move_step(now, ops, device, before)
    if not step.changes:
        if stayed:
            raise ValueError(stayed)
        return ""
    if within_rules:
        _require_rules(now, step)
    told = do(now, step)
    extra = len(step.changes) - len(set(ops) & {op for op, _, _ in step.changes})
    also = f"{formatting.counted(extra, 'more op')} moved along (fused into one kernel)."
    return " ".join(filter(None, (told, also if extra else "", stayed)))


def move_step(
    now: Studio, ops: Sequence[str], device: str, before: Sequence[str] | None = None
) -> tuple[edits.Edit, str]:
    """The step that moves ops as `edit` does, and what is to be said of what stays as it was."""
    move = edits.assign(now.problem, now.state, ops, device)
    stayed = edits.why_they_stay(move, device)
    step = edits.Edit(edits.label_of(move, device), move.changes)
    if before is None or not move.changes or not _has_order(now):
        return step, stayed
    try:
        placed, moving = after(now, step), [op for op, _, _ in move.changes]
        order = run_before(now.problem, placed, moving, before)
    except Blocked as error:
        return step, f"{stayed} {_why_blocked(now, error)} The order was left as it was.".strip()
    except ValueError:
        return step, stayed
    ordered = dataclasses.replace(step, order=(now.placement.order, order))
    pinned_on = _breaks_pinned_order(now, ordered)
    if pinned_on:
        said = f"The order on {pinned_on} is pinned, so it was left as it was."
        return step, f"{stayed} {said}".strip()
    return ordered, stayed


def _breaks_pinned_order(now: Studio, step: edits.Edit) -> str:
    """A device that keeps its pinned order so far, and not after a step; empty for none."""
    if not now.sequences:
        return ""
    broken = broken_sequences(now.pinned_problem, after(now, step))
    return next((d for d in broken if d not in broken_orders(now)), "")


def broken_orders(now: Studio) -> tuple[str, ...]:
    """Devices whose pinned order the placement on the screen does not keep."""
    if not now.sequences:
        return ()
    return broken_sequences(now.pinned_problem, now.placement)


def _has_order(now: Studio) -> bool:
    """Whether a prediction depends on what runs before what on a device."""
    is_call = now.problem.execution is Execution.CALL
    return not is_call and now.settings.objective is not Objective.THROUGHPUT


def _why_blocked(now: Studio, error: Blocked) -> str:
    called = names_of(now.model.graph).of
    later, earlier, lane = error.wait
    waits = f"by the order on {lane} it waits for it" if lane else "it needs what that computes"
    return f"{called(later)!r} cannot run before {called(earlier)!r}: {waits}."


def reorder(now: Studio, ops: Sequence[str], before: Sequence[str]) -> str:
    """Let ops run right before others of their device, or last there without any; what to tell.

    The order becomes part of the placement. A ValueError says in a sentence why it cannot be.
    """
    step = order_step(now, ops, before)
    if step is None:
        return ""
    _require_rules(now, step)
    return do(now, step)


def beside(now: Studio, ops: Sequence[str], held: Sequence[str]) -> tuple[str, ...]:
    """Those of some ops that are on a device of those that are held."""
    device_of = now.placement.device_of
    devices = {device_of[op] for op in held}
    return tuple(op for op in ops if device_of.get(op) in devices)


def order_step(now: Studio, ops: Sequence[str], before: Sequence[str]) -> edits.Edit | None:
    """The step that orders ops as `reorder` does; None where they run like this already."""
    called = names_of(now.model.graph).of
    if now.problem.execution is Execution.CALL:
        raise ValueError("In this file all that a device computes is one call, without an order.")
    if now.settings.objective is Objective.THROUGHPUT:
        raise ValueError(
            "For throughput the order on a device changes nothing, because samples overlap; to"
            " order ops, let the goal be latency."
        )
    pinned = next((op for op in ops if op in now.pins), None)
    if pinned is not None:
        raise ValueError(f"{called(pinned)!r} is pinned, so it stays in its order, too; unpin it.")
    try:
        order = run_before(now.problem, now.placement, ops, before)
    except Blocked as error:
        raise ValueError(_why_blocked(now, error)) from error
    if order == spelled_order(now.problem, now.placement):
        return None
    where = f"before {called(before[0])}" if before else "last on its device"
    named = called(ops[0]) if len(ops) == 1 else formatting.counted(len(ops), "op")
    step = edits.Edit(f"{named} {where}", order=(now.placement.order, order))
    pinned_on = _breaks_pinned_order(now, step)
    if pinned_on:
        raise ValueError(f"The order on {pinned_on} is pinned, so it stays; let it go first.")
    return step


def _require_rules(now: Studio, step: edits.Edit) -> None:
    """ValueError where a step makes a placement break a rule that breaks none so far."""
    broken = now.cache.violations(now.problem, after(now, step))
    if broken and not violations_of(now):
        raise ValueError(f"Nothing was changed. After it: {broken[0]}")


def after(now: Studio, step: edits.Edit) -> Placement:
    """The placement as a step would make it."""
    return _placed_in(now, edits.applied(now.state, _with_the_rest(now, step)))


def do(now: Studio, step: edits.Edit) -> str:
    """Make a step and remember it; what to tell where a placer's result was copied for it."""
    name, told = now.named.name, ""
    history = now.shelf.history(name)
    step = _with_the_rest(now, step)
    if (step.changes or step.order) and not now.named.by_hand:
        name = now.shelf.add("manual", now.placement, HAND, Facts(start=name))
        told = f"Your edit went to a new placement, {name!r}; {now.named.name!r} is as it was."
    _store(now, name, edits.applied(now.state, step), history.add(step))
    return told


def _with_the_rest(now: Studio, step: edits.Edit) -> edits.Edit:
    """The step with what its moves do to the placement's order and replicas."""
    if not step.changes:
        return step
    before = now.placement
    found = moved(now.problem, before, {op: device for op, _, device in step.changes})
    return dataclasses.replace(
        step,
        order=step.order or (None if found.order == before.order else (before.order, found.order)),
        replicas=None if found.replicas == before.replicas else (before.replicas, found.replicas),
    )


def undo(now: Studio) -> None:
    go_to(now, len(now.history.done) - 1)


def redo(now: Studio) -> None:
    go_to(now, len(now.history.done) + 1)


def go_to(now: Studio, num_done: int) -> None:
    """Undo or redo until so many steps are done; ValueError where a step is of something else."""
    ops, devices = now.model.graph.index, now.machine.index
    wrong = next(
        (s for s in edits.between(now.history, num_done) if not edits.fits(s, ops, devices)), None
    )
    if wrong is not None:
        raise ValueError(
            f"The step {wrong.label[:80]!r} names ops or devices that are not here, so it cannot be"
            " undone or redone; everything is as it was."
        )
    state, history = edits.travel(now.state, now.history, num_done)
    if history != now.history:
        _store(now, now.named.name, state, history)


def _store(now: Studio, name: str, state: edits.State, history: edits.History) -> None:
    """Keep what has changed of the pins and of a placement, and how it came about."""
    if state.pins != now.pins:
        now.shelf.keep_pins(state.pins)
    if state.sequences != now.sequences:
        now.shelf.keep_sequences(state.sequences)
    now.shelf.keep_history(name, history)
    placed = _placed_in(now, state)
    if placed != now.placement:
        now.shelf.replace(name, placed)
    now.project.change()


def _placed_in(now: Studio, state: edits.State) -> Placement:
    """The placement on the screen in another state."""
    return dataclasses.replace(
        now.placement, device_of=state.device_of, order=state.order, replicas=state.replicas
    )
