"""What a confined process writes for whoever started it, and how that gets into its place.

A right to write in the folder of an output would be one to all that lies below it, this program
perhaps. So the process gets an empty folder beside the output, writes there what is named like the
output, and whoever started it moves that, once it has ended, and nothing else.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from placement.files.output import DRAFTS, is_no_file, plain_refusals


@dataclass(frozen=True)
class Drafts:
    """Folders that a process may write in, and the environment that tells it what they are for."""

    folders: tuple[str, ...]
    variables: Mapping[str, str]


@contextmanager
def drafts(paths: Iterable[Path]) -> Iterator[Drafts]:
    """Drafts of some outputs, which take their places at the end if they were written.

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
                _put(draft, path)
    finally:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


def _put(draft: Path, path: Path) -> None:
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
