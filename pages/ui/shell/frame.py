"""What every page has around it: the sidebar's account of the project, and who may change it."""

import contextlib
import time

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

from pages.ui.panels import placement_menu, yardstick
from pages.ui.session import callbacks, choices, saving
from pages.ui.session.current import studio
from pages.ui.shell import (
    ended_aside,
    glossary,
    job_watch,
    messages,
    model_request,
    next_step,
    opening_wait,
)
from placement.core import formatting
from studio.jobs import jobs, kinds
from studio.project import store
from studio.snapshot import Studio

# The end of a job is told of at once, and until then a measurement is left alone.
HEARTBEAT_S, HEARTBEAT_BESIDE_JOBS_S = 2.0, 10.0
MOST_OTHERS = 8


def around() -> None:
    """Called first by every page: start over through app.py where Streamlit went past it.

    Until app.py has run once in a server's life, Streamlit takes a folder named pages for its older
    kind of app and opens the page that the address names alone, without the frame.
    """
    if PagesManager.uses_pages_directory:
        PagesManager.uses_pages_directory = False
        st.rerun()


def show(page: str) -> None:
    """The sidebar, the notice of a second session, what is left to say, and what to do next.

    `page` is the name of the page's file, without its ending. A ValueError says why the page has
    nothing to show; those on which another model or machine is chosen see to it themselves.
    """
    opened = choices.project()
    model_request.ask_named()
    # In a place of its own that is always there: Streamlit knows a fragment by where it stands, and
    # forgets without a word what the browser asks of one that has moved since.
    with st.container(key="opening"):
        opening_wait.wait(opened)
        now = studio()
        mine = choices.renew_claim(now.project)
        if page in ("studio", "model"):
            # Before it is said below that there is a placement. Why there is none, the page says.
            with contextlib.suppress(ValueError):
                _open_placement(now, mine=mine)
                _ = now.named
    for text in kinds.collect(now) if mine else ():
        choices.say("info", text)
    with st.sidebar:
        is_beside = any(job.is_live for job in _open_jobs(now))
        every_s = HEARTBEAT_BESIDE_JOBS_S if is_beside else HEARTBEAT_S
        st.fragment(_heartbeat, run_every=every_s)()
        _projects(now, page)
    messages.take(now)
    # One place for all of it, so that nothing below moves, and is drawn anew, when it changes.
    with st.container(key="notices"):
        saving.show()
        if not mine and not choices.unwritable():
            _banner(now)
        # On the Studio page they have a line of their own; elsewhere they would push the picture.
        _said(page == "studio")
        next_step.show(now, page)
    if page not in ("model", "lessons", "projects"):
        _ = now.model
    if page not in ("model", "lessons", "projects", "devices"):
        _ = now.machine


def _open_placement(now: Studio, *, mine: bool) -> None:
    """Open the placement that was asked for with the model, once that is here."""
    path = model_request.take_placement() if mine else ""
    if path:
        placement_menu.open_named(now, path)


@st.fragment(key="said")
@messages.plain_errors()
def _said(takes_new: bool) -> None:
    """Messages, and why values are others than before: both end when what they are about does."""
    now = studio()
    if takes_new:
        messages.take_new(now)
    messages.still_true(now)
    if choices.presenting():
        # What asks to be taken note of can wait for whoever is at the desk.
        return
    with contextlib.suppress(ValueError):
        ended_aside.show(now)
    with contextlib.suppress(ValueError):
        # Where the model or the machine cannot be had, its page says so.
        yardstick.show(now)


@messages.plain_errors()
def _heartbeat() -> None:
    """Keeps the claim, takes over finished jobs and shows what the project is."""
    now = studio()
    before = choices.may_write()
    with callbacks.uninterrupted():
        mine = choices.renew_claim(now.project)
        open_jobs = jobs.open_ones(now.project.folder)
        told = kinds.collect(now) if mine else []
        # Of some there is nothing to say, but all of the page is of before.
        has_ended = jobs.open_ones(now.project.folder) != open_jobs
        for text in told:
            choices.say("info", text)
    if told or has_ended or mine != before or saving.is_outdated():
        st.rerun()
    _account(now)


