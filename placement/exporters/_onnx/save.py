"""A model or a part of it as ONNX files, weights beside it where they are too large."""

from pathlib import Path

import onnx

from placement.core.model import Model
from placement.exporters.base import without_content
from placement.formats.onnx.saving import INSIDE_BYTES, write_model


def proto_of(model: Model) -> onnx.ModelProto:
    """The model's nodes and weights, named like its graph; large ones may stay outside.

    The ValueError of a file that has changed or gone is the loader's.
    """
    found: onnx.ModelProto = model.content().model_proto(INSIDE_BYTES)
    return found


def save(proto: onnx.ModelProto, folder: Path, stem: str) -> str:
    """Write `proto`, a part of a model or all of it; the file's name is returned."""
    name = f"{stem}.onnx"
    write_model(proto, folder / name)
    return name


def not_onnx(model: Model) -> str:
    """Why a model has no ONNX nodes to write, empty if it has."""
    return without_content(model, "onnx", "not an ONNX model; this format is made of ONNX nodes")
