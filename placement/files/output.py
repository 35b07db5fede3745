"""Files that appear whole or not at all, and what keeps one from being written in plain words."""

import errno
import json
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

PRIVATE, COMMON = 0o600, 0o666
# In a confined process: where it writes each of its outputs, by their real paths (`drafts`).
DRAFTS = "PLACEMENT_DRAFTS"
# Folders of file systems take 255 bytes for a name; a draft's has a few letters more.
_MOST_LETTERS = 60
_ELSEWHERE = "use another folder"
# By number: why, and what to do about it.
_CAUSES = {
    errno.ENOSPC: ("the disk is full", "make room on that disk"),
    errno.EDQUOT: ("your share of the disk is used up", "remove files of yours there"),
    errno.EFBIG: (
        "it would be larger than files may be here",
        "raise the limit on the size of files (ulimit -f)",
    ),
    errno.EROFS: ("that file system can only be read", f"make it writable, or {_ELSEWHERE}"),
    errno.EACCES: ("you have no right to", f"give yourself the right, or {_ELSEWHERE}"),
    errno.EPERM: ("that is not permitted", f"give yourself the right, or {_ELSEWHERE}"),
    errno.EIO: ("the disk reports an error", "look after that disk"),
}
_UNKNOWN = f"mend that, or {_ELSEWHERE}"
_ERRNO = re.compile(r"\[Errno (\d+)\]")


class NotWritten(OSError):
    """A file that could not be written; as text one sentence: which, why, and what to do.

    `lost` says what of a person's is not saved for that; whoever knows best says it first.
    """

    def __init__(self, path: Path, error: OSError, lost: str = "") -> None:
        number = _number(error)
        why, self.remedy = _CAUSES.get(number, (error.strerror or str(error), _UNKNOWN))
        super().__init__(number, why, str(path))
        self.lost = lost

    def __str__(self) -> str:
        return f"{self.filename!r} cannot be written: {self.strerror}; {self.remedy}."

    @property
    def of_folder(self) -> str:
        """The same for whoever knows the studio's folder, but not what files there are."""
        folder = str(_standing(Path(self.filename).parent))
        named = " (PLACEMENT_STUDIO_HOME names it)" if self.remedy.endswith(_ELSEWHERE) else ""
        what = "A file in the folder" if self.errno == errno.EFBIG else "The folder"
        return f"{what} {folder!r} cannot be written: {self.strerror}; {self.remedy}{named}."


def _number(error: OSError) -> int:
    """The error's number; where a whole folder was copied, that of the first file."""
    if isinstance(error, shutil.Error):
        found = _ERRNO.search(str(error))
        return int(found[1]) if found else 0
    return error.errno or 0


def _standing(folder: Path) -> Path:
    """The folder, or the nearest one around it that is there."""
    while folder != folder.parent and not os.path.isdir(folder):
        folder = folder.parent
    return folder


@contextmanager
def refusals(path: Path, lost: str = "") -> Iterator[None]:
    """Turn what the file system says against writing `path` into NotWritten.

    What is missing is told as it is: the caller knows better.
    """
    with losing(lost):
        try:
            yield
        except (NotWritten, FileNotFoundError):
            raise
        except OSError as error:
            raise NotWritten(path, error, lost) from None


@contextmanager
def losing(lost: str) -> Iterator[None]:
    """Let NotWritten say what is lost for it, unless somebody has said so who knows better."""
    try:
        yield
    except NotWritten as error:
        error.lost = error.lost or lost
        raise


@contextmanager
def plain_refusals(path: Path) -> Iterator[None]:
    """Turn what the file system says against writing `path` into one sentence for people."""
    if not path.parent.is_dir():
        raise ValueError(f"There is no folder {str(path.parent)!r}; make it, or write elsewhere.")
    try:
        yield
    except NotWritten as error:
        raise ValueError(str(error)) from None
    except IsADirectoryError:
        raise ValueError(f"{str(path)!r} is a folder; name a file to write.") from None
    except (FileExistsError, NotADirectoryError):
        raise ValueError(f"{str(path)!r} is a file; name a folder, or end in .zip.") from None
    except OSError as error:
        raise ValueError(str(NotWritten(path, error))) from None


