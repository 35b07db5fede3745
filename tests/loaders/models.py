"""Small ONNX models for tests, and where the onnx package keeps its own."""

import functools
import glob
import os
from pathlib import Path

import onnx
from onnx import helper

from placement.core.model import Model
from placement.loaders import load

FLOAT, INT64, BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL


def value(name, shape=None, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(nodes, inputs, outputs, initializers=(), opset=17, **settings):
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializer=list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], **settings)


@functools.cache
def sample(name) -> Model:
    """A bundled network, which is opened once for all that only look at it."""
    return load(name)


def package_files():
    folder = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data")
    return [Path(p) for p in sorted(glob.glob(f"{folder}/**/*.onnx", recursive=True))]
