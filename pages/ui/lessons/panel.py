"""The lesson beside the work: its text with tasks, hints, what is right so far, and the hand-in.

It is a part of its own that is drawn anew with every edit, so a check turns green the moment its
placement does.
"""

import re

import streamlit as st

from pages.ui.lessons import method_steps, opening
from pages.ui.session import choices
from pages.ui.session.current import studio
from pages.ui.shell import glossary
from pages.ui.shell.messages import plain_errors
from placement.api import lessons as catalogue
from placement.core import formatting
from placement.lessons.answer import LONGEST_NAME, MOST_REPLIED, Given
from placement.lessons.judging import Mark, Verdict, ops_of
from placement.lessons.lesson import (
    QUESTIONS,
    ChoiceCheck,
    Hint,
    NumberCheck,
    OrderCheck,
    StepCheck,
    Task,
    Text,
)
from studio import lesson as lessons
from studio.lesson import ANSWERS, HINTS, NAME, Work

LONGEST_ORDER = 10_000


@st.fragment(key="lesson")
@plain_errors()
def show() -> None:
    """Draw it where the project has a lesson."""
    now = studio()
    done = lessons.work(now)
    if done is None:
        return
    mark = lessons.mark(now, done)
    with st.container(key="lesson-panel", border=True, gap="xsmall"):
        _head(done, mark)
        is_met = False
        for part in done.lesson.parts:
            match part:
                case Text():
                    st.markdown(part.markdown)
                case Task():
                    verdict = mark.verdicts[part.number - 1]
                    is_met = verdict.passed and not _may_shine(part, verdict)
                    _task(part, done, verdict)
                case Hint():
                    _hint(part, part.number in done.answer.hints, is_met)
        _end(done, mark)


def _head(done: Work, mark: Mark) -> None:
    """What it is called, and how far it is: in sight however far down its text is read."""
    stars = " ★" * mark.stars
    minus = f", {mark.hint_points} for hints" if mark.hint_points else ""
    points = f"{mark.points} of {formatting.counted(mark.of, 'point')}{stars}{minus}"
    open_tasks = [str(verdict.number) for verdict in mark.verdicts if not verdict.passed]
    with st.container(key="lesson-head", gap="xxsmall"):
        st.subheader(glossary.plain(done.lesson.header.title), anchor=False)
        if open_tasks:
            which = "task" if len(open_tasks) == 1 else "tasks"
            st.caption(f"{points}; open: {which} {', '.join(open_tasks)}")
        else:
            st.markdown(f":green[:material/check_circle: solved, {points}]")


def _task(task: Task, done: Work, verdict: Verdict) -> None:
    check, given = task.check, done.answer.answers.get(str(task.number))
    with st.container(key=f"task-{task.number}", border=True, gap="xxsmall"):
        sign = ":green[:material/check_circle:]" if verdict.passed else ":material/pending:"
        st.markdown(f"{sign} **{task.number}. {glossary.plain(check.ask)}**")
        # Above the field: below it, it may be out of sight.
        if not isinstance(check, QUESTIONS) or given is not None:
            colour = "green" if verdict.passed else "orange"
            star = _about_star(check, verdict) if isinstance(check, StepCheck) else ""
            st.markdown(f":{colour}[{glossary.plain(verdict.feedback)}]{star}")
        match check:
            case ChoiceCheck():
                _choice(task, check, given)
            case NumberCheck():
                _number(task, check, given)
            case OrderCheck():
                _order(task, given)
            case _:
                pass


def _may_shine(task: Task, verdict: Verdict) -> bool:
    """Whether there is a star to be had yet."""
    check = task.check
    return isinstance(check, StepCheck) and check.star is not None and not verdict.star


def _about_star(check: StepCheck, verdict: Verdict) -> str:
    if check.star is None:
        return ""
    return " ★" if verdict.star else f"; a star for {check.star:g}" * verdict.passed


def _key(task: Task) -> str:
    return choices.own(f"task-{task.number}")


def _choice(task: Task, check: ChoiceCheck, given: Given | None) -> None:
    st.radio(
        "Answer",
        check.choices,
        index=check.choices.index(given) if given in check.choices else None,
        format_func=glossary.plain,
        key=_key(task),
        label_visibility="collapsed",
        on_change=_answer,
        args=(task.number, _key(task)),
        disabled=not choices.may_write(),
    )


