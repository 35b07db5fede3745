"""The command line that does what a button does, for eye and worker; ops that it may not move."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from placement.constraints.fusion import mended
from placement.core.fingerprint import fingerprint_of
from placement.core.objective import Objective
from placement.core.verb_options import (
    CompareOptions,
    ExportOptions,
    PlaceOptions,
    ProblemOptions,
    ProfileOptions,
    ResumeOptions,
    RunOptions,
    StreamOptions,
    TrainOptions,
    command,
)
from placement.costs.what_if import Conditions
from placement.placers import placer_class
from studio.project.facts import FILE, HAND
from studio.project.files import write_json
from studio.project.store import Project
from studio.snapshot import Studio

BY_DEFAULT = ResumeOptions()


def _input(project: Project) -> list[str]:
    settings = project.settings
    dims = [
        part
        for k, v in settings.dims.items()
        for part in ((f"--{k}", v) if isinstance(v, str) else ("--dim", f"{k}={v}"))
    ]
    return [project.source, *dims]


def _machine(project: Project) -> list[str]:
    settings = project.settings
    if settings.machine != "local":
        return ["--machine", project.machine_spec]
    return ["--lanes", str(settings.lanes)] if settings.lanes is not None else []


def _problem_machine(now: Studio) -> list[str]:
    """The machine of a command about the model; a file that carries its own refuses another."""
    return [] if now.model.problem is not None else _machine(now.project)


def _goal(project: Project) -> list[str]:
    """What is wanted of a placement on the machine, and what it may do."""
    settings = project.settings
    argv = ["--objective", settings.objective, *command(ProblemOptions(offload=settings.offload))]
    # Kept for throughput, where another objective is asked for.
    counts = settings.objective is Objective.THROUGHPUT
    return [*argv, *command(settings.rules)] if counts else argv


def inspect(project: Project) -> list[str]:
    return ["inspect", *_input(project), "--json"]


def machine(project: Project) -> list[str]:
    return ["machine", *_machine(project), "--json"]


def profile(now: Studio, options: ProfileOptions) -> list[str]:
    return ["profile", *_input(now.project), *_problem_machine(now), *command(options)]


def place(
    now: Studio,
    options: PlaceOptions,
    *,
    held: Sequence[str] = (),
    beside: Sequence[str] = (),
    out: str | Path | None = None,
) -> list[str]:
    """Place with a placer; `held` are options that say what may not move, `beside` which others
    are measured in the end.
    """
    argv = ["place", *_input(now.project), "--placer", options.placer, *_problem_machine(now)]
    argv += [*_goal(now.project), *command(options, without="placer")]
    more = [*held, *beside]
    mend = ["--mend"] if "--mend" in more else []
    argv += [*(word for word in more if word != "--mend"), *mend]
    return [*argv, *(["--out", str(out)] if out else [])]


def compare(now: Studio, options: CompareOptions, *, held: Sequence[str] = ()) -> list[str]:
    """Place with several placers, a row each; `held` are options that say what may not move."""
    placers = ",".join(options.placers)
    argv = ["compare", *_input(now.project), "--placers", placers, *_problem_machine(now)]
    argv += [*_goal(now.project), *command(options, without="placers")]
    return [*argv, *held]


def what_if(
    now: Studio,
    conditions: Conditions,
    given: Path | PlaceOptions,
    *,
    held: Sequence[str] = (),
) -> list[str]:
    """Predict the placement of a file on a changed machine, or let a placer place for it."""
    if isinstance(given, PlaceOptions):
        what = command(given)
    else:
        what = ["--placement", str(given), "--mend"]
    argv = ["what-if", *_input(now.project), *what, *_problem_machine(now)]
    argv += [*_goal(now.project), *command(conditions)]
    return [*argv, *held]


def simulate(now: Studio, placement: Path) -> list[str]:
    argv = ["simulate", *_input(now.project), "--placement", str(placement), "--mend"]
    argv += _problem_machine(now)
    return [*argv, *_goal(now.project), "--json"]


def run(
    now: Studio,
    placement: Path,
    options: RunOptions | StreamOptions,
    losing: ResumeOptions = BY_DEFAULT,
) -> list[str]:
    """Run a placement, or send samples through it where the goal is throughput."""
    argv = [
        "run",
        *_input(now.project),
        "--placement",
        str(placement),
        "--mend",
        *_problem_machine(now),
    ]
    return [*argv, *_goal(now.project), *command(options), *command(losing)]


def train(now: Studio, placement: Path, options: TrainOptions) -> list[str]:
    """Train for some steps, beginning with a placement."""
    argv = [
        "train",
        *_input(now.project),
        "--placement",
        str(placement),
        "--mend",
        *_problem_machine(now),
    ]
    return [*argv, *command(ProblemOptions(offload=now.settings.offload)), *command(options)]


def export(now: Studio, placement: Path, options: ExportOptions) -> list[str]:
    argv = ["export", *_input(now.project), "--placement", str(placement), "--mend"]
    argv += _problem_machine(now)
    return [*argv, *_goal(now.project), *command(options)]


def text(argv: Sequence[str]) -> str:
    """The command as one types it in the project's root folder."""
    return "python -m placement " + " ".join(shlex.quote(part) for part in argv)


