"""The verbs with their results kept, by content: what two sessions look at is computed once.

Arguments that begin with "_" are left out of Streamlit's cache key; the fingerprints beside them
stand for them.
"""

import dataclasses
import gc
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import streamlit as st

import placement as pl
from placement.advice.best_moves import Hint
from placement.advice.speedups import Lever
from placement.advice.speedups import levers as levers_of
from placement.api.place import Placed
from placement.bounds.lower_bound import lower_bound
from placement.core.fingerprint import fingerprint_of
from placement.core.machine import Machine
from placement.core.model import Model
from placement.core.placement import Placement
from placement.core.problem import Objective, Problem
from placement.core.profile import Profile
from placement.core.violations import violations as violations_of
from placement.costs.what_if import Conditions
from placement.schedule.simulated import Simulated
from placement.simulator.memory_curves import MemoryCurve, memory_over_time
from placement.simulator.path_steps import PathSteps
from placement.simulator.path_steps import path_steps as path_steps_of
from profiling.devices.local import missing_devices
from profiling.measuring.store import ProfileStore
from studio import model_reader
from studio.project.file_cache import by_identity


def stamp(path: str | Path) -> str:
    """Changes when a file's content does; the same for everything that is no file."""
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return ""
    return f"{found.st_mtime_ns}-{found.st_size}"


def model(source: str, dims: tuple[tuple[str, int], ...]) -> Model:
    return _model(*model_key(source, dims))


def model_key(source: str, dims: tuple[tuple[str, int], ...]) -> model_reader.Key:
    return source, dims, stamp(source)


def is_open(key: model_reader.Key) -> bool:
    """Whether a model was opened before; it may have been dropped since to make room."""
    return key in _opened


_opened: set[model_reader.Key] = set()


@st.cache_resource(max_entries=16, show_spinner="Opening the model")
def _model(source: str, dims: tuple[tuple[str, int], ...], when: str) -> Model:
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
    if opened.executable is None or opened.executable.format == "onnx":
        return on
    return _machine_for(opened, on, opened.executable.format, on.fingerprint, on.name)


@st.cache_resource(max_entries=16, show_spinner="Looking for devices")
def _machine_for(_model: Model, _machine: Machine, format: str, on: str, name: str) -> Machine:
    return pl.machine_for(_model, _machine)


def forget_machines() -> None:
    """Look for devices anew at the next asking."""
    _machine.clear()
    _machine_for.clear()


def profile(opened: Model, on: Machine) -> Profile | None:
    return _profile(opened, on, opened.graph.fingerprint, on.fingerprint, _store_stamp())


@st.cache_resource(max_entries=16, show_spinner=False)
def _profile(_model: Model, _machine: Machine, graph: str, on: str, when: str) -> Profile | None:
    return pl.stored_profile(_model, _machine)


def can_measure(opened: Model, on: Machine) -> bool:
    return opened.executable is not None and _is_here(on, on.fingerprint)


@st.cache_resource(max_entries=16, ttl=60, show_spinner=False)
def _is_here(_machine: Machine, machine: str) -> bool:
    return not _machine.emulated and not missing_devices(_machine)


def other_profiles(opened: Model, on: Machine) -> tuple[Profile, ...]:
    return _others(opened.graph.fingerprint, on.fingerprint, _store_stamp())


@st.cache_resource(max_entries=16, show_spinner=False)
def _others(graph: str, on: str, when: str) -> tuple[Profile, ...]:
    return ProfileStore().others(graph, on)


def _store_stamp() -> str:
    path = ProfileStore().path
    return stamp(path) + stamp(f"{path}-wal")


def problem(opened: Model, on: Machine, measured: Profile | None, objective: Objective) -> Problem:
    return _problem(opened, on, measured, _problem_key(opened, on, measured, objective), objective)


def _problem_key(opened: Model, on: Machine, measured: Profile | None, objective: Objective) -> str:
    # By content: a profile that somebody edited and brought back keeps its date.
    costs = "estimated"
    if measured:
        costs = fingerprint_of([measured.measured_at, measured.compute_s, measured.call_s])
    return f"{opened.graph.fingerprint} {on.fingerprint} {on.name} {costs} {objective}"


@st.cache_resource(max_entries=16, show_spinner=False)
def _problem(
    _model: Model, _machine: Machine, _profile: Profile | None, key: str, objective: Objective
) -> Problem:
    return pl.make_problem(_model, _machine, profile=_profile, objective=objective)


# Tells problems apart in cache keys; `id` would come again once a problem is gone.
_numbers: WeakKeyDictionary[Problem, int] = WeakKeyDictionary()
_next_number = itertools.count()


def _number(posed: Problem) -> int:
    return _numbers.setdefault(posed, next(_next_number))


def pinned(posed: Problem, pins: Mapping[str, str]) -> Problem:
    """The problem with ops pinned; itself where none are."""
    fixed = tuple(pins.items())
    return _pinned(posed, _number(posed), hash(fixed), fixed) if fixed else posed


@st.cache_resource(max_entries=16, show_spinner=False)
def _pinned(
    _problem: Problem, problem: int, content: int, _pins: tuple[tuple[str, str], ...]
) -> Problem:
    return dataclasses.replace(_problem, pins=_pins)


