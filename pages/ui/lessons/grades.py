"""What was handed in: graded on the spot, as a table and as a histogram for the lecture hall."""

import streamlit as st

from pages.ui.panels import charts
from placement.api import lessons
from placement.core import formatting
from placement.core.objective import Objective
from placement.lessons.grading import Grade, csv_of, grade_contents
from placement.lessons.lesson import Lesson

MOST_FILES = 1_000
ABOUT = (
    "Drop the files that were handed in. Every placement is simulated anew; what does not fit the"
    " lesson is a row with the reason. Nothing is kept. On the command line: placement grade."
)


def show() -> None:
    """The lesson's menu and the field for files; below them what they are worth."""
    box = st.expander("Grade what was handed in", key="grades-open", on_change="rerun")
    if not box.open:
        return
    with box:
        st.caption(ABOUT)
        name = st.selectbox("Lesson", lessons.lessons(), key="grades-lesson")
        files = st.file_uploader(
            "Answer files", type=["json"], accept_multiple_files=True, key="grades-files"
        )
        if files:
            lesson = lessons.lesson(name)
            posed = lessons.posed(lesson)
            given = ((file.name, file.getvalue()) for file in files[:MOST_FILES])
            found = grade_contents(lesson, posed, given)
            _histogram(lesson, found, lessons.references(lesson, posed))
            _table(lesson, found)


def _histogram(lesson: Lesson, grades: tuple[Grade, ...], references: dict[str, float]) -> None:
    values = [grade.value for grade in grades if grade.value is not None]
    if not values:
        return
    unit = next(grade.unit for grade in grades if grade.mark)
    per = "between samples" if lesson.header.objective is Objective.THROUGHPUT else "per step"
    solved = sum(bool(grade.mark and grade.mark.is_solved) for grade in grades)
    st.markdown(
        f"{formatting.counted(len(values), 'answer')}, {solved} solved;"
        f" best {min(values):.4g} {unit} {per}"
    )
    figure = charts.histogram(values, references, unit, f"{unit} {per}")
    st.plotly_chart(figure, key="grades-histogram", config=charts.CONFIG)


def _table(lesson: Lesson, grades: tuple[Grade, ...]) -> None:
    st.dataframe(
        [
            {
                "File": grade.file,
                "Name": grade.name,
                "Points": grade.mark.points if grade.mark else None,
                "Stars": grade.mark.stars if grade.mark else None,
                "Value": grade.value,
                "Same as": grade.same_as,
                "Refused because": grade.error,
            }
            for grade in grades
        ],
        hide_index=True,
    )
    st.download_button(
        "Download as CSV",
        data=csv_of(lesson, grades),
        file_name="grades.csv",
        mime="text/csv",
        key="grades-csv",
        on_click="ignore",
    )