def _open_jobs(now: Studio) -> list[jobs.Job]:
    """Jobs that live, or whose end nobody has taken note of yet."""
    folder = now.project.folder
    return [jobs.read(folder, job_id) for job_id in jobs.open_ones(folder)]


def _account(now: Studio) -> None:
    st.markdown(f"Project: **{glossary.plain(now.settings.name)}**")
    try:
        machine = now.machine
        ops = formatting.counted(len(now.model.graph.ops), "op")
        st.markdown(f"Model: {glossary.plain(now.model.graph.name)} ({ops})")
        devices = formatting.counted(len(machine.devices), "device")
        st.markdown(f"Machine: {glossary.plain(machine.name)}, {devices}")
        of = f"times-{now.model.graph.fingerprint}-{machine.fingerprint}"
        if choices.have_changed(of, now.costs):
            # What the page says below is still of the times before.
            st.rerun()
        st.markdown(f"Times: {now.costs}", help=glossary.ESTIMATE if now.is_estimate else None)
        if not now.model.has_weights:
            st.markdown("**No weights: predicted only**", help=glossary.WEIGHTLESS)
        elif now.emulated:
            st.markdown("**Emulated machine**", help=glossary.EMULATED)
        elif now.model.executable is not None and not now.can_measure:
            st.markdown("**Not on this computer**", help=glossary.ABSENT)
    except ValueError as error:
        st.error(glossary.plain(str(error)))
    _jobs(now)
    st.caption(saved(), help=f"In {glossary.plain(str(now.project.folder))}")


def saved() -> str:
    """Whether what was changed last is on the disk, in few words."""
    if choices.unwritable():
        return "View only: nothing can be saved"
    if not choices.may_write():
        return "View only: open in another session"
    return "The last change is not saved" if choices.not_saved() else "All changes saved"


def _jobs(now: Studio) -> None:
    for job in _open_jobs(now):
        if job.is_live:
            job_watch.watch(job, "sidebar")


def _projects(now: Studio, page: str) -> None:
    """A new project, another one, and the way to all of them.

    On another page, and for another project, the menu is another one, which is closed.
    """
    row = st.container(horizontal=True, gap="xsmall")
    row.button("New project", on_click=_new)
    with row.popover("Projects", key=f"projects-{page}-{now.project.id}"):
        _menu(now)


def _menu(now: Studio) -> None:
    st.text_input(
        "Name of this project",
        value=now.settings.name,
        key=f"project-name-{now.project.id}",
        on_change=_rename,
        args=(f"project-name-{now.project.id}", now.settings.name),
        disabled=not choices.may_write(),
        max_chars=store.LONGEST_NAME,
    )
    st.button("Duplicate this project", on_click=_copy, width="stretch")
    others = [p for p in store.recent() if p.id != now.project.id]
    if others:
        st.caption("Open another")
    for other in others[:MOST_OTHERS]:
        settings = other.settings
        st.button(
            glossary.plain(f"{settings.name}: {described(settings)}, {changed(other)}", 80),
            key=f"open-{other.id}",
            on_click=choices.show_project,
            args=(other,),
            width="stretch",
        )
    st.page_link(
        "pages/projects.py",
        label="All projects: rename, export, import, delete",
        icon=":material/folder_open:",
    )


def described(settings: store.Settings) -> str:
    """A project's model as it is listed: a sample's or a file's name, without its folders."""
    return settings.model.replace("\\", "/").rpartition("/")[2]


def changed(project: store.Project) -> str:
    return formatting.age(time.time() - project.changed_at)


def _rename(key: str, drawn: str) -> None:
    name = str(choices.changed(key, drawn) or "").strip()
    if name and choices.may_write():
        choices.project().change(name=name)


def _new() -> None:
    choices.show_project(store.create())


def _copy() -> None:
    choices.show_project(store.copy(choices.project()))


def _banner(now: Studio) -> None:
    text, copy, take = st.columns([0.6, 0.2, 0.2], vertical_alignment="center")
    text.warning(
        "This project is open in another session, so here you can only look at it.",
        icon=":material/lock:",
    )
    copy.button("Open a copy", on_click=_copy, width="stretch", type="primary")
    take.button(
        "Take over",
        on_click=_take_over,
        width="stretch",
        help="The other session can only look from then on.",
    )


def _take_over() -> None:
    choices.renew_claim(choices.project(), force=True)
