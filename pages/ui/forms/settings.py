"""Settings of a placer as a form: one widget per field, from what the placer says about itself."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from pages.ui.session import choices


def settings_form(
    placer: str, settings: Mapping[str, Mapping[str, Any]], *, disabled: bool = False
) -> dict[str, Any]:
    """Widgets for all settings; the values that differ from the defaults are returned."""
    if not settings:
        st.caption("This method has no settings.")
    changed = {}
    for name, about in settings.items():
        value = _widget(_key(placer, name), name, about, disabled)
        if value is not None and value != about["default"]:
            changed[name] = value
    return changed


def typed_settings(placer: str, settings: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What the form holds at this moment, whether or not the page has been drawn with it."""
    held = {
        name: choices.typed(_key(placer, name), about["default"])
        for name, about in settings.items()
    }
    return {
        name: value
        for name, value in held.items()
        if value is not None and value != settings[name]["default"]
    }


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


def _widget(key: str, name: str, about: Mapping[str, Any], disabled: bool) -> Any:
    label, help_text, default = label_of(name), about.get("help") or None, about["default"]
    common: dict[str, Any] = {"key": key, "help": help_text, "disabled": disabled}
    if about.get("choices"):
        offered = list(about["choices"])
        return st.selectbox(label, offered, index=offered.index(default), **common)
    if about["type"] == "bool":
        return st.toggle(label, value=bool(default), **common)
    if about["type"] in ("int", "float"):
        common |= {"min_value": about.get("low"), "max_value": about.get("high"), "value": default}
        how: dict[str, Any] = {"step": 1} if about["type"] == "int" else {"format": "%g"}
        return st.number_input(label, **how, **common)
    return st.text_input(label, value="" if default is None else str(default), **common)
