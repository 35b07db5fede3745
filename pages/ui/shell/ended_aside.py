"""A method that ended while a person was at something else: what it found, and a way to it.

It stands among the placements. What is on the screen stays there until somebody asks for the other.
"""

from typing import Any

import streamlit as st

from pages.ui.session import cache, choices
from pages.ui.session.current import studio
from pages.ui.shell import glossary
from placement.core import formatting
from studio import standings
from studio.jobs import jobs, kinds
from studio.snapshot import Studio


def show(now: Studio) -> None:
    """Say what the method came to against the placement on the screen, and offer to show it."""
    found = kinds.ended_aside(now)
    if found is None:
        return
    job, item = found
    predicted = cache.simulated(now.problem, standings.placement_of(now, item.name))
    change = ""
    if now.simulated.value > 0:
        share = predicted.value / now.simulated.value - 1.0
        change = f", {formatting.percent(share, signed=True)} against {now.named.name}"
    value = formatting.seconds(predicted.value, now.problem.unit)
    text, look, gone = st.columns([0.72, 0.14, 0.14], vertical_alignment="center")
    text.info(glossary.plain(f"{item.name} has ended: {value}{change}."))
    about: dict[str, Any] = {"args": (job.id, item.name), "width": "stretch"}
    about["disabled"] = not choices.may_write()
    look.button("Show it", key=f"aside-show-{job.id}", on_click=_show, **about)
    gone.button("Dismiss", key=f"aside-dismiss-{job.id}", on_click=_dismiss, **about)


def _show(job_id: str, name: str) -> None:
    now = studio()
    if choices.renew_claim(now.project) and any(i.name == name for i in now.shelf.items):
        now.shelf.choose(name)
        _dismiss(job_id, name)
    # All of the page: whatever it says of one placement may not stay beside another.
    st.rerun()


def _dismiss(job_id: str, name: str) -> None:
    jobs.note(studio().project.folder, job_id, dismissed=True)
