"""Start a live run and watch its steps; older runs stay and can be looked at again."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import streamlit as st

from pages.ui.forms import option_fields
from pages.ui.session import cache, choices
from pages.ui.session.current import carry_out, studio
from pages.ui.shell import glossary, job_status
from placement.constraints.fusion import mended
from placement.core import formatting
from placement.core.decoding import decode
from placement.core.objective import Objective
from placement.core.placement import placement_from_json
from placement.core.verb_options import ResumeOptions, RunOptions, StreamOptions, option_of
from studio.jobs import command_line, jobs, kinds, runs
from studio.project.files import read_json
from studio.snapshot import Studio

# Keys of the fields by option; all but the seed are kept with the project.
KEYS: Mapping[type, Mapping[str, str]] = {
    RunOptions: {"steps": "steps", "warmup": "warmup", "seed": "run-seed"},
    StreamOptions: {
        "samples": "samples",
        "warmup": "warmup-samples",
        "depth": "depth",
        "seed": "run-seed",
    },
}

RESUME = {"resume": "run-resume"}


def button(now: Studio, show: Callable[[], None]) -> None:
    """The button that starts a run; `show` brings what it says into sight."""
    reason = why_not(now)
    st.button(
        "Run" if not now.emulated else "Run (emulated)",
        icon=":material/play_arrow:",
        disabled=not choices.may_write() or jobs.is_live(now.project.folder, "run") or bool(reason),
        on_click=_start,
        args=(show,),
        help=glossary.plain(reason) or "Run the placement on the screen and measure its steps.",
    )


def controls(now: Studio) -> None:
    """How often to run, and the progress of a run that goes on."""
    reason = why_not(now)
    if reason:
        st.info(glossary.plain(reason))
        job_status.show(now, "run", steps_beside=_predicted_s)
        return
    locked = not choices.may_write()
    options, losing = _fields(now, locked), _losing(now, locked)
    first = " The run measures the model first." * (now.is_estimate and now.can_measure)
    st.caption(f"To run: the placement **{glossary.plain(now.named.name)}**.{first}")
    job_status.show(now, "run", steps_beside=_predicted_s)
    argv = command_line.run(now, now.shelf.path(now.named.name), options, losing)
    job_status.command_box(argv)


def _kind(now: Studio) -> type[RunOptions | StreamOptions]:
    """The options in the words of the goal."""
    return StreamOptions if now.settings.objective is Objective.THROUGHPUT else RunOptions


def _fields(now: Studio, locked: bool) -> RunOptions | StreamOptions:
    """The fields, and what they hold."""
    kind = _kind(now)
    keys = KEYS[kind]
    values: dict[str, int | None] = {}
    for cell, (name, key) in zip(st.columns(len(keys)), keys.items(), strict=True):
        if name == "seed":
            values[name] = option_fields.seed(cell, kind, key, disabled=locked)
        else:
            # The placeholder shows where a field may be empty.
            values[name] = option_fields.kept_number(
                cell, kind, name, key, placeholder="chosen for you", disabled=locked
            )
    return decode(values, kind)


def may_lose_hosts(now: Studio) -> bool:
    """Whether what runs may lose devices in the middle: where they are on several real hosts."""
    return now.machine.spans_hosts and not now.emulated


def _losing(now: Studio, locked: bool) -> ResumeOptions:
    """Whether to run again where a host leaves, which is asked where one may."""
    return ResumeOptions(
        resume=may_lose_hosts(now)
        and option_fields.kept_toggle(
            st, ResumeOptions, "resume", RESUME["resume"], disabled=locked
        )
    )


def _asked_losing(now: Studio) -> ResumeOptions:
    """Whether the switch for that is on now, drawn or not."""
    if not may_lose_hosts(now):
        return ResumeOptions()
    kept = choices.remembered(RESUME["resume"], ResumeOptions.resume)
    return option_fields.typed(ResumeOptions(resume=kept), RESUME)


def _asked(now: Studio) -> RunOptions | StreamOptions:
    """What the fields hold now, or what was last typed into them where they are not drawn."""
    kind = _kind(now)
    kept = {
        name: choices.remembered(key, option_of(kind, name).default)
        for name, key in KEYS[kind].items()
        if name != "seed"
    }
    return option_fields.typed(decode(kept, kind), KEYS[kind])


def why_not(now: Studio) -> str:
    """Why the current placement cannot be run here; empty where it can."""
    if not now.model.has_weights:
        return glossary.WEIGHTLESS
    if now.emulated:
        return ""
    if now.model.executable is None:
        return "This file has a graph and costs but nothing to execute; open a model file to run."
    if not now.can_measure:
        return (
            "This machine has devices that are not on this computer, so the placement can be"
            " predicted but not run; choose this computer on the Devices page."
        )
    return ""


def _predicted_s(job: jobs.Job) -> float | None:
    """What is predicted of the placement that runs, by the times of now: a run may measure first.

    None where the page has another model or goal by now.
    """
    now, path = studio(), job.about.path
    if not path or not runs.is_of_this(now, job):
        return None
    if job.about.objective != now.settings.objective:
        return None
    placement = mended(now.problem, placement_from_json(read_json(Path(path))))
    return cache.simulated(now.problem, placement).value


def chosen_run(now: Studio) -> jobs.Job | None:
    """The finished run on the screen: the one picked, else the newest of the placement shown.

    Of that, or else of an earlier state of it. Figures of another model, machine or placement are
    easily taken for those of this one, so they show only when somebody picks them.
    """
    done = runs.finished(now.project)
    ids = [job.id for job in done]
    own = [job for job in done if runs.is_of_this(now, job)]
    named = [job for job in own if job.about.placement == now.named.name]
    found = runs.of_placement(tuple(own), now.placement) or next(iter(named), None)
    newest = None if found is None else found.id
    shown = choices.run_shown() if choices.run_shown() in ids else newest
    if len(done) > 1 or (done and newest is None):
        _list(done, shown, newest)
    return next((job for job in done if job.id == shown), None)


def _list(done: tuple[jobs.Job, ...], shown: str | None, newest: str | None) -> None:
    """The menu of finished runs, for the project and the run that is drawn when none is picked."""
    ids, labels = [job.id for job in done], {job.id: label(job) for job in done}
    key = choices.own(f"run-{ids[0]}-{newest}")
    st.selectbox(
        "Run",
        ids,
        index=None if shown is None else ids.index(shown),
        key=key,
        format_func=labels.__getitem__,
        placeholder="None of this placement; look at one of another placement or model",
        on_change=_pick,
        args=(key, shown),
    )


def label(job: jobs.Job, *, brief: bool = False) -> str:
    """A finished run in a list: what ran, how fast, and when; `brief` where all are of a model."""
    assert job.ran is not None
    age = formatting.age(time.time() - job.started_at) + ", imported" * job.about.imported
    about, measured = job.about, kinds.in_short(job.ran)
    if brief:
        return f"{about.placement}: {measured.removesuffix(' per step')}, {age}"
    return f"{about.placement}: {measured}, {about.model}, {age}"


def _pick(key: str, drawn: str | None) -> None:
    picked = choices.changed(key, drawn)
    if picked is not None:
        choices.show_run(str(picked))


def _start(show: Callable[[], None]) -> None:
    show()
    carry_out(lambda now: kinds.start_run(now, _asked(now), _asked_losing(now)))
