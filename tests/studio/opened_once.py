"""Files with the same content are read once by all tests of a folder.

A file is read by a confined process of its own, which costs ten times as much as what most tests
do with the model afterwards; tests/remote and tests/hostile are about that process. What was
refused is read again each time, and so is what says that a part of it lies in another file. Models
share their graph, which is frozen; what is remembered of one as it is used is not of the next.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import placement as pl
from placement.core.model import Dims, Model, RemoteExecutable

_opened: dict[tuple[object, ...], Model] = {}
# The headers of the weights in its folder are read with it, so that its content does not say all.
BY_PATH = "config.json"
# An ONNX file of which some data lies elsewhere has the name of that file under this key.
ELSEWHERE = b"location"


@pytest.fixture(scope="module", autouse=True)
def opened_once() -> Iterator[None]:
    """What `pl.load` does in this process; commands in processes of their own read for themselves.

    Of a module, so that tests of other folders do without.
    """
    load = pl.load

    def opened(source: str, dims: Dims | None = None) -> Model:
        path = Path(source)
        content = path.read_bytes() if path.is_file() else None
        if content is None or (path.suffix.lower() == ".onnx" and ELSEWHERE in content):
            return load(source, dims)
        whose = _folder(path) if path.name == BY_PATH else path.name
        key = (whose, content, tuple(sorted((dims or {}).items())))
        found = _opened.get(key)
        if found is None:
            found = _opened[key] = load(source, dims)
        return _another(found, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pl, "load", opened)
        yield


def _folder(path: Path) -> tuple[object, ...]:
    """Where a file lies and what lies beside it, as it is now."""
    beside = sorted((entry.name, entry.stat()) for entry in path.parent.iterdir())
    stamps = ((name, found.st_size, found.st_mtime_ns) for name, found in beside)
    return (str(path.absolute()), *stamps)


def _another(model: Model, path: Path) -> Model:
    """The model as one that was just read there: what is remembered of the first is not of it."""
    executable, problem = model.executable, model.problem
    if isinstance(executable, RemoteExecutable):
        executable = replace(executable, path=path)
    return replace(
        model, executable=executable, problem=None if problem is None else replace(problem)
    )
