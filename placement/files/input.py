"""Files that a person names: checked before they are opened."""

import json
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from placement.core.decoding import shortened

T = TypeVar("T")

MAX_JSON_BYTES = 512 * 2**20
# What Python reads of a whole number, lest it take for ever.
_MOST_DIGITS = 4300
# Half of a character outside the first plane, which no text can be written with.
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def regular_file(path: Path) -> Path:
    """The path itself, once it is known to be a non-empty regular file; ValueError otherwise.

    Devices and pipes are refused because reading them may never end.
    """
    shown = repr(str(path)[:200])
    try:
        status = os.stat(path)
    except FileNotFoundError:
        raise ValueError(f"There is no file {shown}; check the path.") from None
    except OSError as error:
        raise ValueError(f"The file {shown} cannot be opened: {error.strerror}.") from None
    except ValueError:
        raise ValueError(f"{shown} is not a path; remove the NUL character.") from None
    if stat.S_ISDIR(status.st_mode):
        raise ValueError(f"{shown} is a folder; name a file inside it.")
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{shown} is not a regular file; copy its content into one.")
    if status.st_size == 0:
        raise ValueError(f"The file {path.name[:200]!r} is empty; export or download it again.")
    return path


def read_json(path: Path, *, lines: bool = False) -> Any:
    """The JSON value in a file; ValueError names the file and what is wrong with it.

    Of a file with one value per line, where that is allowed, the last.
    """
    size = regular_file(path).stat().st_size
    if size > MAX_JSON_BYTES:
        raise ValueError(
            f"{path.name[:200]!r} has {size} bytes, more than the {MAX_JSON_BYTES} that a JSON file"
            " may have; split it."
        )
    content = path.read_bytes()
    try:
        return parse_json(content, path.name)
    except ValueError:
        if not lines:
            raise
        return parse_json(content.splitlines()[-1], path.name)


def read_value(path: Path, what: str, parse: Callable[[Any], T], *, lines: bool = False) -> T:
    """What `parse` makes of the JSON in a file of this kind; its refusals are given both names."""
    content = read_json(path, lines=lines)
    try:
        return parse(content)
    except ValueError as error:
        name = shortened(repr(path.name), 200)
        raise ValueError(shortened(f"The {what} {name} cannot be used: {error}")) from None


def parse_json(content: bytes | str, name: str) -> Any:
    """The JSON value in a text that is called `name`."""
    try:
        return json_value(content)
    except ValueError as error:
        shown = repr(name[:200])
        raise ValueError(f"The file {shown} cannot be read: {error}") from None


def json_value(content: bytes | str) -> Any:
    """The JSON value in a text; the ValueError leaves it to the caller to name the file."""
    try:
        value = json.loads(content)
        if _SURROGATE.search(content if isinstance(content, bytes) else content.encode()):
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not valid JSON ({error}); write it again.") from None
    except UnicodeError:
        raise ValueError("it has text that is not Unicode; write it again.") from None
    except RecursionError:
        raise ValueError("it is nested too deeply; flatten it.") from None
    except ValueError:
        raise ValueError(
            f"it has a number of more than {_MOST_DIGITS} digits in line"
            f" {_line_of_long_number(content)}; correct it."
        ) from None
    return value


def _line_of_long_number(content: bytes | str) -> int:
    text = content if isinstance(content, str) else content.decode(errors="replace")
    found = re.search(rf"\d{{{_MOST_DIGITS + 1},}}", text)
    return text.count("\n", 0, found.start() if found else 0) + 1


def refuse_dims(dims: Any, path: Path) -> None:
    """ValueError where sizes are given for a format that has no symbolic dimensions."""
    if dims:
        raise ValueError(
            f"{path.name!r} has no symbolic dimensions, but a size was given for"
            f" {', '.join(sorted(map(str, dims)))}; leave it out."
        )