def _number(task: Task, check: NumberCheck, given: Given | None) -> None:
    st.number_input(
        f"Answer in {glossary.plain(check.unit)}" if check.unit else "Answer",
        value=float(given) if isinstance(given, float | int) else None,
        step=1.0,
        min_value=-MOST_REPLIED,
        max_value=MOST_REPLIED,
        format="%g",
        key=_key(task),
        on_change=_answer,
        args=(task.number, _key(task)),
        disabled=not choices.may_write(),
        placeholder="a number, then Enter",
    )


def _order(task: Task, given: Given | None) -> None:
    st.text_input(
        "Answer: ops, with commas between them",
        value=", ".join(given) if isinstance(given, tuple | list) else "",
        key=_key(task),
        max_chars=LONGEST_ORDER,
        on_change=_answer_order,
        args=(task.number, _key(task)),
        disabled=not choices.may_write(),
        placeholder="n1, n2, ...",
    )


def _hint(hint: Hint, is_taken: bool, is_met: bool) -> None:
    """A hint that was taken, or a button for it, as long as the task before it asks for more."""
    if is_taken:
        st.info(hint.markdown, icon=":material/lightbulb:")
        return
    if is_met:
        return
    cost = formatting.counted(hint.cost, "point") if hint.cost else "nothing"
    st.button(
        f"Hint (costs {cost})",
        key=f"hint-{hint.number}",
        icon=":material/lightbulb:",
        type="tertiary",
        on_click=_take_hint,
        args=(hint.number,),
        disabled=not choices.may_write(),
    )


def _end(done: Work, mark: Mark) -> None:
    """What was to be learnt, once it was; and what to hand in, at any time."""
    if mark.is_solved:
        st.success(done.lesson.insight, icon=":material/school:")
        points = formatting.counted(mark.of, "point")
        st.caption(f"Solved: {mark.points} of {points}{' ★' * mark.stars}. Hand it in, or go on.")
    method_steps.button(done)
    row = st.container(horizontal=True, gap="xsmall", vertical_alignment="bottom")
    row.text_input(
        "Your name",
        value=done.answer.name,
        key=choices.own("lesson-name"),
        max_chars=LONGEST_NAME,
        on_change=choices.remember(NAME, choices.own("lesson-name")),
        placeholder="for who grades it",
    )
    # A click takes the file as it was drawn last, so there is none before the name is in it.
    row.download_button(
        "Hand in",
        data=done.answer.to_text(),
        file_name=file_name(done),
        mime="application/json",
        key="hand-in",
        icon=":material/download:",
        on_click="ignore",
        disabled=not done.answer.name,
        help="A file with your placement and your answers, once your name is there (Enter)."
        " It holds no points: who grades it works them out anew.",
    )
    onward = st.container(horizontal=True, gap="small", vertical_alignment="center")
    following = catalogue.following(done.lesson)
    if following:
        title = glossary.plain(catalogue.lesson(following).header.title)
        onward.button(
            f"Next: {catalogue.lesson_number(following)}. {title}",
            key="next-lesson",
            icon=":material/arrow_forward:",
            type="primary" if mark.is_solved else "secondary",
            on_click=_go_on,
            args=(following,),
        )
    onward.page_link("pages/lessons.py", label="All lessons", icon=":material/school:")


def _go_on(name: str) -> None:
    if opening.go_on(name) is not None:
        # All of the page is about another project now, not this part of it alone.
        st.rerun()


def file_name(done: Work) -> str:
    """The answer's file, called by the lesson and by who made it."""
    words = f"{done.lesson.header.title} {done.answer.name}"
    return f"{re.sub(r'[^A-Za-z0-9]+', '-', words).strip('-').lower() or 'answer'}.answer.json"


def _answer(number: int, key: str) -> None:
    _store(number, choices.typed(key, None))


def _answer_order(number: int, key: str) -> None:
    _store(number, list(ops_of(str(choices.typed(key, "")))) or None)


def _store(number: int, given: object) -> None:
    answers = {**choices.remembered(ANSWERS, {}), str(number): given}
    choices.store(ANSWERS, {n: value for n, value in answers.items() if value is not None})


def _take_hint(number: int) -> None:
    choices.store(HINTS, sorted({*choices.remembered(HINTS, []), number}))
