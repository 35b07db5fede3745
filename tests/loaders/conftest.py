import warnings
from collections.abc import Callable

import pytest


@pytest.fixture(scope="session")
def node_cases():
    """The models of the onnx package's node tests, made in memory, by name."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the reference implementations divide by zero on purpose
        cases = collect_testcases(None)
    return {case.name: case.model for case in cases if case.model is not None}


@pytest.fixture
def save(tmp_path) -> Callable[..., str]:
    """Writes a model (or bytes) to a file and returns its path."""

    def write(model, name="model.onnx"):
        path = tmp_path / name
        path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
        return str(path)

    return write
