"""How compiled code is compiled: by numba, cached on disk, without the interpreter's lock.

Only files named `*_compiled` and those in a folder `compiled` import this one, and they are
imported by the functions that need them.
The same source runs uncompiled under NUMBA_DISABLE_JIT=1. A constant handed from one compiled
function to another, such as True, would compile the other once more for that very value;
`bool(True)` does not.
"""

import copy
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numba

from placement.compiled.cache import cache_folder, is_writable, shared_folder

F = TypeVar("F", bound=Callable[..., Any])
numba.config.CACHE_DIR = str(cache_folder())  # type: ignore[attr-defined]


# Its type hints do not know all of its options.
_njit: Any = numba.njit


_OPTIONS = {
    # Where nothing can be kept numba would refuse to compile.
    "cache": is_writable(Path(numba.config.CACHE_DIR)),  # type: ignore[attr-defined]
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}


def _kept_if_possible(compiled: Any) -> Any:
    """The same function, which also works where the disk has no room for what was compiled."""
    # Under NUMBA_DISABLE_JIT it is the plain function.
    if _OPTIONS["cache"] and hasattr(compiled, "_cache"):
        save = compiled._cache.save_overload

        def save_if_possible(*given: Any) -> None:
            with suppress(OSError):
                save(*given)

        compiled._cache.save_overload = save_if_possible
        _share(compiled._cache._cache_file)
    return compiled


def _share(own: Any) -> None:
    """Let what is missing among one's own compiled code be looked for in the shared folder."""
    shared = shared_folder()
    if shared is None:
        return
    load, other = own.load, copy.copy(own)
    within = Path(own._cache_path).relative_to(cache_folder())
    other._cache_path = str(shared / within)
    other._index_path = str(shared / within / own._index_name)

    def load_either(key: Any) -> Any:
        found = load(key)
        if found is None:
            with suppress(OSError):
                found = other.load(key)
        return found

    own.load = load_either


def jit(function: F) -> F:
    """Compile at the first call with each combination of types."""
    compiled: F = _kept_if_possible(_njit(**_OPTIONS)(function))
    return compiled


def inner(function: F) -> F:
    """The same for what only compiled code calls: no way in from Python, so half the work."""
    compiled: F = _kept_if_possible(_njit(**_OPTIONS, no_cpython_wrapper=True)(function))
    return compiled


def inlined(function: F) -> F:
    """Compile into each caller: tuples of many arrays are slow to hand over in an inner loop."""
    compiled: F = _kept_if_possible(_njit(**_OPTIONS, inline="always")(function))
    return compiled
