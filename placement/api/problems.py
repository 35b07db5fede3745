"""The verbs `profile` and `make_problem`: what a model costs on a machine, and what is to solve."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from placement.api.quiet import quiet
from placement.api.run import require_present
from placement.core.events import Emit, silent
from placement.core.objective import PLAIN, CallRules, Objective
from placement.core.verb_options import ProfileOptions, made
from placement.files.output import NotWritten
from placement.remote.calls import in_confinement

if TYPE_CHECKING:
    from placement.core.machine import Machine
    from placement.core.model import Model
    from placement.core.problem import Problem
    from placement.core.profile import Profile

_log = logging.getLogger(__name__)


def stored_profile(model: Model, machine: Machine) -> Profile | None:
    """The profile of this graph on this machine that was measured before, if any."""
    from profiling.measuring.store import ProfileStore

    return ProfileStore().get(model.graph.fingerprint, machine.fingerprint)


def as_measured(profile: Profile) -> Profile:
    """Drop what live runs have refined of a stored profile: as it was measured last."""
    from profiling.measuring.store import ProfileStore

    def plain(stored: Profile) -> Profile:
        return dataclasses.replace(stored, refined_by=None)

    found = ProfileStore().change(profile.graph, profile.machine.fingerprint, plain)
    return plain(profile) if found is None else found


def profile(
    model: Model,
    machine: Machine,
    options: ProfileOptions | None = None,
    *,
    emit: Emit = silent,
    **named: Any,
) -> Profile:
    """Measured costs of every kernel and link; from the store unless `refresh` asks anew.

    Measuring may take `timeout_s`, by default as long as it takes. The options may be named
    instead: `profile(model, machine, refresh=True)`.
    """
    options = made(ProfileOptions, options, named)
    found = None if options.refresh else stored_profile(model, machine)
    if found is not None:
        return as_measured(found) if options.as_measured else found
    from profiling.measuring.store import ProfileStore

    require_present(model, machine)
    measured = _measured(model, machine, options.timeout_s, emit=emit)
    try:
        ProfileStore().put(measured)
    except NotWritten as error:
        message = f"What was measured is used now, but is not kept: {error}"
        _log.warning(message)
        emit({"event": "not_kept", "message": message, "profile": measured.to_json()})
    return measured


@in_confinement("placement.core.profile:Profile", on_hosts=True)
def _measured(model: Model, machine: Machine, timeout_s: float | None, *, emit: Emit) -> Profile:
    from profiling.measuring import kernels
    from profiling.sandbox.confinement import deadline

    with quiet("profile of", model, machine, emit), deadline(timeout_s):
        return kernels.profile(model, machine, emit, timeout_s)


def make_problem(
    model: Model,
    machine: Machine,
    profile: Profile | None = None,
    *,
    objective: str = Objective.LATENCY,
    pins: Sequence[tuple[str, str]] = (),
    offload: bool = False,
    rules: CallRules = PLAIN,
) -> Problem:
    """The placement problem of a model on a machine.

    With a profile its kernels and measured costs, else each op its own kernel with analytic
    (roofline) costs. A file that carries its own machine and costs keeps them. With `offload`
    weights may stay in host memory and stream over the link in every step. `rules` say how the
    throughput of a workload file is charged; a ValueError where they are about something else.
    """
    from placement.costs.offload import with_offload

    problem = _posed(model, machine, profile, objective)
    problem = with_offload(problem) if offload else problem
    if rules != PLAIN:
        reason = rules_refusal(problem)
        if reason:
            raise ValueError(f"{reason}.")
        problem = dataclasses.replace(problem, rules=rules)
    return dataclasses.replace(problem, pins=tuple(pins)) if pins else problem


def rules_refusal(problem: Problem) -> str:
    """Why rules for loads say nothing about a problem, as a sentence without its end, or nothing.

    Those who ask for another objective may keep the rules for when they come back.
    """
    from placement.core.objective import Execution

    what = "Overlap, phases apart, synchronised replicas and clusters are settings of"
    if problem.execution is not Execution.CALL:
        return f"{what} workload files; leave them out"
    if problem.objective is not Objective.THROUGHPUT:
        return f"{what} throughput; leave them out or ask for --objective throughput"
    return ""


def _posed(model: Model, machine: Machine, profile: Profile | None, objective: str) -> Problem:
    """The problem without what its user adds."""
    from placement.core.decoding import listed, shown
    from placement.core.problem import Problem, own_kernels
    from placement.costs.refined import refined
    from placement.costs.roofline import roofline

    goal = Objective(objective)
    if model.problem is not None:
        return dataclasses.replace(model.problem, objective=goal, pins=())
    graph = model.graph
    if profile is None:
        costs = roofline(graph, machine)
        return Problem(graph, machine, costs, graph, own_kernels(graph), objective=goal)
    if profile.graph != graph.fingerprint:
        raise ValueError(
            f"The profile is of another graph ({shown(profile.graph)}, this one is"
            f" {graph.fingerprint}); measure this model."
        )
    wanted = [d.name for d in machine.devices]
    if [d.name for d in profile.machine.devices] != wanted:
        raise ValueError(
            f"The profile is for devices {listed(profile.machine.index)}, the machine has"
            f" {listed(wanted)}; measure on this machine."
        )
    named = {name for names in profile.sources for name in names}
    unknown = next((name for name in sorted(named) if name not in graph.index), None)
    if unknown is not None:
        raise ValueError(
            f"The profile's kernels do not fit graph {shown(graph.name)} (it has no op"
            f" {shown(unknown)}); measure this model again."
        )
    costs = profile.costs()
    if profile.refined_by is not None:
        costs = refined(costs, profile.kernels, profile.machine, profile.refined_by)
    same = profile.machine.fingerprint == machine.fingerprint
    return Problem(
        graph,
        dataclasses.replace(machine, links=profile.machine.links),
        costs if same else dataclasses.replace(costs, origin="given"),
        profile.kernels,
        tuple(tuple(graph.index[name] for name in names) for names in profile.sources),
        objective=goal,
    )
