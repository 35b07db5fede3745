"""Temporary folders for models on their way through onnxruntime.

A folder goes when its last user is gone or the process ends; what a killed process has left behind
goes when the next folder is made.
"""

import os
import shutil
import tempfile
import time
import weakref
from contextlib import suppress
from pathlib import Path

_PREFIX = "placement-ort-"
_STALE_S = 3600.0


class Folder:
    """A new folder at `path`, removed with this object."""

    def __init__(self) -> None:
        _remove_stale()
        self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def _remove_stale() -> None:
    """Remove folders of processes that are gone, if they have not been touched for an hour."""
    import psutil

    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        pid = path.name.removeprefix(_PREFIX).partition("-")[0]
        with suppress(OSError, ValueError):
            gone = not psutil.pid_exists(int(pid))
            if gone and time.time() - path.stat().st_mtime > _STALE_S:
                shutil.rmtree(path, ignore_errors=True)
