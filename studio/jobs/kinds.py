"""The kinds of job that pages start, and what becomes of their results."""

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from placement.api.results.machines import ProfileResult
from placement.api.results.placing import CompareRow, PlaceResult
from placement.api.results.running import RunResult, StreamResult
from placement.api.results.training import TrainResult
from placement.api.wording import is_in_doubt
from placement.core import formatting
from placement.core.placement import Placement, placement_to_text
from placement.core.verb_options import (
    CompareOptions,
    PlaceOptions,
    ProfileOptions,
    ResumeOptions,
    RunOptions,
    StreamOptions,
    TrainOptions,
)
from placement.costs.what_if import Conditions
from placement.files import output
from placement.schedule.symmetry import aligned
from profiling.devices.memory import check_devices
from profiling.measuring.store import ProfileStore
from studio import snapshot
from studio.jobs import command_line, jobs, outcomes, records
from studio.jobs.event_log import Damaged, NotKept
from studio.jobs.records import About
from studio.project import placements
from studio.project.facts import Named
from studio.project.files import all_or_nothing, write_text
from studio.project.placements import Shelf
from studio.snapshot import Studio

WORDS = {
    "place": "Placing",
    "profile": "Measuring",
    "run": "Running",
    "train": "Training",
    "compare": "Comparing methods",
    "what-if": "Placing for the what-if machine",
}
# Where it is said why a job came to nothing.
REASONS = {
    "place": "on the Studio page",
    "profile": "on the page Devices",
    "run": "in the tab Run",
    "train": "in the tab Run",
    "compare": "in the tab Board",
    "what-if": "in the tab What if",
}
NOT_STARTED = "The job was not started."
MEASURING, SEARCHING = ("run", "train"), ("place", "compare", "what-if")

_told: set[str] = set()


@output.losing(NOT_STARTED)
def start_profile(now: Studio, options: ProfileOptions) -> str:
    argv = command_line.profile(now, options)
    return _start(now, argv, About(model=now.model.graph.name, machine=now.machine.name))


@output.losing(NOT_STARTED)
def start_place(now: Studio, options: PlaceOptions, ops: Sequence[str] = ()) -> str:
    """Let a placer decide; where ops are named, all others stay where the placement has them."""
    held = command_line.fixed_ops(now, ops, lasting=True)
    beside = [] if ops else command_line.own_placements(now, options, lasting=True)
    argv = command_line.place(now, options, held=held, beside=beside)
    about = About(
        placer=options.placer,
        num_selected=len(ops),
        num_pinned=len(now.pins),
        start=now.named.name if ops else "",
        shelf=now.shelf.folder.name,
        objective=now.settings.objective,
        time_limit_s=options.time_limit_s,
        screen=now.shelf.screen,
    )
    return _start(now, argv, about)


@output.losing(NOT_STARTED)
def start_run(
    now: Studio,
    options: RunOptions | StreamOptions,
    losing: ResumeOptions = command_line.BY_DEFAULT,
) -> str:
    """Run the current placement, as it is now; what no device has room for is refused at once."""
    peak_bytes = {} if now.emulated else now.simulated.peak_bytes
    try:
        check_devices(peak_bytes, now.machine)
    except ValueError as error:
        now.session.say("warning", f"Not run: {error}")
        return ""
    path, about = _as_it_is(now)
    about = replace(
        about,
        steps=options.samples if isinstance(options, StreamOptions) else options.steps,
        warmup=options.warmup,
        objective=now.settings.objective,
        predicted_s=now.simulated.value,
    )
    return _start(now, command_line.run(now, path, options, losing), about)


@output.losing(NOT_STARTED)
def start_training(now: Studio, options: TrainOptions) -> str:
    """Train for some steps, beginning with the current placement as it is now."""
    path, about = _as_it_is(now)
    argv = command_line.train(now, path, options)
    return _start(now, argv, replace(about, steps=options.steps))


def _as_it_is(now: Studio) -> tuple[Path, About]:
    """A copy of the current placement, so that editing on does no harm, and what it is."""
    key = placements.devices_key(now.placement)
    path = now.project.folder / "runs" / f"{now.shelf.folder.name}-{key}.json"
    write_text(path, placement_to_text(now.placement))
    return path, About(
        path=str(path),
        placement=now.named.name,
        devices_key=key,
        shelf=now.shelf.folder.name,
        model=now.model.graph.name,
        machine=now.machine.name,
    )


@output.losing(NOT_STARTED)
def start_compare(now: Studio, options: CompareOptions) -> str:
    held = command_line.fixed_ops(now, lasting=True)
    argv = command_line.compare(now, options, held=held)
    about = About(
        placers=options.placers,
        shelf=now.shelf.folder.name,
        objective=now.settings.objective,
    )
    return _start(now, argv, about)


