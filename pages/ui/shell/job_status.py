"""A job on the page: progress and cancel while it lives, one sentence if it came to nothing."""

from collections.abc import Callable, Sequence

import streamlit as st

from pages.ui.session import choices
from pages.ui.session.current import studio
from pages.ui.shell import glossary, job_watch
from pages.ui.shell.messages import plain_errors
from studio.jobs import command_line, jobs, kinds
from studio.snapshot import Studio

POLL_S = 0.5


def command_box(argv: Sequence[str]) -> None:
    """The command that does what the button above does, in a box that is closed at first."""
    with st.expander("The same on the command line"):
        st.code(command_line.text(argv), language="bash", wrap_lines=True)


def nothing_more(job: jobs.Job) -> None:
    """The default for `show`: progress says enough."""


def show(
    now: Studio,
    verb: str,
    more: Callable[[jobs.Job], None] = nothing_more,
    steps_beside: Callable[[jobs.Job], float | None] | None = None,
) -> None:
    """Draw the newest job of a kind; `more` draws below the progress what it has so far.

    With `steps_beside`, which gives the seconds that are predicted of a step, its steps are drawn.
    """
    # One place, whether there is something to say or not, so that nothing below is drawn anew.
    with st.container():
        job = jobs.latest(now.project.folder, verb)
        if job is not None and job.is_live:
            _live(verb, more, steps_beside)
        elif job is not None and job.status != "done" and not job.about.dismissed:
            _ended(now, job)


def follow(now: Studio, verb: str, more: Callable[[jobs.Job], None]) -> None:
    """Draw what the newest job of a kind has so far; its progress stands elsewhere."""
    with st.container(key=f"follow-{verb}"):
        if jobs.is_live(now.project.folder, verb):
            _follow(verb, more)


@st.fragment
@plain_errors()
def _follow(verb: str, more: Callable[[jobs.Job], None]) -> None:
    job = jobs.latest(studio().project.folder, verb)
    if job is None or not job.is_live:
        st.rerun()
    assert job is not None
    more(job)
    job_watch.watch(job, "follow", shown=False, draws=True)


@st.fragment
@plain_errors()
def _live(
    verb: str,
    more: Callable[[jobs.Job], None],
    steps_beside: Callable[[jobs.Job], float | None] | None,
) -> None:
    now = studio()
    job = jobs.latest(now.project.folder, verb)
    if job is None or not job.is_live:
        st.rerun()
    assert job is not None
    bar, cancel = st.columns([0.84, 0.16], vertical_alignment="top")
    with bar:
        job_watch.watch(
            job,
            "progress",
            draws=more is not nothing_more,
            lines=steps_beside is not None,
            predicted_s=steps_beside(job) if steps_beside else None,
        )
    cancel.button(
        "Cancel",
        key=f"cancel-{verb}",
        on_click=jobs.stop,
        args=(now.project.folder, job.id),
        disabled=not choices.may_write(),
        width="stretch",
    )
    more(job)


def _ended(now: Studio, job: jobs.Job) -> None:
    text, gone = st.columns([0.84, 0.16], vertical_alignment="center")
    kind = "info" if job.status == "cancelled" else "error"
    getattr(text, kind)(f"{kinds.WORDS[job.verb]}: {glossary.plain(job.message)}")
    gone.button(
        "Dismiss",
        key=f"dismiss-{job.id}",
        on_click=jobs.note,
        args=(now.project.folder, job.id),
        kwargs={"dismissed": True},
        width="stretch",
    )
