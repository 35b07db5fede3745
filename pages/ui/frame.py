"""What every page has around it: the sidebar's account of the project, and who may change it."""

import time

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

from pages.ui import choices, jobs, messages, projects, tasks, units, words
from pages.ui.studio import Studio, studio

HEARTBEAT_S = 2.0


def around() -> None:
    """Called first by every page: start over through app.py where Streamlit went past it.

    Until app.py has run once in a server's life, Streamlit takes a folder named pages for its older
    kind of app and opens the page that the address names alone, without the frame.
    """
    if PagesManager.uses_pages_directory:
        PagesManager.uses_pages_directory = False
        st.rerun()


def show() -> None:
    """The sidebar, the notice of a second session, and what is left to say."""
    now = studio()
    mine = choices.renew_claim(now.project)
    for text in tasks.collect(now) if mine else ():
        choices.say("info", text)
    with st.sidebar:
        _heartbeat()
    if not mine:
        _banner(now)
    messages.show()


@st.fragment(run_every=HEARTBEAT_S)
def _heartbeat() -> None:
    """Keeps the claim, takes over finished jobs and shows what the project is."""
    now = studio()
    before = choices.may_write()
    mine = choices.renew_claim(now.project)
    told = tasks.collect(now) if mine else []
    for text in told:
        choices.say("info", text)
    if told or mine != before:
        st.rerun()
    _account(now)


def _account(now: Studio) -> None:
    st.markdown(f"Project: **{words.plain(now.settings.name)}**")
    try:
        machine = now.machine
        ops = len(now.model.graph.ops)
        st.markdown(f"Model: {words.plain(now.model.graph.name)} ({ops} ops)")
        st.markdown(f"Machine: {words.plain(machine.name)}, {_devices(len(machine.devices))}")
        st.markdown(f"Times: {now.costs}", help=words.ESTIMATE if now.is_estimate else None)
        if machine.emulated:
            st.markdown("**Emulated machine**", help=words.EMULATED)
        elif now.model.executable is not None and not now.can_measure:
            st.markdown("**Not on this computer**", help=words.ABSENT)
    except ValueError as error:
        st.error(words.plain(str(error)))
    _jobs(now)
    saved = "All changes saved" if choices.may_write() else "View only: open in another session"
    st.caption(saved, help=f"In {words.plain(str(now.project.folder))}")
    with st.popover("Projects", width="stretch"):
        _menu(now)


def _devices(number: int) -> str:
    return f"{number} device{'s' if number > 1 else ''}"


def _jobs(now: Studio) -> None:
    for job_id in jobs.open_ones(now.project.folder):
        job = jobs.read(now.project.folder, job_id)
        if job.is_live:
            share, doing = job.progress
            text = job.message or doing
            st.progress(share, text=words.plain(f"{tasks.WORDS.get(job.verb, job.verb)}: {text}"))


def _menu(now: Studio) -> None:
    st.text_input(
        "Name of this project",
        value=now.settings.name,
        key=f"project-name-{now.project.id}",
        on_change=_rename,
        args=(f"project-name-{now.project.id}", now.settings.name),
        disabled=not choices.may_write(),
        max_chars=60,
    )
    st.button("New project", on_click=_new, width="stretch")
    st.button("Copy of this project", on_click=_copy, width="stretch")
    others = [p for p in projects.recent() if p.id != now.project.id]
    if others:
        st.caption("Open another")
    for other in others[:8]:
        settings = other.settings
        age = units.age(time.time() - (other.folder / "project.json").stat().st_mtime)
        st.button(
            words.plain(f"{settings.name}: {settings.model}, {age}", 80),
            key=f"open-{other.id}",
            on_click=choices.show_project,
            args=(other,),
            width="stretch",
        )


def _rename(key: str, drawn: str) -> None:
    name = str(choices.changed(key, drawn) or "").strip()
    if name and choices.may_write():
        choices.project().change(name=name)


def _new() -> None:
    choices.show_project(projects.create())


def _copy() -> None:
    choices.show_project(projects.copy(choices.project()))


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
