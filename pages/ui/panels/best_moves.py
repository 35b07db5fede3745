"""The moves that would save most, each with a button that makes it."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from pages.ui.session import cache, choices
from pages.ui.session.current import edit
from pages.ui.shell import glossary
from placement.advice.best_moves import Hint, covers_all
from placement.core import formatting
from placement.drawing.names import names_of
from studio import editing
from studio.snapshot import Studio

MOST_NAMES = 12


def folded(now: Studio) -> None:
    """Draw the list in a box; it is looked for only while somebody has it open."""
    box = st.expander("Moves that would save most", key="hints-open", on_change="rerun")
    if box.open:
        with box:
            show(now)


def show(now: Studio) -> None:
    """Look for the moves and draw the list."""
    found = cache.hints(now.pinned_problem, now.placement)
    every = covers_all(now.pinned_problem)
    st.caption(heading(found, every), help=glossary.HINTS)
    if not every:
        st.caption(glossary.MANY_MOVES)
    for number, hint in enumerate(found):
        _row(now, number, hint)


def heading(found: Sequence[Hint], every: bool) -> str:
    """What the list is, or what it means that it is empty or holds ties alone."""
    if found and all(hint.is_tie for hint in found):
        return "No single move saves more than runs differ: a tie each, predicted as the only move."
    if found:
        return "Predicted, each as if it were the only move."
    return "No single move helps." if every else "Of the moves looked at, none helps by itself."


def _row(now: Studio, number: int, hint: Hint) -> None:
    ops = f" ({formatting.counted(len(hint.ops), 'op')})" if len(hint.ops) > 1 else ""
    called = names_of(now.model.graph).listed(hint.ops[:MOST_NAMES])
    listed = ", ".join(called) + (" …" if len(hint.ops) > MOST_NAMES else "")
    row = st.container(horizontal=True, vertical_alignment="center", gap="xsmall")
    row.markdown(
        f"{glossary.plain(hint.label or 'the whole model')}{ops}  \n"
        f":small[{glossary.plain(f'{way(now, hint)}, {saving(now, hint)}')}]",
        help=glossary.plain(listed) if ops else None,
        width="stretch",
    )
    row.button(
        "Apply",
        key=f"hint-{number}",
        on_click=edit,
        args=(partial(editing.edit, ops=hint.ops, device=hint.device),),
        disabled=not choices.may_write(),
    )


def way(now: Studio, hint: Hint) -> str:
    """From where to where the ops move; those that are there already do not count."""
    used = {now.placement.device_of[op] for op in hint.ops} - {hint.device}
    return f"{' and '.join(d.name for d in now.machine.devices if d.name in used)} to {hint.device}"


def saving(now: Studio, hint: Hint) -> str:
    """What a move gains, as a time and a share of the time now."""
    if not hint.saves_s:
        return f"then everything fits, in {formatting.seconds(hint.value_s, now.problem.unit)}"
    share = hint.saves_s / (hint.value_s + hint.saves_s)
    saves = f"saves {formatting.seconds(hint.saves_s, now.problem.unit)}"
    return f"{saves} ({formatting.percent(share)}){', a tie' * hint.is_tie}"
