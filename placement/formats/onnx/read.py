"""Reading an ONNX file: bytes to a checked ModelProto, weights in place, external data not yet."""

from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from placement.files.input import regular_file
from placement.formats.onnx.checks.claims import check_limits
from placement.formats.onnx.checks.external import ExternalFiles, check_external
from placement.formats.onnx.checks.schema import check_text
from placement.formats.onnx.checks.walk import MAX_FILE_BYTES


def read_onnx(path: Path) -> onnx.ModelProto:
    """The model in a file; ValueError with one sentence where it is none, damaged or too large."""
    return parse_with_external(read_bytes(path), path)[0]


def read_bytes(path: Path) -> bytes:
    """The file's bytes; ValueError where protobuf could not hold them anyway."""
    size = regular_file(path).stat().st_size
    if size > MAX_FILE_BYTES:
        raise ValueError(
            f"{path.name!r} has {size} bytes, more than the {MAX_FILE_BYTES} that one protobuf"
            " message may have; save its weights as external data."
        )
    return path.read_bytes()


def parse_with_external(data: bytes, path: Path) -> tuple[onnx.ModelProto, ExternalFiles]:
    """The checked model in what `read_bytes` returned for `path`, and its data files."""
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, UnicodeDecodeError):
        raise ValueError(
            f"{path.name!r} is not an ONNX model, or it is damaged or cut off;"
            " export or download it again."
        ) from None
    # How a model was trained is nothing that anybody here runs, draws or writes.
    model.ClearField("training_info")
    if not model.HasField("graph") or not (model.graph.node or model.graph.output):
        raise ValueError(
            f"{path.name!r} holds no ONNX graph (it is another kind of file, or cut off);"
            " export or download it again."
        )
    if not model.opset_import and model.ir_version >= 3:
        raise ValueError(
            f"{path.name!r} names no operator set (it is damaged or cut off);"
            " export or download it again."
        )
    check_text(model, path.name)
    check_limits(model, path.name)
    return model, check_external(model, path)
