"""What a person names when starting the studio, models above all: how a browser asks for one.

An address is nothing to trust: any page may link to the studio. So it holds a word drawn at the
start, which stands for the model as it was named, and no path.
"""

import json
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

# In an address: which of the models to open.
QUERY = "open"
# Of the server's process: models by their words, and the folder that relative paths begin at.
_MODELS, _FOLDER = "PLACEMENT_STUDIO_MODELS", "PLACEMENT_STUDIO_FOLDER"
# And the file with a placement of them, empty for none.
_PLACEMENT = "PLACEMENT_STUDIO_PLACEMENT"


def variables(
    models: Iterable[str], folder: Path, placement: str = ""
) -> tuple[tuple[str, ...], dict[str, str]]:
    """A word per model, and the environment that tells the server of them."""
    named = {secrets.token_urlsafe(16): model for model in models}
    told = {_MODELS: json.dumps(named), _FOLDER: str(folder), _PLACEMENT: placement}
    return tuple(named), told


def model_of(word: str) -> str | None:
    """The model that a word stands for; None where it stands for none."""
    found: dict[str, str] = json.loads(os.environ.get(_MODELS, "{}"))
    return found.get(word)


def placement() -> str:
    """The file with a placement that was named beside the model; empty where none was."""
    return os.environ.get(_PLACEMENT, "")


def path_of(text: str) -> Path:
    """A path as a person types it, from the folder where the studio was started."""
    return Path(os.environ.get(_FOLDER, "")) / expanded(text)


def expanded(text: str) -> Path:
    """A path with `~` for a home folder; ValueError for that of nobody."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ValueError(f"There is no home folder for {text!r}; name the whole path.") from None
