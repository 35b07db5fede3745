"""The command line that does what a button does, for the eye and for the worker process."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from placement.costs.what_if import Conditions
from studio.project.store import Project


def _input(project: Project) -> list[str]:
    settings = project.settings
    dims = [part for k, v in settings.dims.items() for part in ("--dim", f"{k}={v}")]
    return [project.source, *dims]


def _machine(project: Project) -> list[str]:
    settings = project.settings
    if settings.machine != "local":
        return ["--machine", project.machine_spec]
    return ["--lanes", str(settings.lanes)] if settings.lanes is not None else []


def inspect(project: Project) -> list[str]:
    return ["inspect", *_input(project), "--json"]


def machine(project: Project) -> list[str]:
    return ["machine", *_machine(project), "--json"]


def profile(project: Project, *, refresh: bool = False) -> list[str]:
    again = ["--refresh"] if refresh else []
    return ["profile", *_input(project), *_machine(project), *again]


def place(
    project: Project,
    placer: str,
    settings: Mapping[str, Any],
    *,
    time_limit_s: float | None = None,
    seed: int = 0,
    held: Sequence[str] = (),
    out: str | Path | None = None,
) -> list[str]:
    """Place with a placer; `settings` are the ones that differ from the placer's defaults.

    `held` are options that say what may not move.
    """
    argv = ["place", *_input(project), "--placer", placer, *_machine(project)]
    argv += ["--objective", project.settings.objective]
    argv += ["--time-limit", f"{time_limit_s:g}"] if time_limit_s else []
    argv += ["--seed", str(seed)]
    for name, value in settings.items():
        argv += ["--set", f"{name}={value}"]
    return [*argv, *held, *(["--out", str(out)] if out else [])]


def compare(
    project: Project,
    placers: Sequence[str],
    *,
    time_limit_s: float | None = None,
    held: Sequence[str] = (),
) -> list[str]:
    """Place with several placers, a row each; `held` are options that say what may not move."""
    argv = ["compare", *_input(project), "--placers", ",".join(placers), *_machine(project)]
    argv += ["--objective", project.settings.objective]
    argv += ["--time-limit", f"{time_limit_s:g}"] if time_limit_s else []
    return [*argv, *held]


def what_if(
    project: Project,
    conditions: Conditions,
    *,
    placement: Path | None = None,
    placer: str = "",
    time_limit_s: float | None = None,
    held: Sequence[str] = (),
) -> list[str]:
    """Predict a placement on a changed machine, or let a placer place for it."""
    given = ["--placer", placer] if placement is None else ["--placement", str(placement), "--mend"]
    argv = ["what-if", *_input(project), *given, *_machine(project)]
    argv += ["--objective", project.settings.objective]
    argv += [part for d, f in conditions.speed.items() for part in ("--speed", f"{d}={f:g}")]
    argv += ["--bandwidth", f"{conditions.bandwidth:g}"] if conditions.bandwidth != 1.0 else []
    argv += ["--latency", f"{conditions.latency:g}"] if conditions.latency != 1.0 else []
    for option, factors in (
        ("--link-bandwidth", conditions.link_bandwidth),
        ("--link-latency", conditions.link_latency),
    ):
        argv += [p for (a, b), f in factors.items() for p in (option, f"{a},{b}={f:g}")]
    for device, limit in conditions.memory_bytes.items():
        argv += ["--memory", f"{device}={'none' if limit is None else limit}"]
    argv += ["--time-limit", f"{time_limit_s:g}"] if time_limit_s else []
    return [*argv, *held]


def simulate(project: Project, placement: Path) -> list[str]:
    argv = ["simulate", *_input(project), "--placement", str(placement), "--mend"]
    argv += _machine(project)
    return [*argv, "--objective", project.settings.objective, "--json"]


def run(
    project: Project,
    placement: Path,
    steps: int,
    warmup: int,
    seed: int,
    depth: int | None = None,
) -> list[str]:
    """Run a placement; `depth` is the most samples in flight, for throughput only."""
    argv = ["run", *_input(project), "--placement", str(placement), "--mend", *_machine(project)]
    argv += ["--objective", project.settings.objective]
    argv += ["--steps", str(steps), "--warmup", str(warmup), "--seed", str(seed)]
    return argv + (["--depth", str(depth)] if depth is not None else [])


def train(project: Project, placement: Path, steps: int, seed: int, adjust: bool) -> list[str]:
    """Train for some steps, beginning with a placement."""
    argv = ["train", *_input(project), "--placement", str(placement), "--mend", *_machine(project)]
    argv += ["--steps", str(steps), "--seed", str(seed)]
    return [*argv, "--adjust" if adjust else "--no-adjust"]


def export(project: Project, placement: Path, format: str, out: str) -> list[str]:
    argv = ["export", *_input(project), "--placement", str(placement), "--mend"]
    argv += _machine(project)
    return [*argv, "--objective", project.settings.objective, "--format", format, "--out", out]


def text(argv: Sequence[str]) -> str:
    """The command as one types it in the project's root folder."""
    return "python -m placement " + " ".join(shlex.quote(part) for part in argv)
