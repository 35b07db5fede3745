"""Models of Hugging Face by their config.json: an architecture without weights, to be predicted.

The bundled ones are configurations of well-known open models (assets/models/).
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from placement.core.decoding import shortened
from placement.core.model import Model, Sample
from placement.files.program import ASSETS
from placement.loaders.base import Loader, SampleSource

FOLDER = ASSETS / "models"
CONFIG = "config.json"
WORDS = ("task", "dtype", "cache")


class HuggingFace(Loader):
    """Reads a configuration; weights beside it are looked at from outside only."""

    name = "huggingface"
    summary = "a Hugging Face model by its config.json (no weights)"
    suffixes = (".json",)
    words = WORDS
    folder_file = CONFIG

    def accepts(self, path: Path) -> bool:
        return b'"model_type"' in path.read_bytes()

    def load(self, path: Path, dims: Mapping[str, int | str]) -> Model:
        from placement.formats.huggingface.configuration import read
        from placement.formats.huggingface.headers import stored_in

        folder = path.absolute().parent
        if path.name != CONFIG:
            return _opened(read(path), path.stem, dims)
        return _opened(read(path), folder.name or path.stem, dims, stored_in(folder))


class Configurations(SampleSource):
    """The configurations of assets/models/, each in a folder by the name of its model."""

    words = WORDS

    def samples(self) -> tuple[Sample, ...]:
        return tuple(
            Sample(name, int(about["num_ops"]), f"{about['title']}, no weights", False)
            for name, about in _index().items()
        )

    def load_sample(self, name: str, dims: Mapping[str, int | str]) -> Model:
        from placement.formats.huggingface.configuration import read

        return _opened(read(FOLDER / name / CONFIG), name, dims)


def _opened(
    content: Mapping[str, Any],
    name: str,
    dims: Mapping[str, int | str],
    stored: Mapping[str, Any] | None = None,
) -> Model:
    from placement.formats.huggingface.opening import open_configuration

    try:
        return open_configuration(content, name, dims, stored)
    except ValueError:
        raise
    except Exception as error:  # the library raises many kinds, for many reasons
        text = shortened(" ".join(str(error).split()), 200)
        raise ValueError(
            f"transformers does not understand the configuration ({type(error).__name__}: {text});"
            " use one that was written by the library."
        ) from None


@cache
def _index() -> dict[str, dict[str, Any]]:
    """By name what is told of each model."""
    told: dict[str, dict[str, Any]] = json.loads((FOLDER / "index.json").read_text("utf-8"))
    return told


LOADER = HuggingFace()
SAMPLES = Configurations()
