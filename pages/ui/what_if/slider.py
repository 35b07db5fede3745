"""A what-if slider: its key, which tells projects and machines apart, and how it is drawn."""

import re
from collections.abc import Callable, Sequence
from hashlib import sha256

import streamlit as st

from pages.ui.session import choices
from pages.ui.shell import glossary
from pages.ui.what_if import held_slider
from placement.core.verb_options import Option
from studio.snapshot import Studio

# Labels that need no escaping; a reader's software would read the backslashes aloud.
HARMLESS = re.compile(r"[A-Za-z0-9 ]+(:\d+)?( (to|→) [A-Za-z0-9 ]+(:\d+)?)?")


def name(now: Studio) -> str:
    """What the sliders' state of a project and its devices is stored under."""
    return f"what-if-{now.shelf.folder.name}"


def round_of(now: Studio) -> int:
    """How often all sliders were set at once."""
    kept = choices.remembered(name(now), {})
    return int(kept.get("round", 0)) if isinstance(kept, dict) else 0


def key(now: Studio, what: str) -> str:
    """A slider's key; without the device's name, of which a browser's class would lose signs."""
    number = sha256(what.encode()).hexdigest()[:12]
    return choices.own(f"{name(now)}-{round_of(now)}-{number}")


def value(now: Studio, what: str, kept: float, *, settled: bool = False) -> float:
    """Where a slider stands, not only as drawn; with `settled` where it was when last let go."""
    found = (
        choices.typed(key(now, what), kept) if settled else held_slider.value(key(now, what), kept)
    )
    return float(found)


def times(factor: float) -> str:
    return f"×{factor:g}"


def draw(
    now: Studio,
    what: str,
    kept: float,
    options: Sequence[float],
    label: str,
    asked: Option,
    on_change: Callable[[], None],
    shown: Callable[[float], str] = times,
) -> None:
    """A slider over these stops for an option, `kept` being where it starts."""
    held_slider.stops(key(now, what), options)
    stands = choices.typed(key(now, what), kept)
    st.select_slider(
        label if HARMLESS.fullmatch(label) else glossary.plain(label),
        options,
        # Also what a browser shows that had forgotten it, as after another tab.
        value=stands if stands in options else kept,
        key=key(now, what),
        format_func=shown,
        on_change=on_change,
        help=glossary.sentence(asked.help),
    )
