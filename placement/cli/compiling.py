"""What a command about a file has compiled before it, by a process that sees no file.

A confined process may keep nothing that others load as code, so it would compile the same again
every time. What it needs by its options is compiled once on a computer, outside.
"""

import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from placement.compiled.cache import cache_folder, is_warm, is_writable

COMPILING = "compiling, once on this computer, for a minute or a few"
# Where a command names no method: what predicting a placement needs is compiled for each.
LEAST = "single"
# What calls the parts of a program on its lanes, and looks at cores, where a model is measured.
LANES = "awake-lanes"
_COMPILE_LANES = (
    "from placement.compiled.cache import note_warm\n"
    "from profiling.devices import lanes\n"
    "from profiling.measuring import siblings\n"
    "lanes.warm_up()\n"
    "siblings.warm_up()\n"
    f"note_warm({LANES!r})"
)
# A model is run in segments; a problem file may state any execution.
OF_MODELS, OF_PROBLEMS = ("segment",), ("op", "segment", "call")


def missing(options: Namespace) -> tuple[str, ...]:
    """Words, see `command`: what a command needs and nobody compiled here yet."""
    # Where nothing is compiled, or nothing kept, there is nothing to gain.
    if os.environ.get("NUMBA_DISABLE_JIT") or not hasattr(options, "objective"):
        return ()
    executions = OF_PROBLEMS if Path(options.input).suffix == ".json" else OF_MODELS
    words = [f"{n}:{options.objective}:{e}" for n, e in product(_placers(options), executions)]
    found = tuple(word for word in (*words, LANES) if not is_warm(word))
    return found if found and is_writable(cache_folder()) else ()


def command(word: str) -> list[str]:
    """The process that compiles what a word stands for, and notes that it is."""
    if word == LANES:
        return [sys.executable, "-c", _COMPILE_LANES]
    return [sys.executable, "-m", "placement.advice.warming", word]


def _placers(options: Namespace) -> Iterator[str]:
    if hasattr(options, "placers"):
        yield from options.placers.split(",")
    else:
        yield getattr(options, "placer", None) or LEAST
