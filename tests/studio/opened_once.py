"""Files with the same content are read once by all tests of a folder.

A file is read by a confined process of its own, which costs ten times as much as what most tests
do with the model afterwards; tests/remote and tests/hostile are about that process. What was
refused is read again each time.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import placement as pl
from placement.core.model import Dims, Model, RemoteExecutable

_opened: dict[tuple[object, ...], Model] = {}
# Its weights lie in files beside it, so that its content does not say all.
BY_PATH = "config.json"


@pytest.fixture(scope="module", autouse=True)
def opened_once() -> Iterator[None]:
    """What `pl.load` does in this process; commands in processes of their own read for themselves.

    Of a module, so that tests of other folders do without.
    """
    load = pl.load

    def opened(source: str, dims: Dims | None = None) -> Model:
        path = Path(source)
        if not path.is_file():
            return load(source, dims)
        whose = str(path.absolute()) if path.name == BY_PATH else path.name
        key = (whose, path.read_bytes(), tuple(sorted((dims or {}).items())))
        found = _opened.get(key)
        if found is None:
            found = _opened[key] = load(source, dims)
        return _another(found, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pl, "load", opened)
        yield


def _another(model: Model, path: Path) -> Model:
    """The model as one that was just read there: what is remembered of the first is not of it."""
    executable, problem = model.executable, model.problem
    if isinstance(executable, RemoteExecutable):
        executable = replace(executable, path=path)
    return replace(
        model, executable=executable, problem=None if problem is None else replace(problem)
    )
