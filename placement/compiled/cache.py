"""Where compiled code is kept between processes.

numba notices a change of a function's own file but not of a file whose functions it calls, so the
folder is named for the content of them all.
"""

import os
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
