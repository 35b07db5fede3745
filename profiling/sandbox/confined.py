"""`python -m profiling.sandbox.confined LIMITS MODULE ...`: run a module in a confined process.

Only the standard library and modules of the studio's that load no more are there until the limits
hold. What native libraries write to the error
output goes nowhere from then on; Python's own goes where it went.
"""

import json
import os
import runpy
import sys

from profiling.sandbox.confinement import Limits, confine


def main() -> None:
    given, module = json.loads(sys.argv[1]), sys.argv[2]
    folders = tuple(given["readable"]), tuple(given["writable"])
    confine(Limits(given["memory_bytes"], given["cpu_s"], *folders), given["parent"])
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, errors="backslashreplace")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    sys.argv = [module, *sys.argv[3:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
