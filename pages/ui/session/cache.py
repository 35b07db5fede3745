"""The verbs with their results kept, by content: what two sessions look at is computed once.

Streamlit asks `KEYS` what stands for a value in its cache keys. Arguments that begin with "_" are
left out of them; what stands beside them says enough.
"""

import dataclasses
import gc
import inspect
import itertools
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import streamlit as st

import placement as pl
from placement.advice.best_moves import Hint
from placement.advice.speedups import Lever
from placement.advice.speedups import levers as levers_of
from placement.api.place import Placed
from placement.api.problems import rules_refusal
from placement.api.steps import Steps
from placement.bounds.lower_bound import lower_bound
from placement.core.fingerprint import fingerprint_of
from placement.core.machine import Machine
from placement.core.model import Model
from placement.core.objective import CallRules
from placement.core.placement import Placement
from placement.core.problem import Objective, Problem
from placement.core.profile import Profile, runs_of
from placement.core.violations import violations as violations_of
from placement.costs.offload import refusal, with_offload
from placement.costs.what_if import Conditions
from placement.placers import placer_class
from placement.schedule.simulated import Simulated
from placement.search.steps import Step, deciding
from placement.simulator.path_steps import PathSteps
from placement.simulator.path_steps import path_steps as path_steps_of
from placement.simulator.simulate import MemoryCurve, memory_over_time
from profiling import backends
from profiling.devices.local import missing_devices
from profiling.measuring.store import ProfileStore
from studio import following, model_reader
from studio.following import Following
from studio.project.file_cache import by_identity

# Steps of a method that a person can go through one by one.
MOST_STEPS = 300
# For so long a method is followed in the page's own process, where nobody can end it. Between two
# steps it cannot end either: of a problem with more kernels than these that may take as long.
AT_ONCE_S, MOST_AT_ONCE = 1.0, 6_000
P = ParamSpec("P")
R = TypeVar("R")
Fixed = tuple[tuple[tuple[str, str], ...], tuple[tuple[str, tuple[str, ...]], ...]]
# Tells problems apart in cache keys; `id` would come again once a problem is gone.
_numbers: WeakKeyDictionary[Problem, int] = WeakKeyDictionary()
_next_number = itertools.count()


def _number(posed: Problem) -> int:
    return _numbers.setdefault(posed, next(_next_number))


@by_identity(256)
def _content(placement: Placement) -> int:
    """Stands for all of a placement that a prediction depends on."""
    counts = (frozenset((of or {}).items()) for of in (placement.calls, placement.replicas))
    return hash((frozenset(placement.device_of.items()), placement.order, *counts))


def key_of(posed: Problem, placement: Placement) -> tuple[int, int]:
    """Stands for a problem and all of a placement that a prediction depends on, in cache keys."""
    return _number(posed), _content(placement)


KEYS: dict[str | type, Callable[..., object]] = {
    Model: lambda model: (model.graph.fingerprint, model.problem and model.problem.fingerprint),
    # With its rates, links and memory, which the fingerprint leaves out.
    Machine: lambda machine: machine.content,
    # By content: a profile that somebody edited and brought back keeps its date.
    Profile: lambda told: fingerprint_of(
        [
            *(told.measured_at, told.compute_s, told.call_s, told.contention),
            told.machine.content,
            told.refined_by and told.refined_by.strength,
            [(run.key, run.measured_at, run.step_s) for run in runs_of(told)],
        ]
    ),
    Problem: _number,
    Placement: _content,
    Conditions: lambda conditions: fingerprint_of(conditions.to_json()),
    CallRules: dataclasses.astuple,
}


