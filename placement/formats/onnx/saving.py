"""An ONNX model as files: large weights go from file to file, and are never in memory as a whole.

A message has 2 GiB at most and a reader holds all of it, so weights above that lie in a file beside
the model, as external data of its own. What lies in another file is copied from there by pieces.
"""

import shutil
from pathlib import Path
from typing import IO

import onnx

from placement.formats.onnx.checks.external import SMALL_BYTES, external_weights, place_of, refer

# Above this weights lie beside the model.
MESSAGE_BYTES = 1_900_000_000
# External data is moved into a model as long as all of it is no more than this.
INSIDE_BYTES = 2**28
_PIECE_BYTES = 2**22
# Weights begin where a page of memory may begin, so that the file can be mapped.
_PAGE_BYTES = 4096


def write_model(model: onnx.ModelProto, path: Path, copies: int = 1) -> None:
    """Write a model, and its large weights beside it as NAME.bin where they are outside or many.

    The model's own references then lead there. ValueError where the disk has no room for so many
    `copies` of such weights, or a file has become shorter.
    """
    far = {tensor.name: place_of(tensor) for tensor in external_weights(model.graph)}
    inside = sum(len(tensor.raw_data) for tensor in model.graph.initializer)
    if far or inside > MESSAGE_BYTES:
        _require_room(path, copies * (inside + sum(length for _, _, length in far.values())))
        data = path.with_suffix(".bin")
        with data.open("wb") as out:
            for tensor in model.graph.initializer:
                if tensor.name in far or len(tensor.raw_data) > SMALL_BYTES:
                    start = out.seek(-(-out.tell() // _PAGE_BYTES) * _PAGE_BYTES)
                    if tensor.name in far:
                        _copy(*far[tensor.name], out)
                    else:
                        out.write(tensor.raw_data)
                        tensor.ClearField("raw_data")
                    refer(tensor, data.name, start, out.tell() - start)
    path.write_bytes(model.SerializeToString())


def _copy(location: str, offset: int, length: int, out: IO[bytes]) -> None:
    with open(location, "rb") as source:
        source.seek(offset)
        while length:
            piece = source.read(min(length, _PIECE_BYTES))
            if not piece:
                name = Path(location).name
                raise ValueError(f"External data {name!r} became shorter; open it again.")
            out.write(piece)
            length -= len(piece)


def _require_room(path: Path, num_bytes: int) -> None:
    free = shutil.disk_usage(path.parent).free
    if num_bytes > free:
        raise ValueError(
            f"Files of the weights need {num_bytes} bytes in {str(path.parent)!r}, {free} are free;"
            " make room there, or set TMPDIR to a folder that has more."
        )
