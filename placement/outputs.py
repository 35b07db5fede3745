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

from placement.files import DRAFTS, is_no_file, plain_refusals


@dataclass(frozen=True)
class Drafts:
    """Folders that a process may write in, and the environment that tells it what they are for."""

    folders: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None

    @property
    def variables(self) -> Mapping[str, str]:
        return self.environment or {}


@contextmanager
def drafts(paths: Iterable[Path]) -> Iterator[Drafts]:
    """Drafts of some outputs, which take their places at the end if they were written.

    A ValueError says in one sentence which output could not be written, and why.
    """
    written = [path for path in paths if path.is_dir() or not is_no_file(path)]
    real = [Path(os.path.realpath(path)) for path in written]
    made: dict[Path, str] = {}
    try:
        for path in real:
            if path.parent.is_dir() and path.parent not in made:
                with plain_refusals(path):
                    made[path.parent] = tempfile.mkdtemp(prefix=".placement-", dir=path.parent)
        named = {str(folder): draft for folder, draft in made.items()}
        yield Drafts(tuple(made.values()), {DRAFTS: json.dumps(named)})
        for path in real:
            if path.parent in made:
                with plain_refusals(path):
                    _put(Path(made[path.parent]) / path.name, path)
    finally:
        for draft in made.values():
            shutil.rmtree(draft, ignore_errors=True)


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
