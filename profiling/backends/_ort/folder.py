"""Temporary folders for models on their way through onnxruntime.

A folder goes when its last user is gone or the process ends; what a killed process has left behind
goes when the next folder is made.
"""

import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

_PREFIX = "placement-ort-"


class Folder:
    """A new folder at `path`, removed with this object."""

    def __init__(self) -> None:
        _remove_stale()
        self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def _remove_stale() -> None:
    """Remove folders of processes that are gone."""
    import psutil

    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        pid = path.name.removeprefix(_PREFIX).partition("-")[0]
        with suppress(OSError, ValueError, OverflowError):
            if not psutil.pid_exists(int(pid)):
                shutil.rmtree(path, ignore_errors=True)
