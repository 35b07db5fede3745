"""Zip files from strangers: looked over before anything is unpacked, and never unpacked by name.

What can go wrong with a zip: names that lead elsewhere, links, a few kilobytes that grow to
terabytes, millions of empty entries, two entries of one name, entries that lie about their size.
"""

import io
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

_END, _END64 = b"PK\x05\x06", b"PK\x06\x07"
_END_BYTES, _END64_BYTES, _LONGEST_COMMENT = 22, 20, 65_535
_KNOWN_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    UnicodeError,
    ValueError,
)


@dataclass(frozen=True)
class Kind:
    """Files whose names match a pattern as a whole, and how large one may be unpacked."""

    pattern: re.Pattern[str]
    most_bytes: int


class Archive:
    """The files of a zip; a ValueError in plain words for whatever is wrong with it.

    Every name must be of one of the `kinds`; there may be `most_files`, and unpacked all of them
    together may have `most_bytes`.
    """

    def __init__(
        self, content: bytes, kinds: Sequence[Kind], *, most_files: int, most_bytes: int
    ) -> None:
        _count(content, most_files)
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
        except _BROKEN:
            raise ValueError("it is no zip file, or a damaged one.") from None
        self._infos: dict[str, zipfile.ZipInfo] = {}
        for info in self._zip.infolist():
            self._look_at(info, kinds)
        if sum(info.file_size for info in self._infos.values()) > most_bytes:
            raise ValueError(f"unpacked it would have more than {most_bytes // 2**20} MiB.")

    def _look_at(self, info: zipfile.ZipInfo, kinds: Sequence[Kind]) -> None:
        # The name as it was written: a NUL cuts off what `filename` says.
        name, shown = info.orig_filename, repr(info.orig_filename[:80])
        kind = next((k for k in kinds if k.pattern.fullmatch(name)), None)
        if kind is None or name != info.filename:
            raise ValueError(f"it holds {shown}, which is no part of a project.")
        if name in self._infos:
            raise ValueError(f"it holds {shown} twice.")
        unix = info.external_attr >> 16
        if unix and not (stat.S_ISREG(unix) or stat.S_IFMT(unix) == 0):
            raise ValueError(f"{shown} in it is no plain file.")
        if info.flag_bits & _ENCRYPTED:
            raise ValueError(f"{shown} in it is encrypted; export the project again.")
        if info.compress_type not in _KNOWN_METHODS:
            raise ValueError(f"{shown} in it is packed in a way that no project file is.")
        if info.file_size > kind.most_bytes:
            raise ValueError(f"{shown} in it has more than {kind.most_bytes // 2**20} MiB.")
        self._infos[name] = info

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._infos)

    def read(self, name: str) -> bytes:
        """The content of one file: as long as the zip claims, or an error."""
        info = self._infos[name]
        try:
            with self._zip.open(info) as file:
                content = file.read(info.file_size + 1)
        except _BROKEN:
            content = None
        if content is None or len(content) != info.file_size:
            raise ValueError(f"{name!r} in it is damaged; export or download it again.")
        return content


def _count(content: bytes, most_files: int) -> None:
    """Refuse a long table of contents before the library reads it into memory."""
    end = len(content) - _END_BYTES
    if end < 0 or content[end : end + 4] != _END or content[-2:] != b"\0\0":
        end = content.rfind(_END, max(0, len(content) - _END_BYTES - _LONGEST_COMMENT))
    if end < 0 or len(content) - end < _END_BYTES:
        raise ValueError("it is no zip file, or a damaged one.")
    num_files, table_bytes = struct.unpack_from("<HI", content, end + 10)
    has_more = content[max(0, end - _END64_BYTES) :][:4] == _END64
    if has_more or num_files > most_files or table_bytes > 400 * most_files:
        raise ValueError(f"it holds more than {most_files} files.")
