"""Exports of several files, which appear whole or not at all: a folder or an archive."""

import json
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from placement.files import program
from placement.files.output import beside, drafted, put_in_place

ASSETS = program.ASSETS / "export"
# The same content gives the same archive, whenever it is made.
_MADE = (1980, 1, 1, 0, 0, 0)


@contextmanager
def bundle(path: Path) -> Iterator[Path]:
    """A folder to fill that becomes `path`: an archive where that ends in .zip, else a folder.

    Files that a folder has already give way to new ones of the same name; others stay.
    """
    zipped = path.suffix.lower() == ".zip"
    if zipped and path.is_dir():
        raise IsADirectoryError
    if not zipped and path.exists() and not path.is_dir():
        raise FileExistsError
    path = drafted(path)
    with tempfile.TemporaryDirectory(prefix=".export-", dir=path.parent) as name:
        folder = Path(name)
        yield folder
        if zipped:
            with beside(path) as made:
                _pack(folder, made)
            return
        put_in_place(folder, path)


def add_script(folder: Path, script: str, about: str, content: Mapping[str, Any]) -> None:
    """Put a script into a bundle, and the JSON file `about` from which it knows what to do."""
    (folder / about).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    (folder / script).write_bytes((ASSETS / script).read_bytes())


def _pack(folder: Path, archive: Path) -> None:
    """All files of a folder in an archive; weights hardly shrink, so models are stored as is."""
    with zipfile.ZipFile(archive, "w") as packed:
        for file in sorted(folder.iterdir()):
            entry = zipfile.ZipInfo(file.name, _MADE)
            text = file.suffix not in (".onnx", ".bin", ".npz")
            entry.compress_type = zipfile.ZIP_DEFLATED if text else zipfile.ZIP_STORED
            entry.external_attr = 0o644 << 16
            entry.file_size = file.stat().st_size
            with file.open("rb") as source, packed.open(entry, "w") as target:
                while block := source.read(1 << 20):
                    target.write(block)