# Most of it is compiling; what is compiled is kept on disk.
FIRST_LOOK = "Placing the model for a first look; once on a computer this takes up to a minute"


def placed(posed: Problem, placer: str) -> Placed:
    """What a placer decides without settings, for a first look at a model."""
    return _placed(posed, placer, _number(posed))


@st.cache_resource(max_entries=16, show_spinner=FIRST_LOOK)
def _placed(_problem: Problem, placer: str, problem: int) -> Placed:
    return pl.place(_problem, placer, predict=simulated)


def simulated(posed: Problem, placement: Placement) -> Simulated:
    """What a placement is predicted to do; an edit and its undo meet the same entry again."""
    return _simulated(posed, placement, _number(posed), _content(posed, placement))


@by_identity(64)
def key_of(posed: Problem, placement: Placement) -> tuple[int, int]:
    """Stands for a problem and all of a placement that a prediction depends on, in cache keys."""
    return _number(posed), _content(posed, placement)


def _content(posed: Problem, placement: Placement) -> int:
    """Stands for all of a placement that a prediction depends on."""
    devices = tuple(map(placement.device_of.__getitem__, posed.graph.index))
    counts = (tuple((of or {}).items()) for of in (placement.calls, placement.replicas))
    return hash((devices, placement.order, *counts))


@st.cache_resource(max_entries=256, show_spinner=False)
def _simulated(_problem: Problem, _placement: Placement, problem: int, content: int) -> Simulated:
    return pl.simulate(_problem, _placement)


def violations(posed: Problem, placement: Placement) -> tuple[str, ...]:
    """What a placement breaks, one sentence each."""
    return _violations(posed, placement, _number(posed), _content(posed, placement))


@st.cache_resource(max_entries=256, show_spinner=False)
def _violations(
    _problem: Problem, _placement: Placement, problem: int, content: int
) -> tuple[str, ...]:
    schedule = simulated(_problem, _placement).schedule
    return violations_of(_problem, schedule, _placement.calls)


def what_if(posed: Problem, conditions: Conditions) -> Problem:
    """The problem on a changed machine, the same object for the same conditions."""
    return _what_if(posed, conditions, _number(posed), fingerprint_of(conditions.to_json()))


@st.cache_resource(max_entries=64, show_spinner=False)
def _what_if(_problem: Problem, _conditions: Conditions, problem: int, conditions: str) -> Problem:
    return pl.what_if(_problem, _conditions)


def levers(posed: Problem, placement: Placement) -> tuple[Lever, ...]:
    """What would shorten the step, by content like `simulated`."""
    return _levers(posed, placement, _number(posed), _content(posed, placement))


@st.cache_resource(max_entries=64, show_spinner=False)
def _levers(
    _problem: Problem, _placement: Placement, problem: int, content: int
) -> tuple[Lever, ...]:
    predicted = simulated(_problem, _placement)
    return levers_of(
        _problem, predicted.schedule, predicted.critical_path, replicas=_placement.replicas
    )


def path_steps(posed: Problem, placement: Placement) -> PathSteps:
    """The critical path between ops, by content like `simulated`."""
    return _path_steps(posed, placement, _number(posed), _content(posed, placement))


@st.cache_resource(max_entries=64, show_spinner=False)
def _path_steps(_problem: Problem, _placement: Placement, problem: int, content: int) -> PathSteps:
    predicted = simulated(_problem, _placement)
    return path_steps_of(_problem, predicted.schedule, predicted.critical_path)


def memory(posed: Problem, placement: Placement) -> tuple[MemoryCurve, ...]:
    """Memory over time as predicted, by content like `simulated`."""
    return _memory(posed, placement, _number(posed), _content(posed, placement))


@st.cache_resource(max_entries=64, show_spinner=False)
def _memory(
    _problem: Problem, _placement: Placement, problem: int, content: int
) -> tuple[MemoryCurve, ...]:
    return memory_over_time(_problem, simulated(_problem, _placement).schedule)


def hints(posed: Problem, placement: Placement) -> tuple[Hint, ...]:
    """The moves that would save most, by content like `simulated`."""
    return _hints(posed, placement, _number(posed), _content(posed, placement))


@st.cache_resource(max_entries=64, show_spinner="Looking at all moves")
def _hints(
    _problem: Problem, _placement: Placement, problem: int, content: int
) -> tuple[Hint, ...]:
    return pl.hints(_problem, _placement)


def bound(posed: Problem) -> float:
    """Seconds that no placement with the usual calls and without replicas can beat."""
    return _bound(posed, _number(posed))


def bound_of(posed: Problem, placement: Placement) -> float:
    """Seconds that no placement with the same calls and replicas can beat."""
    return _bound_of(posed, placement, _number(posed), _content(posed, placement))


@st.cache_resource(max_entries=64, show_spinner=False)
def _bound_of(_problem: Problem, _placement: Placement, problem: int, content: int) -> float:
    return lower_bound(_problem, _placement)


@st.cache_resource(max_entries=16, show_spinner=False)
def _bound(_problem: Problem, problem: int) -> float:
    return lower_bound(_problem)


@st.cache_data(show_spinner=False)
def samples() -> list[dict[str, Any]]:
    return pl.samples()
