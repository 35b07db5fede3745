"""Placements that ran turn by turn before one of them became the one on the screen."""

import streamlit as st

from pages.ui.panels import search_account
from pages.ui.session import choices
from pages.ui.session.current import carry_out, studio
from pages.ui.shell import glossary
from placement.api.results.placing import FinalRow, FinalsResult, PlaceResult
from placement.api.wording import FINALS, finals_cells, finals_verdict
from studio.snapshot import Studio

ROW, MOST_ROWS = 35, 9
HELP = {
    "Predicted": "Simulated, before anything was measured. Of the whole CPU it is what the profile"
    " measured.",
    "Measured": "The median of its turns, each a few steps in a row after one that warms caches.",
    "95 % interval": "Limits that hold the median in 95 of 100 cases, whatever the times' spread.",
    "Turns": "All that are still in run once in each round, in an order drawn anew.",
    "Out": "A placement is out once it is certain to be slower than the leader, or as fast within"
    " 1%.",
}


def show(now: Studio) -> None:
    """The table of those that ran with the placement on the screen, where any did."""
    job = search_account.job_of(now)
    result = None if job is None else job.result
    if not isinstance(result, PlaceResult) or result.finals is None:
        return
    finals = result.finals
    with st.expander("Measured turn by turn", expanded=True, key="finals"):
        text, switch = st.columns([0.76, 0.24], vertical_alignment="center")
        text.markdown(glossary.plain(finals_verdict(finals), 600))
        if finals.machine:
            switch.button(
                "Use the CPU as one device",
                key="use-one-device",
                width="stretch",
                disabled=not choices.may_write(),
                on_click=carry_out,
                args=(_one_device,),
                help="Makes this computer a machine of one lane. Placements on lanes are kept and"
                " come back with the lanes, on the Devices page.",
            )
        _table(finals)


def _table(finals: FinalsResult) -> None:
    st.dataframe(
        [_cells(row) for row in finals.rows],
        column_config={
            name: st.column_config.TextColumn(
                help=HELP.get(name), alignment="left" if name in ("Placement", "Out") else "right"
            )
            for name in FINALS
        },
        hide_index=True,
        key="finals-table",
        placeholder="–",
        height=ROW * (min(MOST_ROWS, len(finals.rows)) + 1) + 3,
        alt="Placements that were measured against each other, the fastest first",
    )


def _cells(row: FinalRow) -> dict[str, str | None]:
    return {name: text or None for name, text in zip(FINALS, finals_cells(row), strict=True)}


def _one_device(now: Studio) -> None:
    """Let the whole CPU be one device from now on."""
    now.project.change(machine="local", lanes=1)
    choices.say("success", f"{studio().machine.devices[0].name} is the whole CPU now.")
