"""A .pt2 archive as a container: plain entries of one folder, and the JSON in them.

An export is a zip whose entries are stored one after the other, uncompressed, from the first byte
on. Anything else is refused: what begins as another format (a library may open it as that),
entries that overlap or expand, folders beside the first. Nothing in here needs PyTorch.
"""

import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from placement.files.input import parse_json

MAX_ENTRIES = 100_000
MAX_JSON_BYTES = 256 * 2**20
MODEL = "models/model.json"
# Names of values and labels of weights.
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,500}")
LABEL = re.compile(r"[A-Za-z0-9_.\-/:\[\]]{1,500}")
_FIRST_BYTES = b"PK\x03\x04"
_VERSIONS = {"archive_format": b"pt2", "archive_version": b"0", "byteorder": b"little"}


@dataclass(frozen=True)
class Archive:
    """`entries` by their names without the folder that they all share."""

    name: str
    file: zipfile.ZipFile
    entries: dict[str, zipfile.ZipInfo]

    def json(self, name: str) -> Any:
        entry = self._entry(name)
        if entry.file_size > MAX_JSON_BYTES:
            raise bad(f"{name} has {entry.file_size} bytes, more than {MAX_JSON_BYTES}")
        return parse_json(self.file.read(entry), f"{self.name}: {name}")

    def num_bytes(self, name: str) -> int:
        return self._entry(name).file_size

    def read_into(self, name: str, memory: memoryview) -> None:
        """Fills memory of exactly the entry's size."""
        with self.file.open(self._entry(name)) as stream:
            stream.readinto(memory)  # type: ignore[attr-defined]
            stream.read(1)  # the checksum is compared at the end

    def _entry(self, name: str) -> zipfile.ZipInfo:
        if name not in self.entries:
            raise bad(f"it has no {name}")
        return self.entries[name]


class Refused(Exception):
    """What of an archive is not accepted, and what to export instead."""

    def __init__(self, what: str, instead: str = "") -> None:
        super().__init__(what)
        self.what, self.instead = what, instead


def bad(what: str, instead: str = "") -> Refused:
    return Refused(what, instead)


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """The archive while the block runs; whatever is wrong with it is one ValueError."""
    name = path.name
    try:
        if _first_bytes(path) != _FIRST_BYTES:
            raise zipfile.BadZipFile("it does not begin as a zip file")
        with zipfile.ZipFile(path) as file:
            yield Archive(name, file, _checked_entries(file, path.stat().st_size))
    except Refused as error:
        _refuse(name, error.what, error.instead)
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError) as error:
        raise ValueError(
            f"{name!r} is no .pt2 archive ({error}); write it with torch.export.save."
        ) from None
    except (KeyError, TypeError, AttributeError, IndexError, RuntimeError) as error:
        _refuse(name, f"its content is not understood ({error!r:.100})", "")


def _refuse(name: str, what: str, instead: str) -> NoReturn:
    how = f" of {instead}" if instead else ""
    raise ValueError(
        f"{name!r} cannot be opened: {what}; export it again{how} with"
        " torch.export.save(torch.export.export(module.eval(), inputs), path)."
    ) from None


def _checked_entries(file: zipfile.ZipFile, num_bytes: int) -> dict[str, zipfile.ZipInfo]:
    entries = file.infolist()
    if not 0 < len(entries) <= MAX_ENTRIES:
        raise bad(f"it has {len(entries)} entries")
    found = {e.filename.partition("/")[2]: e for e in entries}
    tops = {e.filename.partition("/")[0] for e in entries}
    if len(tops) != 1 or len(found) != len(entries):
        raise bad("its entries are not in one folder, each once")
    if any(e.flag_bits & 1 for e in entries):
        raise bad("it is encrypted")
    packed = next((e for e in entries if e.compress_type != zipfile.ZIP_STORED), None)
    if packed is not None:
        raise bad(f"entry {packed.filename[:80]!r} is compressed, which no export is")
    _require_apart(entries, num_bytes)
    for name, content in _VERSIONS.items():
        if name in found and file.read(found[name])[:100].strip() != content:
            raise bad(f"its {name} is not {content.decode()}")
    models = [name for name in found if name.startswith("models/")]
    if models != [MODEL]:
        raise bad(f"it holds {len(models)} models")
    return found


def _require_apart(entries: list[zipfile.ZipInfo], num_bytes: int) -> None:
    """Entries lie one after the other, the first at the first byte, none in another."""
    end = 0
    for entry in sorted(entries, key=lambda e: e.header_offset):
        if entry.header_offset < end or (end == 0 and entry.header_offset != 0):
            raise bad(f"entry {entry.filename[:80]!r} does not lie behind the one before")
        end = entry.header_offset + 30 + len(entry.filename.encode()) + entry.compress_size
        if entry.compress_size != entry.file_size or end > num_bytes:
            raise bad(f"entry {entry.filename[:80]!r} is larger than its place in the file")


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(len(_FIRST_BYTES))
