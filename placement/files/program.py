"""Where the program's own files lie: the pages, `assets/` and the server's settings.

In a checkout they lie beside the package `placement`. An installed program has them in a folder of
its own, because `pages`, `studio` and `assets` are names that others may give their packages too.
"""

from pathlib import Path

_INSTALLED = "placement_studio"


def program_folder() -> Path:
    """The folder of app.py."""
    beside = Path(__file__).resolve().parents[2]
    installed = beside / _INSTALLED
    return installed if (installed / "app.py").is_file() else beside


ASSETS = program_folder() / "assets"
