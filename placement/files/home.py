"""Where the studio keeps what it remembers on this computer."""

import os
import sys
from pathlib import Path


def home() -> Path:
    """The folder for profiles and locks: $PLACEMENT_STUDIO_HOME, else the system's data folder."""
    chosen = os.environ.get("PLACEMENT_STUDIO_HOME")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "placement-studio"
    data = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "placement-studio"
