"""Where compiled code is kept between processes.

numba notices a change of a function's own file but not of a file whose functions it calls, so the
folder is named for the content of them all.
"""

import os
import platform
import tempfile
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

# Names a folder whose compiled code is loaded but never changed: that of whoever started this
# process, whose own folder is empty at first.
SHARED = "PLACEMENT_COMPILED"


def cache_folder() -> Path:
    """The folder, which need not be there yet."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return Path(chosen)
    import hashlib

    here = Path(__file__).parents[1]
    content = hashlib.sha256()
    for path in sorted({*here.rglob("*_compiled.py"), *here.rglob("compiled/*.py")}):
        content.update(path.relative_to(here).as_posix().encode() + path.read_bytes())
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "placement-studio" / f"compiled-{content.hexdigest()[:16]}"


def shared_folder() -> Path | None:
    """The folder that is only read, where there is one."""
    named = os.environ.get(SHARED)
    return Path(named) if named else None


def is_writable(folder: Path) -> bool:
    """Whether what is compiled can be kept in a folder, which is made where it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def is_warm(word: str) -> bool:
    """Whether all that something needs, told by a word, was compiled on this computer before."""
    return _note(word).exists()


def note_warm(word: str) -> None:
    """From now on it was; where that cannot be written it is found out once more."""
    with suppress(OSError):
        _note(word).touch()


def _note(word: str) -> Path:
    """An empty file beside compiled code, which is of one processor and version of numba."""
    of = f"{platform.node()}-{platform.python_version()}-{version('numba')}"
    return cache_folder() / f"warm-{word.replace(':', '-')}-{of}"
