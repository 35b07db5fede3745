"""Where compiled code is kept between processes.

numba notices a change of a function's own file but not of a file whose functions it calls, so the
folder is named for the content of them all.
"""

import hashlib
import os
from pathlib import Path


def cache_folder() -> Path:
    """The folder, which need not be there yet."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return Path(chosen)
    here = Path(__file__).parents[1]
    content = hashlib.sha256()
    for path in sorted(here.rglob("_fast_*.py")):
        content.update(path.relative_to(here).as_posix().encode() + path.read_bytes())
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "placement-studio" / f"compiled-{content.hexdigest()[:16]}"
