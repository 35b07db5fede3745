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
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import cast

_SOFT = 1  # omp_pause_soft of OpenMP 5: what else the library knows stays


def let_go() -> None:
    """Let go of the threads that OpenMP keeps for the calling one."""
    pause = _pause()
    if pause is not None:
        pause(_SOFT)


@functools.cache
def _pause() -> Callable[[int], int] | None:
    """`omp_pause_resource_all` of the library that PyTorch uses; None where it is not GNU's."""
    if sys.platform != "linux":
        return None
    import torch

    folder = Path(torch.__file__).parent
    for path in (*folder.glob("lib/libgomp*.so*"), *folder.parent.glob("torch.libs/libgomp*.so*")):
        # One that is not in use has no teams, and its pause would say nothing.
        with suppress(OSError, AttributeError):
            found = ctypes.CDLL(str(path), mode=os.RTLD_NOLOAD).omp_pause_resource_all
            found.argtypes, found.restype = (ctypes.c_int,), ctypes.c_int
            return cast("Callable[[int], int]", found)
    return None
