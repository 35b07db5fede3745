"""The dock below the graph: what a placement does, in tabs; only the open one is computed."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext

import streamlit as st

from pages.ui.canvas import gestures
from pages.ui.compare import board, differences
from pages.ui.desk import desk
from pages.ui.forms import run_form
from pages.ui.lessons import exercise
from pages.ui.panels import best_moves, finals, history, op_table, side_by_side, yardstick
from pages.ui.run import results, stream_results, train_form
from pages.ui.session import choices, fragments
from pages.ui.session.current import studio
from pages.ui.shell import glossary
from pages.ui.shell.messages import plain_errors
from pages.ui.steps import tab as steps
from pages.ui.steps import walk
from pages.ui.steps.walk import DOCK, TAB
from pages.ui.timeline import critical_path, memory, micro_batches, timelines
from pages.ui.what_if import ask_method, comparison
from placement.api.results.running import StreamResult
from placement.core import formatting
from studio import lesson
from studio.jobs import jobs
from studio.snapshot import Studio

KEY, STUDIO = DOCK, "pages/studio.py"
TIMELINE, BOARD, RUN, WHAT_IF = "Timeline", "Board", "Run", "What if"
MEMORY, TABLE, HINTS, HISTORY = "Memory", "Table", "Hints", "History"
EXERCISE = "Exercise"


@st.fragment(key="dock")
def show() -> None:
    """Draw the tabs, and what the open one holds."""
    if walk.is_overtaken(studio()):
        walk.end()
        walk.leave(TIMELINE)
    choices.preset(walk.tabs(), _opened())
    with desk.part("dock"):
        contents = _contents(studio())
        tabs = st.tabs(list(contents), key=walk.tabs(), on_change=_remember, height="stretch")
        for content, tab in zip(contents.values(), tabs, strict=True):
            if tab.open:
                with tab, _in_its_size(), plain_errors():
                    content(studio())


def _in_its_size() -> AbstractContextManager[object]:
    """A container of its own for the presenter, as tables measure their letters only once.

    With it Streamlit begins everything anew where the view begins or ends.
    """
    return st.container(key="dock-presented") if choices.presenting() else nullcontext()


def open_tab(name: str) -> None:
    """Have a tab open when the page is drawn next; from a callback, or before it is drawn."""
    walk.end()
    walk.leave(name)
    desk.unfold()


def lead_to(name: str) -> None:
    """Go to the Studio page with this tab open: for the addresses that such things had before."""
    # Whoever shows a project lets go of what was kept for another one, or for none.
    choices.project()
    open_tab(name)
    choices.lead_to(STUDIO)


def _opened() -> str:
    kept = str(choices.kept(KEY, choices.remembered(KEY, TIMELINE)))
    return kept if kept in _contents(studio()) else TIMELINE


def _remember() -> None:
    was_walking = _opened() == TAB
    walk.end()
    for remember in (choices.keep, choices.store):
        remember(KEY, choices.typed(walk.tabs(), TIMELINE))
    # The picture shows the step while that tab is open, and the placement again afterwards.
    if was_walking or _opened() == TAB:
        fragments.only("canvas", "side", "dock", "present")


def _timeline(now: Studio) -> None:
    timelines.show()
    run = timelines.chosen(now)
    critical_path.show(now, run)
    micro_batches.show(now)


def _board(now: Studio) -> None:
    finals.show(now)
    rows = board.show(now)
    st.subheader("Side by side")
    sides = side_by_side.chosen(now, rows)
    if len(sides) < 2:
        st.info("Pick two placements or more; a method or the button above makes some.")
    if sides:
        side_by_side.table(now, sides)
        side_by_side.timelines(sides)
    pair = side_by_side.pair(now, sides)
    if pair is not None:
        differences.show(now, *pair)


def _run(now: Studio) -> None:
    (train_form.show if train_form.is_wanted(now) else _measure)(now)


def _measure(now: Studio) -> None:
    """Repeat one step and compare it with what was predicted.

    What the last run found stands above the fields that it was started by, for the dock shows few
    lines at once; while one goes on, or where it failed, that comes first.
    """
    latest = jobs.latest(now.project.folder, "run")
    places = st.container(), st.container()
    found, form = places if latest is not None and latest.status == "done" else places[::-1]
    with form:
        run_form.controls(now)
    with found:
        _found(now)


def _found(now: Studio) -> None:
    """What the run on the screen measured, or that there is none yet."""
    shown = run_form.chosen_run(now)
    if shown is None and not jobs.is_live(now.project.folder, "run"):
        goal, can_run = now.settings.objective, not run_form.why_not(now)
        yardstick.remember(now, now.named.name, now.placement, now.simulated.value)
        st.info(
            f"No run yet. The placement {glossary.plain(now.named.name)} is predicted to take"
            f" {formatting.seconds(now.simulated.value, now.problem.unit)} per {goal.per}"
            f" ({now.costs})" + ("; press Run above to measure it." if can_run else "."),
            icon=":material/play_circle:" if can_run else ":material/info:",
        )
    elif shown is not None:
        streams = isinstance(shown.result, StreamResult)
        (stream_results if streams else results).show(now, shown)


def _what_if(now: Studio) -> None:
    comparison.show()
    ask_method.show(now)


def _memory(now: Studio) -> None:
    memory.show(now, timelines.chosen(now))


def _table(now: Studio) -> None:
    op_table.show(gestures.view_of)


def _contents(now: Studio) -> dict[str, Callable[[Studio], None]]:
    """The tabs, but for those that a lesson leaves out; its method is followed once it is over."""
    left_out = {tab for what, tabs in LEFT_OUT.items() if lesson.hides(now, what) for tab in tabs}
    if TAB in left_out and lesson.is_over(now):
        left_out.remove(TAB)
    return {name: content for name, content in CONTENTS.items() if name not in left_out}


# By what a lesson hides.
LEFT_OUT = {"methods": (BOARD, WHAT_IF, TAB, EXERCISE), "hints": (HINTS,)}
CONTENTS: Mapping[str, Callable[[Studio], None]] = {
    TIMELINE: _timeline,
    BOARD: _board,
    RUN: _run,
    WHAT_IF: _what_if,
    MEMORY: _memory,
    TABLE: _table,
    TAB: steps.show,
    HINTS: best_moves.show,
    HISTORY: history.show,
    EXERCISE: exercise.show,
}
