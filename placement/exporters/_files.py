"""Files that appear whole or not at all, and refusals of the file system in plain words."""

import os
import secrets
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# The same content gives the same archive, whenever it is made.
_MADE = (1980, 1, 1, 0, 0, 0)


@contextmanager
def plain_refusals(path: Path) -> Iterator[None]:
    """Turn what the file system says against writing `path` into one sentence for people."""
    if not path.parent.is_dir():
        raise ValueError(f"There is no folder {str(path.parent)!r}; make it, or write elsewhere.")
    try:
        yield
    except PermissionError:
        raise ValueError(
            f"Writing {str(path)!r} is not permitted; choose another folder."
        ) from None
    except IsADirectoryError:
        raise ValueError(f"{str(path)!r} is a folder; name a file to write.") from None
    except (FileExistsError, NotADirectoryError):
        raise ValueError(f"{str(path)!r} is a file; name a folder, or end in .zip.") from None
    except OSError as error:
        raise ValueError(f"{str(path)!r} cannot be written: {error.strerror or error}.") from None


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file whole; what stood there stays if anything goes wrong."""
    if path.is_dir():
        raise IsADirectoryError
    with _beside(path) as made:
        made.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """The same for text; characters that UTF-8 has not (lone halves of pairs) become "?"."""
    write_bytes(path, text.encode("utf-8", "replace"))


@contextmanager
def bundle(path: Path) -> Iterator[Path]:
    """A folder to fill that becomes `path`: an archive where that ends in .zip, else a folder.

    Files that a folder has already give way to new ones of the same name; others stay.
    """
    zipped = path.suffix.lower() == ".zip"
    if zipped and path.is_dir():
        raise IsADirectoryError
    with tempfile.TemporaryDirectory(prefix=".export-", dir=path.parent) as name:
        folder = Path(name)
        yield folder
        if zipped:
            with _beside(path) as made:
                _pack(folder, made)
            return
        path.mkdir(exist_ok=True)
        for file in sorted(folder.iterdir()):
            os.replace(file, path / file.name)


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


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A new file in the same folder, which takes the place of `path` in the end."""
    made = path.parent / f".export-{secrets.token_hex(8)}"
    try:
        yield made
        os.replace(made, path)
    finally:
        made.unlink(missing_ok=True)
