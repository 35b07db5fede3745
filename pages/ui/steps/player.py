"""The controls of a walk as a Streamlit component: steps, a question, and what the step compares.

It draws text that Python has made and tells by messages where somebody goes and what they answer.
Keys work wherever nothing else takes them: arrows go back and forward, Space plays, digits answer.
"""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import streamlit as st

from pages.ui.session import callbacks, outbox
from pages.ui.session.current import studio
from pages.ui.session.outbox import Count, Message
from pages.ui.steps import walk
from pages.ui.steps.walk import Walk
from placement.core import formatting
from placement.core.decoding import listed
from placement.search.steps import Cell, Column, Table
from studio.snapshot import Studio

ASSETS = Path(__file__).resolve().parents[3] / "assets"
SCRIPTS = ("canvas/outbox.js", "timeline/elements.js", "steps/player.js")
KEY = "steps-player"
NO_FIGURE = "–"


class Go(Message, frozen=True, tag="go"):
    """Show the step with this number."""

    at: Count


class Answer(Message, frozen=True, tag="answer"):
    """The choice with this number answers the question of a step."""

    at: Count
    choice: Count


def draw(now: Studio, shown: Walk, on_told: Callable[[], None]) -> None:
    data = {**_data(now, shown), **outbox.state(KEY)}
    # Streamlit sends `str(data)` without an error where JSON fails; fail here instead.
    json.dumps(data, allow_nan=False)
    _component()(key=KEY, data=data, on_told_change=on_told)


def apply() -> None:
    """Do what was told since the last time."""
    for message in outbox.unread(KEY, (Go, Answer), box="told"):
        with callbacks.uninterrupted():
            now = studio()
            shown = walk.walk(now)
            if shown is not None and isinstance(message, Go):
                walk.go_to(now, shown, message.at)
            elif shown is not None and isinstance(message, Answer):
                walk.answer(now, shown, message.at, message.choice)
            outbox.applied(KEY, message)


def _data(now: Studio, shown: Walk) -> dict[str, object]:
    step, hidden, unit = shown.step, shown.is_hidden, now.problem.unit
    # The first table holds what is asked for, and where an op is asked for all of them do.
    tables = () if shown.asks_for_op else step.tables[1:] if hidden else step.tables
    return {
        "of": f"{shown.method} {now.problem.fingerprint}",
        "at": shown.at,
        "num": len(shown.steps),
        "furthest": shown.furthest,
        "blocked": hidden,
        "lines": list(shown.found.pseudo_code),
        "line": step.line,
        "why": "" if hidden else step.why,
        "question": asked_of(shown),
        "right": f"{shown.num_right} of {len(shown.answers)} right" if shown.answers else "",
        "tables": [_drawn(table, unit) for table in tables],
    }


def asked_of(shown: Walk) -> dict[str, object] | None:
    """The question of the step, with what was answered, and the answer once it may be known."""
    question = shown.step.question
    if question is None or not (shown.predicts or shown.at in shown.answers):
        return None
    answers = () if shown.is_hidden else question.answers
    equal = f"Equally good: {listed(answers)}." if len(answers) > 1 else ""
    return {
        "text": question.text,
        "choices": list(question.choices),
        "given": shown.answers.get(shown.at, -1),
        "right": [question.choices.index(answer) for answer in answers],
        "equal": equal,
    }


def _drawn(table: Table, unit: str) -> dict[str, object]:
    return {
        "title": table.title,
        "columns": [{"name": c.name, "figures": c.kind != "text"} for c in table.columns],
        "rows": [
            [text_of(cell, column, unit) for cell, column in zip(row, table.columns, strict=True)]
            for row in table.rows
        ],
        "marked": list(table.marked),
        "guessed": list(table.guessed),
    }


def text_of(cell: Cell, column: Column, unit: str) -> str:
    """A cell as people read it."""
    if cell is None:
        return NO_FIGURE
    if isinstance(cell, str):
        return cell
    if column.kind == "seconds":
        return formatting.seconds(cell, unit)
    if column.kind == "bytes":
        return formatting.num_bytes(cell)
    return formatting.percent(cell) if column.kind == "share" else f"{cell:.4g}"


@cache
def _component() -> Callable[..., object]:
    folder = ASSETS / "steps"
    html, css = ((folder / f"player.{kind}").read_text("utf-8") for kind in ("html", "css"))
    js = "\n".join((ASSETS / name).read_text("utf-8") for name in SCRIPTS)
    return st.components.v2.component("placement_steps", html=html, css=css, js=js)
