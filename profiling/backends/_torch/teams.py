"""Threads that OpenMP keeps for one that has computed with several, and how it lets go of them.

Between two kernels the threads of a team wait awake, for a few milliseconds, so that the next one
begins at once. GNU's library, which PyTorch brings on Linux, has them sleep almost at once where
the process keeps more threads in teams than it has cores, and each kernel then wakes them: a step
of EdgeNeXt on two cores takes 18 ms instead of 6. A thread that only waits keeps its team, too: the
one that has made the inputs, or whose program had the turn before. So whoever has done computing
lets go (`Program.rest`), and the next kernel makes a new team, which takes 0.1 ms or so.
"""

import ctypes
import functools
import sys
from collections.abc import Callable
from pathlib import Path

_SOFT = 1  # omp_pause_soft of OpenMP 5: what else the library knows stays


def let_go() -> None:
    """Let go of the threads that OpenMP keeps for the calling one."""
    pause = _pause()
    if pause is not None:
        pause(_SOFT)


@functools.cache
def _pause() -> Callable[[int], int] | None:
    """`omp_pause_resource_all` of the library that computes; None where it is not GNU's."""
    import torch

    beside = Path(torch.__file__).parent / "lib" / "libgomp.so.1"
    if sys.platform != "linux":
        return None
    try:
        # What is loaded already is found by its name; the system's has the same one.
        library = ctypes.CDLL(str(beside) if beside.exists() else "libgomp.so.1")
    except OSError:
        return None
    found: Callable[[int], int] | None = getattr(library, "omp_pause_resource_all", None)
    return found
