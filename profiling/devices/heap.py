"""What PyTorch's steps free on the host stays with this process, for the next step.

The C library maps every block of more than 32 MiB anew and gives it back once it is free, and the
next step has its pages cleared again: GPT-2's step of training takes a thousand large pages so, for
15 ms or, where the host of a virtual machine has taken them back meanwhile, for a second. `keep`
has it take all blocks from one heap that never shrinks by itself. A step then asks for no page once
its blocks have found their places, in the first six steps or so; it holds up to a third more
memory, for aligned blocks fit badly into those that were freed. A program that is closed gives back
what is free, and so does whoever wants to know how much memory there is.
"""

import ctypes
import functools
import os
import sys
from collections.abc import Callable, Iterator
from typing import TypeVar

# Of mallopt (malloc.h): arenas at most, mapped blocks at most, and when the heap shrinks: never.
_ARENA_MAX, _MMAP_MAX, _TRIM_THRESHOLD = -8, -4, -1
_NEVER = -1
# Where somebody has said how the C library is to do it, or has put another allocator in its place.
SETTINGS = (
    "MALLOC_ARENA_MAX",
    "MALLOC_MMAP_MAX_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "MALLOC_TRIM_THRESHOLD_",
)
TUNABLES, PRELOADED = "GLIBC_TUNABLES", "LD_PRELOAD"
# So many pages come anew in steps of any kind.
FEW_PAGES = 100
# Steps beyond those asked for that may warm up: blocks have found their places by then.
MOST_TO_WARM = 7
T = TypeVar("T")

_kept = False


def keep() -> None:
    """From now on, where the C library can and nobody has said how it is to do it.

    That is so for the whole process. Threads that begin later share the heap, so that what one has
    freed serves the others; but for those with a heap of their own, or one that an ended thread has
    left, whose blocks end at 64 MiB.
    """
    global _kept
    if not _kept and is_ours():
        library = _library()
        library.mallopt(_ARENA_MAX, 1)
        library.mallopt(_MMAP_MAX, 0)
        library.mallopt(_TRIM_THRESHOLD, _NEVER)
        _kept = True


def give_back() -> None:
    """Give the system what is free now, where it was kept."""
    if _kept:
        _library().malloc_trim(0)


def asks_for_pages(step: Callable[[], T]) -> tuple[T, bool]:
    """What a step returns, and whether its blocks still look for places in the heap that is kept.

    Where it is not kept steps may go on asking for pages for good, so nobody waits for an end.
    """
    before = _pages()
    made = step()
    return made, _kept and _pages() - before > FEW_PAGES


def warming(step: Callable[[], float], number: int) -> Iterator[float]:
    """Seconds of steps that do not count: so many, and some more while they ask for pages."""
    taken, asks = 0, False
    while taken < number or (asks and taken < number + MOST_TO_WARM):
        seconds, asks = asks_for_pages(step)
        taken += 1
        yield seconds


def _pages() -> int:
    """How often this process was given a page so far; nobody counts where none are kept."""
    if not _kept:
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def is_ours() -> bool:
    """Whether the C library is GNU's on Linux, and left to us."""
    said = any(name in os.environ for name in SETTINGS)
    said |= "glibc.malloc" in os.environ.get(TUNABLES, "")
    said |= "malloc" in os.environ.get(PRELOADED, "")
    return sys.platform == "linux" and not said and hasattr(_library(), "gnu_get_libc_version")


@functools.cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None)