@output.losing(NOT_STARTED)
def start_what_if(now: Studio, conditions: Conditions, options: PlaceOptions) -> str:
    held = command_line.fixed_ops(now, lasting=True)
    argv = command_line.what_if(now, conditions, options, held=held)
    about = About(
        placer=options.placer,
        shelf=now.shelf.folder.name,
        objective=now.settings.objective,
        time_limit_s=options.time_limit_s,
    )
    return _start(now, argv, about)


def collect(now: Studio) -> list[str]:
    """Take over results of finished jobs; what to tell about each job that newly ended."""
    told = [
        f"The record of the job {job_id} is damaged, so that job is left out."
        for job_id in records.set_damaged_aside(now.project.folder)
    ]
    for job_id in jobs.open_ones(now.project.folder):
        job = jobs.read(now.project.folder, job_id)
        if not job.is_live:
            told.append(_collected(now, job))
    return [text for text in told if text]


def _collected(now: Studio, job: jobs.Job) -> str:
    """Take over a job's result, and only then note that it is; what to tell.

    Whatever is cut off in between is done again at the next look, which finds what is on the shelf
    already. A result that cannot be read is given up; one that cannot be written is kept for later.
    """
    folder = now.project.folder
    try:
        with all_or_nothing():
            told = _taken_over(now, job)
            jobs.note(folder, job.id, collected=True)
        _told.discard(job.id)
        return told
    except OSError as error:
        if job.about.told or job.id in _told:
            return ""
        # The record may be what cannot be written.
        _told.add(job.id)
        _note_if_possible(folder, job.id, told=True)
        why = f"{error.strerror or error}; it is tried again when there is room"
    except (ValueError, LookupError, TypeError, AttributeError):
        _note_if_possible(folder, job.id, collected=True)
        why = "what the job wrote is damaged; start it again"
    return f"{WORDS.get(job.verb, job.verb)}: the result could not be kept: {why}."


def _note_if_possible(folder: Path, job_id: str, **facts: bool) -> None:
    with contextlib.suppress(OSError):
        jobs.note(folder, job_id, **facts)


def _taken_over(now: Studio, job: jobs.Job) -> str:
    damaged = job.last(Damaged)
    if damaged is not None:
        raise ValueError(damaged.why)
    _measured_kept(job)
    if job.verb == "compare":
        return outcomes.rows_taken_over(now.project, job, known(now, job))
    if job.verb == "what-if":
        return outcomes.answer_taken_over(now.project, job)
    result = job.result
    if job.status == "done" and isinstance(result, PlaceResult):
        return _placed_kept(now, job, result)
    if job.status == "done" and isinstance(result, ProfileResult):
        return (
            f"Measured {formatting.counted(result.num_kernels, 'kernel')} on"
            f" {formatting.counted(len(result.devices), 'device')}."
        )
    if job.status == "done" and isinstance(result, TrainResult):
        kept = outcomes.end_of_training_kept(now.project, job)
        return f"Training finished: {trained_in_short(result)}.{kept}"
    if job.status == "done" and isinstance(result, StreamResult):
        return f"Run finished: {in_short(result)}, {result.bottleneck} sets the pace."
    if job.status == "done" and isinstance(result, RunResult):
        return f"Run finished: median {in_short(result)}."
    if job.status == "cancelled":
        # Whoever cancelled it reads so where its progress stood.
        return ""
    return f"{WORDS[job.verb]} did not finish; the reason stands {REASONS[job.verb]}."


def _placed_kept(now: Studio, job: jobs.Job, result: PlaceResult) -> str:
    """Put what a method found on the shelf; what to tell."""
    if result.placement is None:
        raise ValueError("The result has no placement.")
    about, shelf = job.about, Shelf(now.project.folder / "placements" / job.about.shelf)
    won, result = result, outcomes.on_this_machine(result)
    facts = outcomes.facts_of(
        result,
        job.id,
        num_selected=about.num_selected,
        num_pinned=about.num_pinned,
        **{"from": about.start},
    )
    # What else was decided there is in it, so it stands beside earlier answers.
    selected = formatting.counted(about.num_selected, "op")
    name = f"{about.placer} on {selected}" if about.num_selected else about.placer
    kept = shelf.of_job(job.id)
    if kept:
        name = kept[0].name
    else:
        assert result.placement is not None
        placed = _with_names_of(now, shelf, name, result.placement)
        aside = _is_another_on_screen(job, shelf)
        # What somebody looks at does not become another placement under its name.
        beside = bool(about.num_selected) or (aside and _is_current(shelf, name))
        name = placements.keep(
            now.project, shelf, name, placed, about.placer, facts, show=not aside, beside=beside
        )
        if aside:
            jobs.note(now.project.folder, job.id, aside=True)
    now.project.change()
    found = outcomes.predicted(result)
    if result.measured_s is not None:
        found += f", measured {formatting.seconds(result.measured_s)}"
        if result.finals is not None and is_in_doubt(result.finals):
            found += " while other programs computed (doubtful, measure again)"
    if jobs.read(now.project.folder, job.id).about.aside:
        # It is told beside the button that shows it.
        return ""
    if result.cancelled:
        return f"Stopped early; the best that {name} had found is kept: {found}."
    faster = "" if won is result else f" {outcomes.whole_cpu_in_words(won)}"
    return f"Placed by {name}: {found}.{faster}"


