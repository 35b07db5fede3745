"""Settings of a placer as a form: one widget per field, from what the placer says about itself."""

from collections.abc import Callable, Mapping

import streamlit as st

from pages.ui.session import choices
from studio.jobs.methods import Setting, Value

# The largest whole number that a browser keeps exact.
MOST = 2**53 - 1


def settings_form(placer: str, settings: Mapping[str, Setting], *, disabled: bool = False) -> None:
    """Widgets for all settings but those that name policies (see `policy_fields.py`)."""
    if not settings:
        st.caption("This method has no settings.")
    for name, about in _without_policies(settings).items():
        _widget(_key(placer, name), label_of(name), about, disabled)


def typed_settings(placer: str, settings: Mapping[str, Setting]) -> dict[str, Value]:
    """What differs from the defaults in the form at this moment, drawn with it or not."""
    held = {
        name: choices.typed(_key(placer, name), about.default)
        for name, about in _without_policies(settings).items()
    }
    return {
        name: value
        for name, value in held.items()
        if value is not None and value != settings[name].default
    }


def _without_policies(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    return {name: about for name, about in settings.items() if not about.policy}


def _key(placer: str, name: str) -> str:
    return choices.own(f"set-{placer}-{name}")


def label_of(name: str) -> str:
    """A field's name as words, with its unit in brackets."""
    for ending, unit in (("_bytes_per_s", "bytes/s"), ("_bytes", "bytes"), ("_s", "seconds")):
        if name.endswith(ending):
            return f"{_words(name.removesuffix(ending))} ({unit})"
    return _words(name)


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _widget(key: str, label: str, about: Setting, off: bool) -> None:
    default, told = about.default, about.help or None
    if about.choices:
        index = about.choices.index(default)
        st.selectbox(
            label,
            about.choices,
            index=index,
            key=key,
            format_func=lambda choice: "nothing" if choice == "" else choice,
            help=told,
            disabled=off,
        )
    elif about.type == "bool":
        st.toggle(label, value=bool(default), key=key, help=told, disabled=off)
    elif about.type in ("int", "float"):
        # Its types tell whole numbers from others, which a form learns only when it is drawn.
        ask: Callable[..., object] = st.number_input
        low, high, first = (_number(about.type, x) for x in (about.low, about.high, default))
        ask(
            label,
            min_value=low,
            max_value=high,
            value=first,
            step=1 if about.type == "int" else None,
            format="%g" if about.type == "float" else None,
            key=key,
            help=told,
            disabled=off,
        )
    else:
        value = "" if default is None else str(default)
        st.text_input(label, value=value, key=key, help=told, disabled=off)


def _number(kind: str, value: object) -> float | None:
    """A number as a browser knows it: of one type with its limits, and no larger than is exact."""
    if not isinstance(value, int | float):
        return None
    within = max(-MOST, min(value, MOST))
    return int(within) if kind == "int" else float(within)
