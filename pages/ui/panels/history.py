"""The list of changes by hand: every state so far is a click away, forth as well as back."""

from functools import partial

import streamlit as st

from pages.ui.session import choices
from pages.ui.session.current import edit
from pages.ui.shell import glossary
from placement.core import formatting
from studio import editing
from studio.snapshot import Studio

# More are reached by going back to the oldest of these first.
MOST_SHOWN = 60
HELP = (
    "Every step since the placement was made. Click one to go back to how things were right after"
    " it; later steps stay in the list, to be redone, until you change something else."
)


def folded(now: Studio) -> None:
    """Draw the list in a box; its entries are made only while somebody has it open."""
    of = _num_steps(now)
    if not of:
        return
    # The label never changes: the box would close.
    box = st.expander("Changes by hand", key="changes-open", on_change="rerun")
    if box.open:
        with box:
            _count(now)
            with st.container(height=min(320, 40 + 44 * (of + 1)), gap="xxsmall"):
                _entries(now)


def show(now: Studio) -> None:
    """Draw the list as it is, where there is one."""
    if not _num_steps(now):
        st.caption("Nothing was changed by hand in this placement.", help=HELP)
        return
    _count(now)
    with st.container(gap="xxsmall"):
        _entries(now)


def _num_steps(now: Studio) -> int:
    return len(now.history.done) + len(now.history.undone)


def _count(now: Studio) -> None:
    num_steps = _num_steps(now)
    verb = "is" if num_steps == 1 else "are"
    made = f"{len(now.history.done)} of {formatting.counted(num_steps, 'step')} {verb} made."
    st.caption(made, help=HELP)


def _entries(now: Studio) -> None:
    """Newest first, from a little after the step that was made last down to the start."""
    history = now.history
    done = len(history.done)
    steps = [*history.done, *reversed(history.undone)]
    last = min(len(steps), done + MOST_SHOWN // 2)
    # What was on the screen before an opening, or what was opened then, has steps of its own.
    fewest, most = history.reach
    oldest, last = max(0, fewest - 1), min(last, most + 1)
    first = max(oldest, last - MOST_SHOWN)
    locked = not choices.may_write()
    for number in range(last, first, -1):
        label = glossary.plain(f"{number}: {editing.label(now, steps[number - 1])}", 70)
        _entry(
            number, label if number <= done else f":gray[{label} (undone)]", number == done, locked
        )
    if first > oldest:
        st.caption(f"and {formatting.counted(first, 'step')} before them")
    else:
        base = f"{first}: {'what was on the screen before' if fewest else 'as it was made'}"
        _entry(first, base, done == first, locked)


def _entry(number: int, label: str, is_now: bool, locked: bool) -> None:
    st.button(
        f"**{label}**" if is_now else label,
        key=f"change-{number}",
        icon=":material/arrow_right:" if is_now else None,
        type="tertiary",
        disabled=locked,
        on_click=edit,
        args=(partial(editing.go_to, num_done=number),),
    )
