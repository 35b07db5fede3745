"""Values kept from one drawing of a page to the next: parsed files, and results of functions.

A page reads the project anew for each of its parts; what is large is parsed and computed once per
version all the same. Everything kept here is immutable, so sessions may share it.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

# Of each kind of file: a list of many projects drives no placement out.
MOST_FILES = 32

_files: dict[object, OrderedDict[Path, tuple[tuple[int, ...], Any]]] = {}
_lock = threading.Lock()


def parsed(path: Path, parse: Callable[[Path], R]) -> R:
    """What `parse` makes of a file; the same object as before where the file is the same.

    Files are replaced whole, never written in place, so a new version has its own inode or time.
    """
    version = _version(path)
    with _lock:
        files = _files.get(parse, OrderedDict())
        known = files.get(path)
        if known is not None and version and known[0] == version:
            files.move_to_end(path)
            value: R = known[1]
            return value
    value = parse(path)
    _keep(path, parse, version, value)
    return value


def written(path: Path, parse: Callable[[Path], R], value: R) -> None:
    """Say what `parse` would make of a file that was just written, so that nobody has to."""
    _keep(path, parse, _version(path), value)


def _keep(path: Path, parse: object, version: tuple[int, ...], value: object) -> None:
    with _lock:
        files = _files.setdefault(parse, OrderedDict())
        files[path] = (version, value)
        files.move_to_end(path)
        while len(files) > MOST_FILES:
            files.popitem(last=False)


def _version(path: Path) -> tuple[int, ...]:
    """Tells versions of a file apart; empty where there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_ino, found.st_mtime_ns, found.st_size


def by_identity(maxsize: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Remember the last results of a function of objects that are too large to hash or compare.

    Two calls are the same where their arguments are the same objects; these are kept alive, so
    that no other object can take their place.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        results: OrderedDict[tuple[int, ...], tuple[tuple[object, ...], R]] = OrderedDict()
        lock = threading.Lock()

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            given = (*args, *kwargs.values())
            key = tuple(map(id, given))
            with lock:
                if key in results:
                    results.move_to_end(key)
                    return results[key][1]
            result = function(*args, **kwargs)
            with lock:
                results[key] = (given, result)
                while len(results) > maxsize:
                    results.popitem(last=False)
            return result

        return call

    return decorate
