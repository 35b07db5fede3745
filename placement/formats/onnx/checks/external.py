"""External data of ONNX models: only regular files inside the model's own folder are read.

A hard link cannot be told from the file itself, so one that somebody has put into the folder is
read; making one takes the right to write there.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath

import onnx

from placement.formats.onnx.checks.walk import all_tensors, num_bytes

# By this name onnxruntime means an address in memory instead of a file.
_MEMORY = "_ORT_MEM_ADDR_"
# Smaller weights may be shapes, axes or flags, which are looked at.
SMALL_BYTES = 2**16
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


def load_external(model: onnx.ModelProto, path: Path, most_bytes: int | None = None) -> None:
    """Move the external data into the model.

    Where weights of the graph have more than `most_bytes` of it, the large ones stay outside: their
    location becomes the absolute path of the file, which was checked, with an offset and a length.
    """
    places = [(tensor, _place(tensor, path)) for tensor in external_weights(model.graph)]
    if most_bytes is not None and sum(length for _, (_, _, length) in places) > most_bytes:
        for tensor, (file, offset, length) in places:
            if length > SMALL_BYTES:
                refer(tensor, str(file), offset, length)
    for tensor in all_tensors(model):
        if tensor.data_location == onnx.TensorProto.EXTERNAL and not _stays(tensor):
            file, offset, length = _place(tensor, path)
            with open(file, "rb") as stream:
                stream.seek(offset)
                data = stream.read(length)
            if len(data) != length:
                raise ValueError(f"External data {file.name!r} became shorter; open it again.")
            tensor.raw_data = data
            del tensor.external_data[:]
            tensor.data_location = onnx.TensorProto.DEFAULT


def external_weights(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Weights of a graph whose data lies in a file."""
    for tensor in graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            yield tensor


def refer(tensor: onnx.TensorProto, location: str, offset: int, length: int) -> None:
    """Let the data of a tensor lie in a file."""
    del tensor.external_data[:]
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, entry in (("location", location), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=str(entry))


def place_of(tensor: onnx.TensorProto) -> tuple[str, int, int]:
    """Where the data of a tensor lies that `load_external` has left outside, or `refer` has put
    into a file: location, offset and length."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    return entries["location"], int(entries["offset"]), int(entries["length"])


def _stays(tensor: onnx.TensorProto) -> bool:
    """Whether `load_external` has left its data outside; no file may name an absolute path."""
    return any(e.key == "location" and os.path.isabs(e.value) for e in tensor.external_data)


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
