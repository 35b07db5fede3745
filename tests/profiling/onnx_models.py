"""Every model that the onnx package ships, with inputs, and random compositions of common ops."""

import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from placement.loaders import symbolic_dims

if TYPE_CHECKING:
    from onnx.backend.test.case.test_case import TestCase

FOLDERS = ("simple", "pytorch-converted", "pytorch-operator")
NODES = "onnx.backend.test.case.node"
# Modules of node tests that take seconds: what pooling gives is computed in Python.
POOLED = ("averagepool", "lppool", "maxpool")


@dataclass(frozen=True)
class Case:
    """A model file and what to feed it; without inputs they are seeded."""

    name: str
    path: Path
    inputs: dict[str, Any] | None


def node_tests(*, pooled: bool) -> "list[TestCase]":
    """The onnx package's tests of single ops, made in memory.

    Those of pooling cost more than all the others, and are left out unless they are wanted.
    """
    left_out = () if pooled else POOLED
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        # The reference implementations divide by zero on purpose.
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        for name in (f"{NODES}.{module}" for module in left_out):
            if name not in sys.modules:
                patch.setitem(sys.modules, name, ModuleType(name))
        every = load_model_tests(kind="node")
    # Also where others have loaded them before.
    names = tuple(f"test_{module}" for module in left_out)
    return [test for test in every if not test.name.startswith(names)]


def shipped(folder: Path, *, pooled: bool) -> Iterator[Case]:
    """Node tests (written to `folder`), then the models that are files of the package."""
    for test in node_tests(pooled=pooled):
        path = folder / f"{test.name}.onnx"
        path.write_bytes(test.model.SerializeToString())
        yield Case(test.name, path, _named(test.model, test.data_sets[0][0]))
    from onnx.backend.test.loader import load_model_tests

    for kind in FOLDERS:
        for test in load_model_tests(kind=kind):
            path = Path(test.model_dir) / "model.onnx"
            stored = sorted(Path(test.model_dir).glob("test_data_set_0/input_*.pb"), key=_number)
            model = onnx.load(path)
            values = [_read(p, t) for p, t in zip(stored, _inputs(model), strict=False)]
            yield Case(test.name, path, _named(model, values))


def _number(path: Path) -> int:
    return int(path.stem.removeprefix("input_"))


def _inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    weights = {t.name for t in model.graph.initializer}
    every = list(model.graph.input)
    free = [value for value in every if value.name not in weights]
    return free if len(free) < len(every) else every


def _named(model: onnx.ModelProto, values: list[Any]) -> dict[str, Any]:
    pairs = zip(_inputs(model), values, strict=False)
    return {i.name: _plain(v) for i, v in pairs}


def _plain(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


def sizes(path: Path, inputs: dict[str, Any]) -> dict[str, int]:
    """Sizes for the model's symbolic dimensions, as these inputs have them."""
    return {name: size for name, _, _, size in _symbolic(path, inputs)}


def never_empty(path: Path, inputs: dict[str, Any]) -> dict[str, Any]:
    """The inputs with 1 for a symbolic size of 0, as which no model is opened."""
    filled = dict(inputs)
    for _, name, axis, size in _symbolic(path, inputs):
        if size == 0:
            shape = list(filled[name].shape)
            shape[axis] = 1
            filled[name] = np.ones(shape, dtype=filled[name].dtype)
    return filled


def _symbolic(path: Path, inputs: dict[str, Any]) -> Iterator[tuple[str, str, int, int]]:
    """Dimension, input, axis and size of everything symbolic."""
    names = {dim.name for dim in symbolic_dims(str(path))}
    for value in onnx.load(path).graph.input:
        array = inputs.get(value.name)
        if isinstance(array, np.ndarray) and value.type.HasField("tensor_type"):
            dims = value.type.tensor_type.shape.dim
            for axis, (dim, size) in enumerate(zip(dims, array.shape, strict=False)):
                name = dim.dim_param or f"{value.name}.{axis}"
                if name in names:
                    yield name, value.name, axis, size


def _read(path: Path, value: onnx.ValueInfoProto) -> Any:
    data = path.read_bytes()
    kind = value.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))
