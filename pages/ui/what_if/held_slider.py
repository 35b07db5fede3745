"""Where a slider stands while it is held: Streamlit itself tells only once it is let go."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from pages.ui.session import choices

SCRIPT = Path(__file__).resolve().parents[3] / "assets" / "slider" / "held.js"
KEY = "held-sliders"


def watch() -> None:
    """Have the page drawn anew while one of its sliders is moved; once on a page is enough."""
    _component()(key=KEY, on_held_change=_ignored)


def stops(key: str, options: Sequence[float]) -> None:
    """Say between which values a slider moves."""
    choices.keep(_name(key), list(options))


def value(key: str, default: float) -> float:
    """Where the slider with this key stands, also while it is held; `default` if never drawn.

    What was told while it was held counts only until Streamlit says another value.
    """
    last: float = choices.typed(key, default)
    told, options = _told().get(_class_of(key)), choices.kept(_name(key), [])
    known = range(len(options))
    if not isinstance(told, list) or len(told) != 2 or not all(at in known for at in told):
        return last
    taken, now = (options[int(at)] for at in told)
    return now if taken == last else last


def _told() -> Mapping[str, object]:
    state = choices.typed(KEY, {})
    found = state.get("held") if isinstance(state, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _name(key: str) -> str:
    return f"stops-{key}"


def _class_of(key: str) -> str:
    """The class that Streamlit makes of a widget's key."""
    return "st-key-" + re.sub(r"[^A-Za-z0-9_-]", "-", key.strip())


def _ignored() -> None:
    """What is drawn next reads where the slider stands."""


@cache
def _component() -> Callable[..., Any]:
    return st.components.v2.component("placement_held_slider", js=SCRIPT.read_text("utf-8"))
