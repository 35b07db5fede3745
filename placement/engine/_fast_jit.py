"""How compiled code is compiled: by numba, cached on disk, without the interpreter's lock.

Only files named `_fast_*` import this one, and they are imported by the functions that need them.
The same source runs uncompiled under NUMBA_DISABLE_JIT=1. A constant handed from one compiled
function to another, such as True, would compile the other once more for that very value;
`bool(True)` does not.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

from placement.engine.compiled_cache import cache_folder

F = TypeVar("F", bound=Callable[..., Any])
numba.config.CACHE_DIR = str(cache_folder())  # type: ignore[attr-defined]


# Its type hints do not know all of its options.
_njit: Any = numba.njit


def jit(function: F) -> F:
    """Compile at the first call with each combination of types."""
    options = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    compiled: F = _njit(**options)(function)
    return compiled


def inner(function: F) -> F:
    """The same for what only compiled code calls: no way in from Python, so half the work."""
    options = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    compiled: F = _njit(**options, no_cpython_wrapper=True)(function)
    return compiled


def inlined(function: F) -> F:
    """Compile into each caller: tuples of many arrays are slow to hand over in an inner loop."""
    compiled: F = _njit(inline="always", error_model="numpy")(function)
    return compiled
