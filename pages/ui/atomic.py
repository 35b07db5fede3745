"""Files that are either the old or the new version, whatever happens in between."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any


def write_bytes(path: Path, content: bytes, *, make_folder: bool = True) -> None:
    """Write beside the target and rename over it; the folder is made when missing.

    Without `make_folder` a missing folder is a FileNotFoundError.
    """
    if make_folder:
        path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(draft, path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_json(path: Path, content: Any, *, make_folder: bool = True) -> None:
    text = json.dumps(content, indent=1) + "\n"
    write_bytes(path, text.encode(), make_folder=make_folder)


def read_json(path: Path, default: Any = None) -> Any:
    """The content of a JSON file; `default` where there is none or it is not JSON."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return default
