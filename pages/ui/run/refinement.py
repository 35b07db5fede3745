"""Which segments explain that a run differs from its prediction, and what the run refines."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from pages.ui.session import choices, saving
from pages.ui.session.current import attempt, carry_out
from pages.ui.shell import glossary
from placement.api.results.running import RunResult
from placement.api.wording import (
    DIFFERENCES,
    MOST_DIFFERENCES,
    differences_cells,
    differences_verdict,
    explanation_of,
    refining_in_words,
)
from placement.core import formatting
from placement.core.profile import runs_of
from placement.drawing import spans
from studio.jobs import jobs, refining
from studio.snapshot import Studio

LOST = "The refinement is not saved."


def show(now: Studio, job: jobs.Job, result: RunResult, sources: spans.Sources) -> None:
    """Differences by segment, then predictions before and after, then what may be done."""
    found = explanation_of(result)
    if found is None:
        return
    st.subheader("Where the prediction differs", help=glossary.DIFFERENCE)
    st.markdown(glossary.plain(differences_verdict(found)))
    rows = (
        differences_cells(row, spans.name_of(row.span, sources.of(row.span), sources.graph))
        for row in found.rows[:MOST_DIFFERENCES]
    )
    st.dataframe(
        [dict(zip(DIFFERENCES, cells, strict=True)) for cells in rows],
        hide_index=True,
        key="differences",
    )
    if not result.emulated:
        _refinement(now, job, result)


def _refinement(now: Studio, job: jobs.Job, result: RunResult) -> None:
    profile = now.profile
    steps_s = refining.predictions(now, job, profile)
    if steps_s is not None:
        _before_and_after(steps_s, result.step_s.median)
    refine, drop, _ = st.columns([0.3, 0.3, 0.4])
    locked, reason = not choices.may_write(), refining.why_not(now, job)
    taken = refining.is_in(profile, job)
    refine.button(
        "Refine predictions by this run",
        icon=":material/tune:",
        disabled=locked or taken or bool(reason),
        on_click=_carry_out,
        args=(partial(refining.refine, job=job),),
        help=glossary.plain(reason) if reason else glossary.REFINEMENT,
        width="stretch",
    )
    known = () if profile is None else runs_of(profile)
    if known:
        drop.button(
            "Take back all refinements",
            disabled=locked,
            on_click=_carry_out,
            args=(refining.drop,),
            width="stretch",
        )
        by = "; ".join(map(refining_in_words, known))
        st.caption(glossary.plain(f"The times of this model are refined by: {by}."))


def _before_and_after(steps_s: tuple[float, float], measured_s: float) -> None:
    """The step as predicted without and with refinements, beside what was measured."""
    before, after, measured = st.columns(3)
    told = ((before, "as it was measured", steps_s[0]), (after, "refined by runs", steps_s[1]))
    for cell, by, predicted_s in told:
        off = formatting.percent(predicted_s / measured_s - 1 if measured_s else 0.0, signed=True)
        cell.metric(
            f"Predicted, {by}",
            formatting.seconds(predicted_s),
            f"{off} against measured",
            delta_color="off",
            delta_arrow="off",
        )
    measured.metric("Measured step", formatting.seconds(measured_s))


def _carry_out(change: Callable[[Studio], str]) -> None:
    def kept(now: Studio) -> None:
        with saving.change(LOST):
            attempt(now, change)

    carry_out(kept)
