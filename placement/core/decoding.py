"""Values from outside, read into the types that they should have.

A file may hold anything. `decode` gives back what a type says, checked all the way down, or a
ValueError whose sentence begins with the place: "ops[3].times_s[1]: expected a number, got a text".
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

T = TypeVar("T")

LONGEST_SENTENCE = 600
_SHOWN_NAMES = 8
_LONGEST_SHOWN = 80
_PLACE = re.compile(r" - at (?:`key` in )?`(\$.*)`$", re.DOTALL)
_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def decode(
    content: Any, kind: type[T], *, remedy: str = "correct it", only_known: bool = False
) -> T:
    """The content of a JSON value as a `kind`; a ValueError names the place and the remedy.

    Nothing is converted but lists to tuples and whole numbers to numbers, and what a class itself
    refuses is refused at its place. With `only_known` so is a key that no field of a dataclass has:
    in what people write by hand it is a slip, in what other versions wrote it may be passed over.
    """
    import msgspec

    try:
        found = msgspec.convert(content, kind, strict=True)
        unknown = _unknown_key(content, kind) if only_known else None
    except msgspec.ValidationError as error:
        raise ValueError(_sentence(str(error), remedy)) from None
    except RecursionError:
        raise ValueError(f"it is nested too deeply; {remedy}.") from None
    if unknown is not None:
        place, key = unknown
        said = f"object contains unknown field {shown(key)}; {remedy}."
        raise ValueError(f"{place}: {said}" if place else said)
    return found


def listed(names: Iterable[object]) -> str:
    """Names for a sentence; of many only the first, for a file may hold any number of them."""
    every = [text if (text := str(name)).isprintable() else repr(text) for name in names]
    first = ", ".join(shortened(name, _LONGEST_SHOWN) for name in every[:_SHOWN_NAMES])
    return first if len(every) <= _SHOWN_NAMES else f"{first} and {len(every) - _SHOWN_NAMES} more"


def shown(value: object) -> str:
    """A value for a sentence: as it is written in Python, on one line and not too long."""
    return shortened(repr(value), _LONGEST_SHOWN)


def shortened(text: str, longest: int = LONGEST_SENTENCE) -> str:
    """A text without its middle where it is too long to read."""
    if len(text) <= longest:
        return text
    return f"{text[: longest * 2 // 3]} ... {text[-longest // 4 :]}"


def _unknown_key(content: Mapping[str, Any], kind: Any) -> tuple[str, str] | None:
    """Where the first key stands that no field has, and the key; None where all are known."""
    known, rows_of = _fields(kind)
    if not known.issuperset(content):
        return "", next(key for key in content if key not in known)
    for name, row_kind in rows_of.items():
        rows = content.get(name, ())
        of_row, deeper = _fields(row_kind)
        # There may be thousands: where they have no rows of their own, each is only a set of keys.
        if not deeper and all(map(of_row.issuperset, rows)):
            continue
        for i, row in enumerate(rows):
            found = _unknown_key(row, row_kind)
            if found is not None:
                inside, key = found
                return f"{name}[{i}].{inside}".removesuffix("."), key
    return None


@cache
def _fields(kind: Any) -> tuple[frozenset[str], Mapping[str, Any]]:
    """Names of a dataclass's fields, and for those that list dataclasses which one."""
    hints = get_type_hints(kind)
    names = frozenset(field.name for field in fields(kind))
    listed_in: dict[str, Any] = {n: (*get_args(hints[n]), None)[0] for n in sorted(names)}
    return names, {name: row for name, row in listed_in.items() if is_dataclass(row)}


def _sentence(message: str, remedy: str) -> str:
    found = _PLACE.search(message)
    place = found[1].removeprefix("$").removeprefix(".") if found else ""
    said = message[: found.start()] if found else message
    ours = not said.startswith(("Expected ", "Object ", "Invalid ", "Number "))
    if not ours:
        said = re.sub(r"`([^`]*)`", lambda match: _in_words(match[1]), said)
        said = f"{said[0].lower()}{said[1:]}; {remedy}."
    return f"{shortened(place, 200)}: {said}" if place else said


def _in_words(name: str) -> str:
    """The name of a type as people say it, or of a field as it is written."""
    parts = name.split(" | ")
    return " or ".join(_TYPES[p] for p in parts) if all(p in _TYPES for p in parts) else repr(name)
