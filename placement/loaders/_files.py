"""Files that a person names: checked before they are opened."""

import json
import os
import stat
from pathlib import Path
from typing import Any

MAX_JSON_BYTES = 512 * 2**20


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


def read_json(path: Path) -> Any:
    """The JSON value in a file; ValueError names the file and what is wrong with it."""
    size = path.stat().st_size
    if size > MAX_JSON_BYTES:
        raise ValueError(
            f"{path.name!r} has {size} bytes, more than the {MAX_JSON_BYTES} that a JSON file may"
            " have; split it."
        )
    return parse_json(path.read_bytes(), path.name)


def parse_json(content: bytes | str, name: str) -> Any:
    """The JSON value in a text that is called `name`."""
    try:
        return json.loads(content)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{name!r} is not valid JSON ({error}); write it again.") from None
    except RecursionError:
        raise ValueError(f"{name!r} is nested too deeply; flatten it.") from None


def refuse_dims(dims: Any, path: Path) -> None:
    """ValueError where sizes are given for a format that has no symbolic dimensions."""
    if dims:
        raise ValueError(
            f"{path.name!r} has no symbolic dimensions, but a size was given for"
            f" {', '.join(sorted(map(str, dims)))}; leave it out."
        )
