"""External data of ONNX models: only regular files inside the model's own folder are read.

A hard link cannot be told from the file itself, so one that somebody has put into the folder is
read; making one takes the right to write there.
"""

import os
import stat
from pathlib import Path, PurePosixPath, PureWindowsPath

import onnx

from placement.formats.onnx.checks.walk import all_tensors, num_bytes

# By this name onnxruntime means an address in memory instead of a file.
_MEMORY = "_ORT_MEM_ADDR_"
# Path below the model's folder, bytes and modification time in ns of each.
ExternalFiles = tuple[tuple[str, int, int], ...]


def check_external(model: onnx.ModelProto, path: Path) -> ExternalFiles:
    """The data files of a model; ValueError where one must not be read."""
    found = {}
    for tensor in all_tensors(model):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            file, _, _ = _place(tensor, path)
            status = file.stat()
            name = os.path.relpath(file, os.path.realpath(path.parent))
            found[name] = (status.st_size, status.st_mtime_ns)
    return tuple((name, *found[name]) for name in sorted(found))


def load_external(model: onnx.ModelProto, path: Path) -> None:
    """Move the external data into the model."""
    for tensor in all_tensors(model):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            file, offset, length = _place(tensor, path)
            with open(file, "rb") as stream:
                stream.seek(offset)
                data = stream.read(length)
            if len(data) != length:
                raise ValueError(f"External data {file.name!r} became shorter; open it again.")
            tensor.raw_data = data
            del tensor.external_data[:]
            tensor.data_location = onnx.TensorProto.DEFAULT


def _place(tensor: onnx.TensorProto, path: Path) -> tuple[Path, int, int]:
    """File, offset and length of a tensor's data."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    shown = f"External data {location[:200]!r} of tensor {tensor.name[:80]!r} in {path.name!r}"
    if len(entries) < len(tensor.external_data) or _MEMORY in location:
        raise ValueError(
            f"{shown} names no one place in a file of the folder; export the model again."
        )
    file = _inside(location, path, shown)
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", -1))
    except ValueError:
        raise ValueError(f"{shown} has an offset or length that is no number.") from None
    size = file.stat().st_size
    claimed = num_bytes(tuple(tensor.dims), tensor.data_type)
    if length == -1:
        length = claimed
    if length != claimed or offset < 0 or offset + length > size:
        raise ValueError(
            f"{shown} should hold {claimed} bytes from {offset} on, but the file has {size} and the"
            f" model says {length}; put the complete data file beside the model."
        )
    return file, offset, length


def _inside(location: str, path: Path, shown: str) -> Path:
    posix, windows = PurePosixPath(location), PureWindowsPath(location)
    parts = set(posix.parts) | set(windows.parts)
    if not location or posix.is_absolute() or windows.drive or windows.root or ".." in parts:
        raise ValueError(
            f"{shown} lies outside the model's folder, which is not read;"
            " put the data file beside the model."
        )
    folder = os.path.realpath(path.parent)
    if "\0" in location:
        raise ValueError(f"{shown} has a NUL character in its path; export the model again.")
    file = os.path.realpath(os.path.join(folder, location))
    if os.path.commonpath([folder, file]) != folder:
        raise ValueError(
            f"{shown} leads outside the model's folder through a link, which is not followed;"
            " put the data file itself beside the model."
        )
    try:
        status = os.stat(file)
    except OSError:
        raise ValueError(f"{shown} is missing; put the data file beside the model.") from None
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{shown} is not a regular file; put the data file beside the model.")
    return Path(file)
