"""The list of lessons: those that are here, and a file of one's own."""

from collections.abc import Mapping
from pathlib import Path

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from pages.ui.lessons import grades, opening
from pages.ui.session import choices, saving
from pages.ui.session.current import snapshot
from pages.ui.shell import glossary
from placement.api import lessons
from placement.core import formatting
from placement.files import named
from studio import lesson as begun
from studio.project.store import Project
from studio.snapshot import Studio

STUDIO = "pages/studio.py"
# Whether a lesson was opened since the page was drawn.
TAKEN = "lesson-taken"
ABOUT = (
    "A lesson poses a small problem and asks you to solve it with the tools of the studio. What is"
    " asked is checked while you work. Each lesson has a project of its own: nothing else changes."
)
OWN = (
    "A lesson is a Markdown file; docs/teaching.md says how to write one. Nothing in it is"
    " executed. A problem that it names is looked for beside it, or among those of the studio."
)


def show(now: Studio) -> None:
    """Draw the list, and the field for a file; or go to the lesson that was just opened."""
    if choices.kept(TAKEN, False):
        choices.keep(TAKEN, False)
        choices.lead_to(STUDIO)
    st.subheader("Lessons", help=ABOUT)
    _own()
    homes = begun.homes()
    for name in lessons.lessons():
        _row(name, homes)
    grades.show(homes)


def _row(name: str, homes: Mapping[str, Project]) -> None:
    try:
        lesson = lessons.lesson(name)
    except (ValueError, OSError) as error:
        # One broken file is a row of its own; the others stay.
        st.warning(glossary.plain(f"{lessons.lesson_number(name)}. {error}"))
        return
    header, number = lesson.header, lessons.lesson_number(name)
    home = homes.get(lesson.hash)
    box = st.container(border=True, key=f"lesson-{name}")
    about, right = box.columns([0.72, 0.28], vertical_alignment="center")
    methods = f"  \n:small[Method: {glossary.plain(', '.join(header.methods))}]"
    state, trouble = _state(home)
    about.markdown(
        f"**{number}. {glossary.plain(header.title)}** {state}  \n"
        f"{glossary.plain(header.about)}{methods if header.methods else ''}",
        help=glossary.plain(trouble) or None,
    )
    row = right.container(horizontal=True, gap="xsmall", horizontal_alignment="right")
    path = lessons.path_of(name)
    if home is None:
        row.button("Begin", key=f"begin-{name}", type="primary", on_click=_begin, args=(path,))
        return
    row.button("Go on", key=f"resume-{name}", type="primary", on_click=_enter, args=(home,))
    row.button("Begin anew", key=f"anew-{name}", on_click=_begin, args=(path,))


def _state(home: Project | None) -> tuple[str, str]:
    """How far a lesson has got, and why nobody knows where that is so."""
    if home is None:
        return "", ""
    try:
        now = snapshot(home)
        done = begun.work(now)
        assert done is not None
        mark = begun.mark(now, done)
    except begun.OtherProblem as error:
        return ":orange[changed]", str(error)
    except (ValueError, OSError) as error:
        return "", str(error)
    stars = " ★" * mark.stars
    points = f"{mark.points} of {formatting.counted(mark.of, 'point')}{stars}"
    return f":green[solved, {points}]" if mark.is_solved else f":orange[{points}]", ""


def _own() -> None:
    with st.popover("A lesson of your own", icon=":material/upload:", key="own-lesson"):
        st.caption(OWN)
        given = st.file_uploader("Lesson file", type=["md"], key="lesson-upload", max_upload_size=1)
        key = choices.own("lesson-path")
        st.text_input("Path on this computer", key=key, placeholder="/home/me/lesson.md")
        st.button("Open the path", on_click=_begin_typed, args=(key,))
    saving.upload(given, "lesson", _take)


def _take(upload: UploadedFile) -> None:
    _taken(opening.open_content(upload.getvalue(), upload.name, lessons.FOLDER))


def _begin_typed(key: str) -> None:
    typed = str(choices.typed(key, "")).strip().strip("'\"")
    if typed:
        _begin(named.path_of(typed))


def _begin(path: Path) -> None:
    _taken(opening.begin(path))


def _enter(project: Project) -> None:
    choices.show_project(project)
    _taken(project)


def _taken(project: Project | None) -> None:
    """Leave for the Studio page, where the lesson's project is open by now."""
    if project is not None:
        choices.keep(TAKEN, True)
