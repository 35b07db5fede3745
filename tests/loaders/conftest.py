from collections.abc import Callable

import pytest

from tests.profiling.onnx_models import node_tests
from tests.thorough import THOROUGH


@pytest.fixture(scope="session")
def node_cases():
    """The models of the onnx package's node tests by name, in `make test` without pooling."""
    cases = node_tests(pooled=THOROUGH)
    return {case.name: case.model for case in cases if case.model is not None}


@pytest.fixture
def save(tmp_path) -> Callable[..., str]:
    """Writes a model (or bytes) to a file and returns its path."""

    def write(model, name="model.onnx"):
        path = tmp_path / name
        path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
        return str(path)

    return write