# More than these make a command that nobody reads, and at some number one that no shell takes.
MOST_ON_THE_LINE = 4
MOST_LETTERS = 200
# Of the placements of one's own so many are measured in one race, the newest.
MOST_BESIDE = 8


def fixed_ops(now: Studio, ops: Sequence[str] = (), *, lasting: bool = False) -> list[str]:
    """Options of `place` that hold the pinned ops and, where ops are given, all the others.

    What is too long for a command stays in a file. With `lasting`, pins are copied to one that no
    later edit touches, as a job needs that reads it a moment later.
    """
    # With an equals sign, because an op's name may begin with a dash.
    argv = [f"--pin={op}={device}" for op, device in now.pins.items()]
    if len(argv) > MOST_ON_THE_LINE or sum(map(len, argv)) > MOST_LETTERS:
        kept = now.shelf.pins_path
        argv = ["--pins", str(_kept(now, "pins", dict(now.pins)) if lasting else kept)]
    if now.sequences:
        kept = now.shelf.sequences_path
        held = _kept(now, "sequences", dict(now.sequences)) if lasting else kept
        argv += ["--sequences", str(held)]
    if ops:
        argv += ["--keep", str(_kept(now, "placement", now.placement.to_json()))]
        argv += ["--move", str(_kept(now, "ops", list(ops)))]
    # Measuring may show that more ops move together than was known when they were pinned.
    return [*argv, "--mend"] if argv else []


def own_placements(now: Studio, options: PlaceOptions, *, lasting: bool = False) -> list[str]:
    """Options of `place` that have people's own placements measured beside what a method finds.

    Those that break a rule cannot run. With `lasting` they are copied to files that no later edit
    touches. A method that learns from measurements races nobody.
    """
    if not options.live or placer_class(options.placer).learns_live:
        return []
    own = [named for named in now.shelf.items if named.made_by in (HAND, FILE)]
    found = []
    for named in own[-MOST_BESIDE:]:
        placement = mended(now.problem, now.shelf.read(named.name))
        if now.cache.violations(now.pinned_problem, placement):
            continue
        kept = now.shelf.path(named.name)
        path = _kept(now, "placement", placement.to_json()) if lasting else kept
        found += ["--beside", f"{named.name}={path}"]
    return [*found, "--mend"] if found else []


def _kept(now: Studio, what: str, content: object) -> Path:
    path = now.project.folder / "held" / f"{what}-{fingerprint_of(content)}.json"
    if not path.exists():
        write_json(path, content)
    return path
