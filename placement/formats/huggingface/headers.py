"""What the headers of safetensors files say of the tensors in them; no tensor is read.

A file begins with the length of its header in eight bytes, then the header: JSON with the type,
shape and place of each tensor. The place must lie within the file.
"""

import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

SUFFIX = ".safetensors"
MOST_FILES, MOST_BYTES = 2_000, 2**26
_LENGTH = struct.Struct("<Q")
_BITS = {
    "F64": 64, "I64": 64, "U64": 64, "F32": 32, "I32": 32, "U32": 32, "F16": 16, "BF16": 16,
    "I16": 16, "U16": 16, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "I8": 8, "U8": 8, "BOOL": 8,
    "F4": 4,
}  # fmt: skip
DTYPES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}


class _Entry(msgspec.Struct, frozen=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


@dataclass(frozen=True)
class Stored:
    """A tensor as a file has it: type, sizes, and the name of the file."""

    dtype: str
    shape: tuple[int, ...]
    file: str


def stored_in(folder: Path) -> dict[str, Stored]:
    """The tensors of all safetensors files of a folder by name; a ValueError names a bad file."""
    files = sorted(path for path in folder.glob(f"*{SUFFIX}") if path.is_file())
    if len(files) > MOST_FILES:
        raise ValueError(f"The folder has {len(files)} files of weights; {MOST_FILES} are enough.")
    return {name: stored for path in files for name, stored in _header(path)}


def _header(path: Path) -> Iterator[tuple[str, Stored]]:
    num_bytes = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_LENGTH.size)
        length = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else num_bytes
        if length > min(MOST_BYTES, num_bytes - _LENGTH.size):
            raise _bad(path, "its header is longer than the file")
        content = file.read(length)
    room = num_bytes - _LENGTH.size - length
    try:
        rows = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
        rows.pop("__metadata__", None)
        found = {name: msgspec.json.decode(row, type=_Entry) for name, row in rows.items()}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise _bad(path, "its header is none of this format") from None
    for name, entry in found.items():
        begin, end = entry.data_offsets
        bits = _BITS.get(entry.dtype, 0) * math.prod(entry.shape)
        if min(entry.shape, default=0) < 0 or not 0 <= begin <= end <= room:
            raise _bad(path, "a tensor lies outside of the file")
        if bits and (bits + 7) // 8 != end - begin:
            raise _bad(path, "a tensor has more or fewer bytes than its shape needs")
        yield name, Stored(entry.dtype, entry.shape, path.name)


def _bad(path: Path, why: str) -> ValueError:
    return ValueError(f"{path.name[:100]!r} cannot be used: {why}; download it again.")


def confirmed(stored: Mapping[str, Stored], expected: Mapping[str, tuple[int, ...]]) -> int:
    """How many tensors have the shapes that a network expects; a ValueError where one has not.

    Names that only one side has are left alone: a depth that is set, experts that are stored one by
    one, and older names all make some.
    """
    both = sorted(stored.keys() & expected.keys())
    for name in both:
        if stored[name].shape != expected[name] and _BITS.get(stored[name].dtype, 0) >= 16:
            raise ValueError(
                f"The configuration makes {name[:100]!r} a tensor of {list(expected[name])}, but"
                f" {stored[name].file[:100]!r} has {list(stored[name].shape)}; use the"
                " configuration that belongs to the weights."
            )
    return len(both)


def dtype_of(stored: Mapping[str, Stored]) -> str | None:
    """The type that most tensors are stored in, where it is one to compute with."""
    counts: dict[str, int] = {}
    for tensor in stored.values():
        counts[tensor.dtype] = counts.get(tensor.dtype, 0) + math.prod(tensor.shape)
    most = max(sorted(counts), key=counts.__getitem__, default="")
    return DTYPES.get(most)
