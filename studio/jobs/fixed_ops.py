"""What a method may not move, as options of the command line: pins, and all but some ops."""

from collections.abc import Sequence
from pathlib import Path

from placement.core.fingerprint import fingerprint_of
from studio.project.files import write_json
from studio.snapshot import Studio

# More than these make a command that nobody reads, and at some number one that no shell takes.
MOST_ON_THE_LINE = 4
MOST_LETTERS = 200


def options(now: Studio, ops: Sequence[str] = (), *, lasting: bool = False) -> list[str]:
    """Options of `place` that hold the pinned ops and, where ops are given, all the others.

    What is too long for a command stays in a file. With `lasting`, pins are copied to one that no
    later edit touches, as a job needs that reads it a moment later.
    """
    # With an equals sign, because an op's name may begin with a dash.
    argv = [f"--pin={op}={device}" for op, device in now.pins.items()]
    if len(argv) > MOST_ON_THE_LINE or sum(map(len, argv)) > MOST_LETTERS:
        kept = now.shelf.pins_path
        argv = ["--pins", str(_kept(now, "pins", dict(now.pins)) if lasting else kept)]
    if ops:
        argv += ["--keep", str(_kept(now, "placement", now.placement.to_json()))]
        argv += ["--move", str(_kept(now, "ops", list(ops)))]
    # Measuring may show that more ops move together than was known when they were pinned.
    return [*argv, "--mend"] if argv else []


def _kept(now: Studio, what: str, content: object) -> Path:
    path = now.project.folder / "held" / f"{what}-{fingerprint_of(content)}.json"
    if not path.exists():
        write_json(path, content)
    return path
