"""What was handed in: graded on the spot, as a table and as a histogram for the lecture hall."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from pages.ui.panels import charts
from pages.ui.session import choices
from pages.ui.shell import glossary
from placement.api import lessons
from placement.core import formatting
from placement.core.objective import Objective
from placement.lessons.grading import Grade, csv_of, grade_contents
from placement.lessons.lesson import Lesson
from studio import lesson as begun
from studio.project.store import Project

MOST_FILES = 1_000
LAST = "grades-last"
ABOUT = (
    "Drop the files that were handed in. Every placement is simulated anew; what does not fit the"
    " lesson is a row with the reason. Nothing of it is written. On the command line: placement"
    " grade."
)


@dataclass(frozen=True)
class Graded:
    """What some files are worth, and what their values are held against."""

    grades: tuple[Grade, ...]
    references: Mapping[str, float]


def show(homes: Mapping[str, Project]) -> None:
    """The lesson's menu and the field for files; below them what they are worth.

    In the menu stand the lessons that are here, by their names, and others that were begun, by
    their hashes.
    """
    box = st.expander("Grade what was handed in", key="grades-open", on_change="rerun")
    if not box.open:
        return
    with box:
        st.caption(ABOUT)
        titles = _titles(homes)
        named = st.selectbox(
            "Lesson", list(titles), format_func=lambda n: titles.get(n, n), key="grades-lesson"
        )
        files = st.file_uploader(
            "Answer files", type=["json"], accept_multiple_files=True, key="grades-files"
        )
        if files and named:
            try:
                lesson, folder = _lesson(named, homes)
                found = _graded(lesson, folder, files[:MOST_FILES])
            except (ValueError, OSError) as error:
                st.error(glossary.plain(str(error)))
                return
            if len(files) > MOST_FILES:
                left_out = formatting.counted(len(files) - MOST_FILES, "file")
                st.warning(f"Graded are the first {MOST_FILES}; {left_out} left out.")
            _offer_another(named, found, titles)
            _histogram(lesson, found)
            _table(lesson, found.grades)


def _titles(homes: Mapping[str, Project]) -> dict[str, str]:
    """Of each lesson that can be chosen what the menu calls it."""
    titles, here = dict[str, str](), set[str]()
    for name in lessons.lessons():
        # One that cannot be read is told in the list.
        with suppress(ValueError, OSError):
            here.add(lessons.lesson(name).hash)
            titles[name] = name
    for hash_, home in homes.items():
        own = begun.readable(home)
        if own is not None and hash_ not in here:
            titles[hash_] = f"{own.header.title} ({hash_[:6]})"
    return titles


def _lesson(named: str, homes: Mapping[str, Project]) -> tuple[Lesson, Path]:
    """A lesson of the menu, and where the problem lies that it may name."""
    own = begun.of(homes[named]) if named in homes else None
    if own is None:
        return lessons.lesson(named), lessons.FOLDER
    return own, homes[named].folder / "model"


def _graded(lesson: Lesson, folder: Path, files: Sequence[UploadedFile]) -> Graded:
    """Simulated once: as long as lesson and files stay, the session remembers what came of it."""
    given = [(file.name, file.getvalue()) for file in files]
    digests = tuple((name, sha256(content).hexdigest()) for name, content in given)
    asked = (lesson.hash, digests)
    last = choices.kept(LAST, None)
    if last is None or last[0] != asked:
        posed = lessons.posed(lesson, folder)
        references = {} if lesson.header.live else lessons.references(lesson, posed)
        last = (asked, Graded(grade_contents(lesson, posed, given), references))
        choices.keep(LAST, last)
    found: Graded = last[1]
    return found


def _offer_another(named: str, found: Graded, titles: Mapping[str, str]) -> None:
    """Where all files answer another lesson of the menu, say which, and offer to grade it."""
    named_of = {_hash_of(name): name for name in titles}
    answered = {named_of.get(grade.lesson, "") for grade in found.grades}
    other = answered.pop() if len(answered) == 1 else ""
    if other and other != named:
        num_files = formatting.counted(len(found.grades), "file")
        answers = "answers" if len(found.grades) == 1 else "answer"
        st.info(f"{num_files} {answers} another lesson: {glossary.plain(titles[other])}.")
        st.button(
            "Grade that lesson",
            key="grades-other",
            on_click=choices.put,
            args=("grades-lesson", other),
        )


def _hash_of(named: str) -> str:
    """The hash of a lesson of the menu: those that are here stand there by their names."""
    here = lessons.readable().get(named)
    return named if here is None else here.hash


def _histogram(lesson: Lesson, found: Graded) -> None:
    marks = [grade.mark for grade in found.grades if grade.mark is not None]
    if not marks:
        return
    said = f"{formatting.counted(len(marks), 'answer')}, {sum(m.is_solved for m in marks)} solved"
    values = [grade.value for grade in found.grades if grade.value is not None]
    if not values:
        st.markdown(said)
        return
    unit = next(grade.unit for grade in found.grades if grade.mark)
    per = "between samples" if lesson.header.objective is Objective.THROUGHPUT else "per step"
    st.markdown(f"{said}; best {min(values):.4g} {unit} {per}")
    figure = charts.histogram(values, found.references, unit, f"{unit} {per}")
    st.plotly_chart(figure, key="grades-histogram", config=charts.CONFIG)


def _table(lesson: Lesson, grades: tuple[Grade, ...]) -> None:
    tasks = [f"Task {task.number}" for task in lesson.tasks]
    st.dataframe(
        [
            {
                "File": grade.file,
                "Name": grade.name,
                "Points": grade.mark.points if grade.mark else None,
                "For hints": -grade.mark.hint_points if grade.mark else None,
                "Stars": grade.mark.stars if grade.mark else None,
                **dict(zip(tasks, grade.passed or [None] * len(tasks), strict=True)),
                "Value": grade.value,
                "Same as": grade.same_as,
                "Refused because": grade.error,
            }
            for grade in grades
        ],
        hide_index=True,
        placeholder="–",
    )
    st.download_button(
        "Download as CSV",
        data=csv_of(lesson, grades),
        file_name="grades.csv",
        mime="text/csv",
        key="grades-csv",
        on_click="ignore",
    )
