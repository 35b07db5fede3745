"""The list of changes by hand: every state so far is a click away, forth as well as back."""

from functools import partial

import streamlit as st

from pages.ui.session import choices
from pages.ui.session.current import edit
from pages.ui.shell import glossary
from placement.core import formatting
from studio import editing
from studio.project.edits import Edit
from studio.snapshot import Studio

# More are reached by going back to the oldest of these first.
MOST_SHOWN = 60
HELP = (
    "Every step since the placement was made. Click one to go back to how things were right after"
    " it; later steps stay in the list, to be redone, until you change something else."
)


def folded(now: Studio) -> None:
    """Draw the list in a box; its entries are made only while somebody has it open."""
    of = len(_steps(now))
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
    if not _steps(now):
        st.caption("Nothing was changed by hand in this placement.", help=HELP)
        return
    _count(now)
    with st.container(gap="xxsmall"):
        _entries(now)


def _first(now: Studio) -> int:
    """How many steps are of what was on the screen before an opening, and so not listed."""
    return max(0, now.history.reach[0] - 1)


def _steps(now: Studio) -> tuple[Edit, ...]:
    """The steps that are listed, oldest first.

    What was on the screen before an opening, or what was opened then, has steps of its own.
    """
    history = now.history
    return (*history.done, *reversed(history.undone))[_first(now) : history.reach[1] + 1]


def _count(now: Studio) -> None:
    num_steps, num_done = len(_steps(now)), len(now.history.done) - _first(now)
    verb = "is" if num_steps == 1 else "are"
    made = f"{num_done} of {formatting.counted(num_steps, 'step')} {verb} made."
    st.caption(made, help=HELP)


def _entries(now: Studio) -> None:
    """Newest first, from a little after the step that was made last down to the start."""
    steps, start = _steps(now), _first(now)
    done = len(now.history.done) - start
    last = min(len(steps), done + MOST_SHOWN // 2)
    first = max(0, last - MOST_SHOWN)
    for number in range(last, first, -1):
        label = glossary.plain(f"{number}: {editing.label(now, steps[number - 1])}", 70)
        shown = label if number <= done else f":gray[{label} (undone)]"
        _entry(start + number, shown, number == done)
    if first:
        st.caption(f"and {formatting.counted(first, 'step')} before them")
    else:
        was_opened = now.history.reach[0] > 0
        base = "0: what was on the screen before" if was_opened else "0: as it was made"
        _entry(start, base, done == 0)


def _entry(num_done: int, label: str, is_now: bool) -> None:
    st.button(
        f"**{label}**" if is_now else label,
        key=f"change-{num_done}",
        icon=":material/arrow_right:" if is_now else None,
        type="tertiary",
        disabled=not choices.may_write(),
        on_click=edit,
        args=(partial(editing.go_to, num_done=num_done),),
    )
