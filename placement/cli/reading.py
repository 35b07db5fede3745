"""What the options of a command name, read into values: models, problems, placements, files."""

import math
import re
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin

import placement as pl
from placement.cli.printing import listener
from placement.core.decoding import decode
from placement.core.objective import CallRules
from placement.core.verb_options import Option, PlaceOptions, ProfileOptions, options_of
from placement.files.input import read_value

if TYPE_CHECKING:
    from placement.core.machine import Machine
    from placement.core.model import Model
    from placement.core.placement import Placement
    from placement.core.problem import Problem
    from placement.core.timeline import Timeline

T = TypeVar("T")
# This computer with so many lanes.
_LANES = re.compile(r"local:[1-9][0-9]{0,3}")


def hold(options: Namespace, problem: "Problem") -> "Problem":
    """The problem with everything that its placer may not move."""
    from placement.constraints.pins import held, whole

    pins = [split_pair(p, "--pin", "OP=DEVICE") for p in options.pin]
    if options.pins:
        pins += read_pins(options.pins).items()
    if options.mend:
        unknown = next((op for op, _ in pins if op not in problem.graph.index), None)
        if unknown is not None:
            raise ValueError(f"Op {unknown!r} is pinned but not in {problem.graph.name!r}.")
        pins = list(whole(problem, dict(pins)).items())
    keep, move = kept_placement(options), str(getattr(options, "move", None) or "")
    if (keep is None) != (not move):
        raise ValueError("--keep and --move belong together: a placement, and what may leave it.")
    if keep is not None:
        pins = list(held(problem, dict(pins), keep, read_names(move)).items())
    if options.sequences:
        problem = replace(problem, sequences=tuple(read_sequences(options.sequences).items()))
    return replace(problem, pins=tuple(pins)) if pins else problem


def kept_placement(options: Namespace) -> "Placement | None":
    """The placement of which only some ops may move, where there is one."""
    path = str(getattr(options, "keep", None) or "")
    return read_placement(path) if path else None


def placements_beside(options: Namespace, problem: "Problem") -> dict[str, "Placement"]:
    """The placements by name that are to be measured beside those that are found."""
    from placement.constraints.fusion import mended

    given = [split_pair(text, "--beside", "NAME=FILE") for text in getattr(options, "beside", ())]
    if given and not options.live:
        raise ValueError("--beside is for what is measured in the end; add --live.")
    read = {name: read_placement(path) for name, path in given}
    return {name: mended(problem, p) for name, p in read.items()} if options.mend else read


def read_pins(path: str) -> dict[str, str]:
    as_pins = partial(decode, kind=dict[str, str], remedy='use {"op": "device"}')
    return read_value(Path(path), "file of pins", as_pins)


def read_sequences(path: str) -> dict[str, tuple[str, ...]]:
    remedy = 'use {"device": ["op", "op"]}'
    as_sequences = partial(decode, kind=dict[str, tuple[str, ...]], remedy=remedy)
    return read_value(Path(path), "file of sequences", as_sequences)


def read_names(path: str) -> list[str]:
    as_names = partial(decode, kind=list[str], remedy="use a list of op names")
    return read_value(Path(path), "file of names", as_names)