@contextmanager
def beside(path: Path, mode: int = COMMON) -> Iterator[Path]:
    """A new file in the same folder, which takes the place of `path` in the end."""
    made = path.parent / f".{path.name[:_MOST_LETTERS]}.{secrets.token_hex(8)}"
    try:
        os.close(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
        yield made
        os.replace(made, path)
    finally:
        with suppress(OSError):
            made.unlink()


def drafted(path: Path) -> Path:
    """Where to write an output: its real path, or its draft where that is put into its place."""
    real = Path(os.path.realpath(path))
    return Path(json.loads(os.environ.get(DRAFTS, "{}")).get(str(real), real))


def write_bytes(path: Path, content: bytes, mode: int = COMMON) -> None:
    """Replace a file whole; what stood there stays if anything goes wrong.

    Through a link the file that it leads to is replaced; what is no file (a terminal, /dev/null)
    is written to as it is.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
    with refusals(path):
        if is_no_file(path):
            path.write_bytes(content)
            return
        with beside(drafted(path), mode) as made:
            made.write_bytes(content)


def is_no_file(path: Path) -> bool:
    """Whether it is something to write into as it is; behind /dev/stdout others write too."""
    return str(path).startswith(("/dev/", "/proc/")) or (path.exists() and not path.is_file())


def write_text(path: Path, text: str) -> None:
    """The same for text; characters that UTF-8 has not (lone halves of pairs) become "?"."""
    write_bytes(path, text.encode("utf-8", "replace"))


def require_room(*paths: str | None) -> None:
    """ValueError where a file that is to be written in the end could not even be begun."""
    for path in map(Path, filter(None, paths)):
        if not is_no_file(path) and not path.is_dir():
            with plain_refusals(path), suppress(_Given), beside(drafted(path)):
                raise _Given


class _Given(Exception):
    """Leaves a draft without putting it in its place."""


@dataclass(frozen=True)
class Drafts:
    """Folders that a process may write in, and the environment that tells it what they are for."""

    folders: tuple[str, ...]
    variables: Mapping[str, str]


@contextmanager
def drafts(paths: Iterable[Path]) -> Iterator[Drafts]:
    """Drafts of some outputs, which take their places at the end if they were written.

    A right to write in the folder of an output would be one to all that lies below it, this program
    perhaps. So a confined process gets an empty folder beside the output, writes there what is
    named like the output, and whoever started it moves that, once it has ended, and nothing else.
    A ValueError says in one sentence which output could not be written, and why.
    """
    written = [path for path in paths if path.is_dir() or not is_no_file(path)]
    real = [Path(os.path.realpath(path)) for path in written]
    folders: list[str] = []
    draft_of: dict[Path, Path] = {}
    try:
        for path in real:
            # Who writes says that there is no such folder.
            if path.parent.is_dir():
                with plain_refusals(path):
                    folders.append(tempfile.mkdtemp(prefix=".placement-", dir=path.parent))
                draft_of[path] = Path(folders[-1]) / path.name
        named = {str(path): str(draft) for path, draft in draft_of.items()}
        yield Drafts(tuple(folders), {DRAFTS: json.dumps(named)})
        for path, draft in draft_of.items():
            with plain_refusals(path):
                put_in_place(draft, path)
    finally:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


def put_in_place(draft: Path, path: Path) -> None:
    """Replace a file, or those of a folder, by what was written; links and the like stay away."""
    if draft.is_symlink():
        return
    if draft.is_file():
        os.replace(draft, path)
    elif draft.is_dir():
        path.mkdir(exist_ok=True)
        for file in sorted(draft.iterdir()):
            if file.is_file() and not file.is_symlink():
                os.replace(file, path / file.name)
