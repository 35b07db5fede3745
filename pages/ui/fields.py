"""Single values of JSON from elsewhere: taken over where they are what they should be, or refused.

Each function takes a value and what it is called in the sentence of the refusal.
"""

from collections.abc import Callable, Mapping
from typing import Any

from placement.core import typed

LONGEST_TEXT = 4_000
MOST_NAMES = 1_000


def row(value: Any, what: str, *keys: str) -> Mapping[str, Any]:
    """An object that has at least these keys."""
    if not isinstance(value, Mapping):
        raise ValueError(f"its {what} is {shown(value)}, not an object.")
    lacking = next((key for key in keys if key not in value), None)
    if lacking is not None:
        raise ValueError(f"its {what} says nothing of {lacking}.")
    return value


def rows(value: Any, what: str, most: int, *keys: str) -> list[Mapping[str, Any]]:
    """A list of so many objects at most, each with at least these keys."""
    if not isinstance(value, list) or len(value) > most:
        raise ValueError(f"its {what} are no list of at most {most}.")
    return [row(one, what, *keys) for one in value]


def label(value: Any, what: str) -> str:
    """A name that is shown: cut where it is too long, with blanks for what cannot be shown."""
    if not isinstance(value, str):
        raise ValueError(f"its {what} is {shown(value)}, not a text.")
    return "".join(c if c.isprintable() else " " for c in value[:200])


def text(value: Any, what: str, longest: int) -> str:
    if not isinstance(value, str) or len(value) > longest or not value.isprintable():
        raise ValueError(f"its {what} is {shown(value)}, not a text of at most {longest} letters.")
    return value


def number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        raise ValueError(f"its {what} is {shown(value)}, not a number.")
    return value


def require_texts(content: Any) -> None:
    """ValueError where a text in a JSON value, a name too, cannot be shown on a page."""
    waiting = [content]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            text(value, "name or text", LONGEST_TEXT)
        elif isinstance(value, Mapping):
            waiting += [*value, *value.values()]
        elif isinstance(value, list):
            waiting += value


def is_whole(value: Any, most: int) -> bool:
    return type(value) is int and 1 <= value <= most


def shown(value: Any) -> str:
    return typed.shown(value)