def read_number(text: str, option: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{option} {text!r} is not a number.") from None
    if not math.isfinite(number):
        raise ValueError(f"{option} {text!r} is not a finite number.")
    return number


def read_timeline(path: str) -> "Timeline":
    """The measured timeline in what `run --json` or `run --jsonl` printed."""
    from placement.core.timeline import timeline_of_run

    return read_value(Path(path), "run", timeline_of_run, lines=True)


def read_model(options: Namespace) -> "Model":
    dims: dict[str, int | str] = {}
    for name, value in (split_pair(d, "--dim", "NAME=N") for d in options.dim):
        if not value.isdigit() or int(value) < 1:
            raise ValueError(f"--dim {name}={value} is not a whole number of 1 or more.")
        dims[name] = int(value)
    words = {name: getattr(options, name) for name in ("task", "dtype", "cache")}
    dims |= {name: value for name, value in words.items() if value is not None}
    return pl.load(options.input, dims)


def read_problem(
    options: Namespace, *, measure: bool = True, model: "Model | None" = None
) -> tuple["Model", "Problem"]:
    """The model and its problem: given costs, else a profile, else measured here, else analytic.

    Without `measure` only what was measured before counts. A `model` that was read already is not
    read again.
    """
    from placement.core.profile import profile_from_json

    model = model or read_model(options)
    asked: dict[str, Any] = {"objective": options.objective, "offload": options.offload}
    asked["rules"] = read_options(options, CallRules)
    if model.problem is not None:
        given = {"--lanes": options.lanes, "--profile": options.profile}
        given["--machine"] = options.machine != "local"
        for name in (name for name, value in given.items() if value):
            raise ValueError(f"{options.input!r} carries its own machine and costs; drop {name}.")
        return model, pl.make_problem(model, model.problem.machine, **asked)
    target = pl.machine_for(model, pl.machine(_machine_named(options), options.lanes))
    costs = None
    if options.profile:
        costs = read_value(Path(options.profile), "profile", profile_from_json)
    elif not options.analytic and pl.can_measure(model, target):
        if not measure:
            costs = pl.stored_profile(model, target)
            return model, pl.make_problem(model, target, costs, **asked)
        dedicate(target)
        measuring = read_options(options, ProfileOptions)
        costs = pl.profile(model, target, measuring, emit=listener(options))
    return model, pl.make_problem(model, target, costs, **asked)


def _machine_named(options: Namespace) -> str:
    """The machine that a command names, or else the number of lanes that its placement is for.

    Other names in a placement say where it was made, which need not be here.
    """
    path = str(getattr(options, "placement", None) or "")
    if path and options.machine == "local" and options.lanes is None:
        named = read_placement(path).machine
        if _LANES.fullmatch(named):
            return named
    return str(options.machine)


def dedicate(machine: "Machine") -> None:
    """Let the runtimes of a machine tune this process to it: a command serves one machine only."""
    from profiling import backends

    for runtime in dict.fromkeys(d.runtime for d in machine.devices):
        backends.usable(runtime).dedicate(machine)


def read_placement(path: str) -> "Placement":
    from placement.core.placement import placement_from_json

    return read_value(Path(path), "placement", placement_from_json)


def read_whole(options: Namespace, problem: "Problem") -> "Placement":
    """The placement of a file, mended where that is asked for."""
    from placement.constraints.fusion import mended

    placement = read_placement(options.placement)
    return mended(problem, placement) if options.mend else placement


def chosen(options: Namespace, problem: "Problem") -> "Placement":
    """The placement that `--placer` finds, or that of the file of `--placement`."""
    if not options.placer:
        if options.set or options.time_limit is not None:
            raise ValueError("--set and --time-limit are for --placer; leave them out.")
        return read_whole(options, problem)
    asked = read_options(options, PlaceOptions)
    return pl.place(problem, asked, emit=listener(options)).placement


def read_options(options: Namespace, kind: type[T]) -> T:
    """The options of a verb; those that the command does not have are as by default."""
    typed_in = {
        found.name: _value(found, getattr(options, found.attribute))
        for found in options_of(kind)
        if hasattr(options, found.attribute)
    }
    return kind(**typed_in)


def _value(found: Option, given: Any) -> Any:
    """What the parser leaves as text, and what is named several times, as a value."""
    if isinstance(found.default, Mapping):
        return dict(_entry(found, text) for text in given)
    if get_origin(found.type) is tuple:
        return tuple(part.strip() for part in given.split(",") if part.strip())
    return given


def _entry(found: Option, text: str) -> tuple[Any, Any]:
    """Name and value of what is written as NAME=VALUE; the name may be two, as of a link."""
    names, values = get_args(found.type)
    name, value = split_pair(text, found.flag, str(found.metavar), first=values is Any)
    ends = tuple(name.split(",", 1))
    if names is not str and not (len(ends) == 2 and all(ends)):
        raise ValueError(f"{found.flag} {text!r} names no link; write it as {found.metavar}.")
    return name if names is str else ends, _amount(found, values, value)


def _amount(found: Option, kind: Any, text: str) -> Any:
    if kind is Any:
        return text
    if NoneType in get_args(kind) and text.lower() == "none":
        return None
    number = read_number(text, found.flag)
    return int(number) if int in get_args(kind) else number


def read_inputs(path: str) -> dict[str, Any]:
    import numpy as np

    if not Path(path).is_file():
        raise ValueError(f"There is no file {path!r}; check the path.")
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except Exception:
        raise ValueError(f"The file {path!r} is not an .npz archive of plain arrays.") from None


def split_pair(text: str, option: str, form: str, *, first: bool = False) -> tuple[str, str]:
    """Split NAME=VALUE at the last "=", or at the first (values may hold the sign themselves)."""
    name, sign, value = text.partition("=") if first else text.rpartition("=")
    if not sign or not name:
        raise ValueError(f"{option} {text!r} is not of the form {form}.")
    return name, value
