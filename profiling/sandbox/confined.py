"""`python -m profiling.sandbox.confined LIMITS MODULE ...`: run a module in a confined process.

Only the standard library and modules of the studio's that load no more are there until the limits
hold. What native libraries write to the error
output goes nowhere from then on; Python's own goes where it went.

With "-" for LIMITS it imports the modules that are named and waits for the limits on its standard
input, ready for a file that nobody knows yet. It says so only where none of them has started a
thread, which no limits would bind.
"""

import importlib
import json
import os
import runpy
import signal
import sys
import threading
from pathlib import Path

from profiling.sandbox.confinement import AWAITED, HEAD, READY, Limits, confine


def main() -> None:
    module, *further = sys.argv[2:]
    waits = sys.argv[1] == AWAITED
    given = json.loads(_awaited((module, *further)) if waits else sys.argv[1])
    folders = tuple(given["readable"]), tuple(given["writable"])
    confine(Limits(given["memory_bytes"], given["cpu_s"], *folders), given["parent"])
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, errors="backslashreplace")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    sys.argv = [module] if waits else [module, *further]
    if waits:
        sys.modules[module].main()
    else:
        runpy.run_module(module, run_name="__main__", alter_sys=True)


def _awaited(modules: tuple[str, ...]) -> bytes:
    """The limits, once modules have been imported; the process ends where it may not wait."""
    # Whoever ends the server by a key ends this by closing its input, without a trace of its own.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in modules:
        importlib.import_module(name)
    if num_threads() > 1:
        sys.exit("A module that is imported ahead starts threads; limits would not bind them.")
    try:
        os.write(1, READY)
    except BrokenPipeError:
        # Whoever started it has gone meanwhile.
        sys.exit(0)
    # Unbuffered, for what comes after it is for the module.
    limits = _read(int.from_bytes(_read(HEAD), "big"))
    signal.signal(signal.SIGINT, before)
    return limits


def num_threads() -> int:
    """Threads of this process, those of native libraries included where the system tells."""
    tasks = Path("/proc/self/task")
    return len(list(tasks.iterdir())) if tasks.is_dir() else threading.active_count()


def _read(num_bytes: int) -> bytes:
    content = b""
    while len(content) < num_bytes:
        piece = os.read(0, num_bytes - len(content))
        if not piece:
            # Whoever started it has gone, and no file ever came.
            sys.exit(0)
        content += piece
    return content


if __name__ == "__main__":
    main()