def _kept(
    max_entries: int, spinner: bool | str = False
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Keep the last results of a function for all sessions."""
    keep = st.cache_resource(max_entries=max_entries, show_spinner=spinner, hash_funcs=KEYS)

    def kept(function: Callable[P, R]) -> Callable[P, R]:
        # Streamlit asks for it at every call, once for each argument.
        vars(function)["__signature__"] = inspect.signature(function)
        return keep(function)

    return kept


def stamp(path: str | Path) -> str:
    """Changes when a file's content does; the same for everything that is no file."""
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return ""
    return f"{found.st_mtime_ns}-{found.st_size}"


def model(source: str, dims: tuple[tuple[str, int | str], ...]) -> Model:
    return _model(*model_key(source, dims))


def model_key(source: str, dims: tuple[tuple[str, int | str], ...]) -> model_reader.Key:
    return source, dims, stamp(source)


def is_open(key: model_reader.Key) -> bool:
    """Whether a model was opened before; it may have been dropped since to make room."""
    return key in _opened


_opened: set[model_reader.Key] = set()


@_kept(16, "Opening the model")
def _model(source: str, dims: tuple[tuple[str, int | str], ...], when: str) -> Model:
    found = model_reader.take((source, dims, when))
    _opened.add((source, dims, when))
    # A model is a million objects that stay; collecting garbage would look at them every time.
    gc.freeze()
    return found


def machine(spec: str, lanes: int | None) -> Machine:
    return _machine(spec, lanes, stamp(spec))


@st.cache_resource(max_entries=16, show_spinner="Looking for devices")
def _machine(spec: str, lanes: int | None, when: str) -> Machine:
    return pl.machine(spec, lanes=lanes)


def machine_for(opened: Model, on: Machine) -> Machine:
    """The machine as the runtime of this model sees it."""
    return on if opened.executable is None else _machine_for(opened, on)


@st.cache_resource(max_entries=16, show_spinner="Looking for devices", hash_funcs=KEYS)
def _machine_for(opened: Model, on: Machine) -> Machine:
    assert opened.executable is not None
    is_fit = backends.fit(on.devices, opened.executable.format)
    return on if is_fit else pl.machine_for(opened, on)


def forget_machines() -> None:
    """Look for devices anew at the next asking."""
    _machine.clear()
    _machine_for.clear()


def profile(opened: Model, on: Machine) -> Profile | None:
    return _profile(opened, on, store_stamp())


@_kept(16)
def _profile(opened: Model, on: Machine, when: str) -> Profile | None:
    return pl.stored_profile(opened, on)


def can_measure(opened: Model, on: Machine) -> bool:
    return not opened.not_executable and _is_here(on)


@st.cache_resource(max_entries=16, ttl=60, show_spinner=False, hash_funcs=KEYS)
def _is_here(on: Machine) -> bool:
    if backends.elsewhere(on.devices):
        # Only a job may ask a cluster, and says so where it is gone.
        return True
    return not backends.emulated(on.devices) and not missing_devices(on)


def other_profiles(opened: Model, on: Machine) -> tuple[Profile, ...]:
    return _others(opened.graph.fingerprint, on.fingerprint, store_stamp())


@_kept(16)
def _others(graph: str, on: str, when: str) -> tuple[Profile, ...]:
    return ProfileStore().others(graph, on)


def store_stamp() -> str:
    """Changes when a profile is stored."""
    path = ProfileStore().path
    return stamp(path) + stamp(f"{path}-wal")


@_kept(16)
def problem(
    opened: Model,
    on: Machine,
    measured: Profile | None,
    objective: Objective,
    offload: bool,
    rules: CallRules,
) -> Problem:
    posed = pl.make_problem(opened, on, profile=measured, objective=objective)
    posed = with_offload(posed) if offload and not refusal(posed) else posed
    return posed if rules_refusal(posed) else dataclasses.replace(posed, rules=rules)


def pinned(
    posed: Problem, pins: Mapping[str, str], sequences: Mapping[str, tuple[str, ...]]
) -> Problem:
    """The problem with ops pinned, and their order on devices; itself where nothing is."""
    fixed = tuple(pins.items()), tuple(sequences.items())
    return _pinned(posed, hash(fixed), fixed) if any(fixed) else posed


@_kept(16)
def _pinned(posed: Problem, content: int, _fixed: Fixed) -> Problem:
    pins, sequences = _fixed
    return dataclasses.replace(posed, pins=pins, sequences=sequences)


# Most of it is compiling; what is compiled is kept on disk.
FIRST_LOOK = "Placing the model for a first look; once on a computer this takes up to a minute"


@_kept(16, FIRST_LOOK)
def _first_look(posed: Problem, placer: str) -> Placed | str:
    """What a placer decides, or why it does not: to look for ways out again takes as long."""
    try:
        return pl.place(posed, placer, predict=simulated)
    except ValueError as error:
        return str(error)


def placed(posed: Problem, placer: str) -> Placed:
    """What a placer decides without settings, for a first look at a model; a ValueError says why
    it does not."""
    found = _first_look(posed, placer)
    if isinstance(found, str):
        raise ValueError(found)
    return found


def steps(posed: Problem, placer: str) -> Steps | None:
    """What a placer works out on its way; None while one that takes long is at it."""
    found = following.find(posed, placer)
    if found is not None:
        return found.result() if found.done.is_set() else None
    return None if _takes_long(posed, placer) else _begun(posed, placer)


def steps_so_far(posed: Problem, placer: str) -> Steps | None:
    """The same where somebody has followed the method already; it is not begun for this."""
    ahead = following.find(posed, placer)
    if ahead is not None:
        return steps(posed, placer) if ahead.is_there else None
    return steps(posed, placer) if (posed.fingerprint, placer) in _followed else None


def step_of(posed: Problem, placer: str, placement: Placement, op: str) -> Step | None:
    """The step in which a method has put an op where a placement of its has it.

    None where none tells of it, where the method would decide otherwise by itself, and where it
    takes long to tell, until somebody has followed it.
    """
    known = steps_so_far(posed, placer)
    if known is not None and known.placement == placement:
        return deciding(posed, known.steps, op)
    if not tells_at_once(posed, placer) or placed(posed, placer).placement != placement:
        return None
    return _step_of(posed, placer, op)


def tells_at_once(posed: Problem, placer: str) -> bool:
    """Whether a method tells of an op without having been followed."""
    return len(posed.kernels.ops) <= placer_class(placer).tells_up_to


@_kept(64)
def _step_of(posed: Problem, placer: str, op: str) -> Step | None:
    return placer_class(placer)().step_of(posed, op)


_followed: set[tuple[str, str]] = set()
# What was begun in the page's own process and took too long for it.
_slow: set[tuple[str, str]] = set()


class TooSlow(Exception):
    """Following a method takes longer than who looks at a page should wait without a way out."""


def _begun(posed: Problem, placer: str) -> Steps | None:
    """The steps of a method that is through them at once; None where it was begun and is not."""
    try:
        found = _steps(posed, placer)
    except TooSlow:
        _slow.add((posed.fingerprint, placer))
        return None
    _followed.add((posed.fingerprint, placer))
    return found


@_kept(8, "Following the method")
def _steps(posed: Problem, placer: str) -> Steps:
    end_s = math.inf

    def hear(event: Mapping[str, object]) -> None:
        nonlocal end_s
        # Code that is read from the disk once in a process does not count.
        if event["event"] == "progress" and event["what"] == "steps":
            now_s = time.monotonic()
            end_s = min(end_s, now_s + AT_ONCE_S)
            if now_s > end_s:
                raise TooSlow

    return pl.steps(posed, placer, most=MOST_STEPS, emit=hear)


def searches(placer: str) -> bool:
    """Whether a method searches on all cores."""
    return placer_class(placer).all_cores


def _takes_long(posed: Problem, placer: str) -> bool:
    """Whether a method has to be followed in a process of its own, as far as that is known."""
    is_large = len(posed.kernels.ops) > MOST_AT_ONCE
    is_slow = is_large or (posed.fingerprint, placer) in _slow
    return is_slow or searches(placer) or not following.is_compiled(posed, placer)


def follow(posed: Problem, placer: str) -> Following | None:
    """Begin to follow a method that takes long, or look how far it is; learners take few batches.

    None for one that shows its steps at once.
    """
    is_new = following.find(posed, placer) is None and not _takes_long(posed, placer)
    if is_new and _begun(posed, placer) is not None:
        return None
    settings = dict(placer_class(placer).followed_with)
    return following.start(posed, placer, MOST_STEPS, settings)


@_kept(256)
def simulated(posed: Problem, placement: Placement) -> Simulated:
    """What a placement is predicted to do; an edit and its undo meet the same entry again.

    Without the problem itself, of which far fewer are kept than of these.
    """
    return dataclasses.replace(pl.simulate(posed, placement), problem=None, placement=None)


@_kept(256)
def violations(posed: Problem, placement: Placement) -> tuple[str, ...]:
    """What a placement breaks, one sentence each."""
    return violations_of(posed, simulated(posed, placement).schedule, placement.calls)


@_kept(64)
def what_if(posed: Problem, conditions: Conditions) -> Problem:
    """The problem on a changed machine, the same object for the same conditions."""
    return pl.what_if(posed, conditions)


@_kept(64)
def levers(posed: Problem, placement: Placement) -> tuple[Lever, ...]:
    """What would shorten the step, by content like `simulated`."""
    predicted = simulated(posed, placement)
    path = predicted.critical_path
    return levers_of(posed, predicted.schedule, path, replicas=placement.replicas)


@_kept(64)
def path_steps(posed: Problem, placement: Placement) -> PathSteps:
    """The critical path between ops, by content like `simulated`."""
    predicted = simulated(posed, placement)
    return path_steps_of(posed, predicted.schedule, predicted.critical_path)


@_kept(64)
def memory(posed: Problem, placement: Placement) -> tuple[MemoryCurve, ...]:
    """Memory over time as predicted, by content like `simulated`."""
    return memory_over_time(posed, simulated(posed, placement).schedule)


@_kept(64, "Looking at all moves")
def hints(posed: Problem, placement: Placement) -> tuple[Hint, ...]:
    """The moves that would save most, by content like `simulated`."""
    return pl.hints(posed, placement)


@_kept(64)
def bound_of(posed: Problem, placement: Placement) -> float:
    """Seconds that no placement with the same calls and replicas can beat."""
    return lower_bound(posed, placement)


@_kept(16)
def bound(posed: Problem) -> float:
    """Seconds that no placement with the usual calls and without replicas can beat."""
    return lower_bound(posed)