def _is_another_on_screen(job: jobs.Job, shelf: Shelf) -> bool:
    """Whether a person has edited, or chosen another placement, since a method began."""
    return job.about.screen not in ("", shelf.screen)


def _is_current(shelf: Shelf, name: str) -> bool:
    return shelf.current is not None and shelf.current.name == name


def ended_aside(now: Studio) -> tuple[jobs.Job, Named] | None:
    """The newest method whose result was put aside, and that; None where nobody need be told."""
    job = jobs.latest(now.project.folder, "place")
    if job is None or not job.about.aside or job.about.dismissed:
        return None
    found = next((item for item in now.shelf.items if item.facts.job == job.id), None)
    return None if found is None or found.name == now.named.name else (job, found)


def known(now: Studio, job: jobs.Job) -> Mapping[str, outcomes.Known]:
    """What was there before a comparison and that it did not try, by name.

    It is nothing where the comparison is of another problem than that of now.
    """
    if not _is_of_now(now, job):
        return {}
    tried = {row.placer for row in job.all(CompareRow)}
    # A method's own result may be called otherwise, where its name was taken.
    others = {
        item.name: item.origin
        for item in now.shelf.items
        if item.made_by not in tried or item.facts.objective not in (None, job.about.objective)
    }
    found = snapshot.predicted_s(now, others)
    return {name: outcomes.Known(value_s, others[name]) for name, value_s in found.items()}


def _is_of_now(now: Studio, job: jobs.Job) -> bool:
    here = (now.problem.fingerprint, now.pinned_problem.fingerprint)
    is_here = job.about.shelf == now.shelf.folder.name
    return is_here and all(row.problem in (None, *here) for row in job.all(CompareRow))


def _with_names_of(now: Studio, shelf: Shelf, name: str, placed: Placement) -> Placement:
    """What a method found, by the the device names of its earlier result if no more differs.

    With equal devices nothing has changed then, and what was measured of the earlier one holds.
    """
    earlier = next((i for i in shelf.items if i.name == name and i.made_by == name), None)
    if earlier is None or shelf.folder != now.shelf.folder:
        return placed
    before = shelf.read(name)
    if before.device_of.keys() != placed.device_of.keys():
        return placed
    renamed = aligned(now.pinned_problem, before, placed)
    return renamed if renamed.device_of == before.device_of else placed


def _measured_kept(job: jobs.Job) -> None:
    """Store what a job measured and could not store; NotWritten where that is still so."""
    measured = job.last(NotKept)
    if measured is not None:
        ProfileStore().put(measured.profile)


def in_short(result: RunResult) -> str:
    """What a run measured, in the goal that it was made for."""
    if isinstance(result, StreamResult):
        return formatting.rate(result.samples_per_s)
    return f"{formatting.seconds(result.step_s.median)} per step"


def trained_in_short(result: TrainResult) -> str:
    """What a training run has shown, in a few words."""
    losses = result.losses
    said = [
        f"{formatting.counted(result.steps, 'step')} of {formatting.seconds(result.step_s.median)}"
    ]
    said += (
        [f"loss {formatting.loss(losses.first)} to {formatting.loss(losses.last)}"]
        if losses
        else []
    )
    said += [formatting.counted(len(result.moves), "move")] if result.adjusted else []
    return ", ".join(said)


def disturbed(project: Path, verb: str) -> str:
    """A warning where a search and a measurement go on at once; empty where they do not."""
    against = SEARCHING if verb in MEASURING else MEASURING if verb in SEARCHING else ()
    for other in against:
        if jobs.is_live(project, other):
            return (
                f"{WORDS[other]} is still going on, and both share the processors: steps that are"
                " measured while a method searches take longer. If their times matter, run again"
                " afterwards."
            )
    return ""


def _start(now: Studio, argv: list[str], about: About) -> str:
    """Start a job unless one of its kind lives, as after the first half of a double click."""
    verb, *rest = argv
    latest = jobs.latest(now.project.folder, verb)
    if latest is not None and latest.is_live:
        return latest.id
    # The job is last: whatever cannot be written before keeps it from being started.
    now.project.change()
    job_id = jobs.start(now.project.folder, verb, [*rest, "--jsonl"], about)
    disturbing = disturbed(now.project.folder, verb)
    if disturbing:
        now.session.say("warning", disturbing)
    now.session.show_run("")
    return job_id
