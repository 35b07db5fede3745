"""Texts of JSON from elsewhere: what can be shown on a page, which is what types cannot say."""

from collections.abc import Mapping

from placement.core.decoding import shown

LONGEST_TEXT = 4_000
MOST_NAMES = 1_000


def label(value: str) -> str:
    """A name that is shown: cut where it is too long, with blanks for what cannot be shown."""
    return "".join(c if c.isprintable() else " " for c in value[:200])


def require_text(value: str, longest: int = LONGEST_TEXT) -> None:
    if len(value) > longest or not value.isprintable():
        raise ValueError(f"{shown(value)} in it is not a text of at most {longest} letters.")


def require_texts(content: object) -> None:
    """ValueError where a text in a JSON value, a name too, cannot be shown on a page."""
    waiting: list[object] = [content]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            require_text(value)
        elif isinstance(value, Mapping):
            waiting += [*value, *value.values()]
        elif isinstance(value, list | tuple):
            waiting += value
