"""Files that are either the old or the new version, and changes of several that are all or nothing.

A kill between two files of a change leaves the first new and the second old, each whole; where the
disk refuses the second, the first is taken back. For that the old version stays beside the new one,
under another name, until the change is done: to give it its name back takes no room on a full disk.
"""

import json
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from placement.core.decoding import decode
from placement.files import output
from placement.files.output import NotWritten

__all__ = ["NotWritten", "all_or_nothing"]

T = TypeVar("T")
_here = threading.local()


class Change:
    """What has been written since a change began, and how to take it back."""

    def __init__(self) -> None:
        self._before: list[tuple[Path, Path | None]] = []

    @property
    def num_written(self) -> int:
        return len(self._before)

    def about_to_write(self, path: Path) -> None:
        """Set the old version aside; None stands for a file or folder that was not there."""
        before = None
        if path.exists():
            before = path.parent / f".before-{os.getpid()}-{threading.get_ident()}-{id(self)}"
            before = before.with_name(f"{before.name}-{len(self._before)}")
            try:
                os.link(path, before)
            except OSError:
                # Some file systems know no second name for a file.
                shutil.copy2(path, before)
        self._before.append((path, before))

    def take_back(self) -> None:
        """Newest first; what cannot be taken back stays, for there is nothing better to do."""
        for path, before in reversed(self._before):
            with suppress(OSError):
                if before is not None:
                    os.replace(before, path)
                    # It does nothing where both are names of one file, because none took its place.
                    before.unlink(missing_ok=True)
                elif path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
        self._before.clear()

    def keep(self) -> None:
        for _, before in self._before:
            if before is not None:
                with suppress(OSError):
                    before.unlink()


@contextmanager
def all_or_nothing() -> Iterator[Change]:
    """Take back what was written here where the rest of it fails; one inside another is its part.

    What ends the work without an error, as a page that starts over, takes nothing back.
    """
    around: Change | None = getattr(_here, "change", None)
    change = _here.change = Change()
    try:
        yield change
    except Exception:
        change.take_back()
        raise
    finally:
        _here.change = around
        if around is None:
            change.keep()
        else:
            around._before += change._before


def made(path: Path) -> None:
    """Say that a file or folder is about to be made in another way, to be taken back with it."""
    change: Change | None = getattr(_here, "change", None)
    if change is not None and not path.exists():
        change.about_to_write(path)


def write_bytes(
    path: Path, content: bytes, *, make_folder: bool = True, is_change: bool = True
) -> None:
    """Write beside the target and rename over it; the folder is made when missing.

    Without `make_folder` a missing folder is a FileNotFoundError. NotWritten says what the file
    system has against it. What is no change of a person's (`is_change`) is never taken back.
    """
    change: Change | None = getattr(_here, "change", None) if is_change else None
    with output.refusals(path):
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        if change is not None:
            change.about_to_write(path)
        with output.beside(path, output.PRIVATE) as draft:
            draft.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_json(
    path: Path, content: object, *, make_folder: bool = True, is_change: bool = True
) -> None:
    text = json.dumps(msgspec.to_builtins(content, enc_hook=dict), indent=1) + "\n"
    write_bytes(path, text.encode(), make_folder=make_folder, is_change=is_change)


def read_json(path: Path, default: Any = None) -> Any:
    """The content of a JSON file; `default` where there is none or it is not JSON."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return default


def read(path: Path, kind: type[T]) -> T | None:
    """The content of a JSON file as a `kind`; None where there is none, or something else."""
    try:
        return decode(json.loads(path.read_text()), kind)
    except (OSError, ValueError):
        return None


def names_in(folder: Path) -> list[str]:
    """Names of what lies in a folder, sorted; none where it is not there or cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
