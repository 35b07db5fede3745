"""A process that opens mutated files, with a limit on its memory: what one does harms no other.

It reads cases from standard input, one "KIND NUMBER" per line, and answers each by a line of JSON:
an empty text where the file was opened or refused as it should be, else what went wrong.
"""

import contextlib
import json
import os
import sys
import traceback
from pathlib import Path
from random import Random

DATA_BYTES = 2 * 2**30
LONGEST_SENTENCE = 1_000


def main(seed: str, folder: str) -> None:
    _limit()
    home = Path(folder)
    os.environ["PLACEMENT_STUDIO_HOME"] = str(home / "home")
    os.chdir(home)
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    # Whatever a library prints must not stand among the answers.
    os.dup2(2, 1)
    for line in sys.stdin:
        kind, number = line.split()
        print(json.dumps(fault_of(kind, write_case(kind, seed, int(number), home))), file=answers)


def write_case(kind: str, seed: str, number: int, folder: Path) -> Path:
    """The file of a case; the same for the same kind, seed and number."""
    from tests.fuzz.kinds import KINDS, seeds_of
    from tests.fuzz.mutation import mutated

    rng = Random(f"{seed} {kind} {number}")
    path = folder / f"{kind}-{number}{KINDS[kind].suffix}"
    path.write_bytes(mutated(rng, seeds_of(kind), KINDS[kind].by_field))
    return path


def fault_of(kind: str, path: Path) -> str:
    """What is wrong with how the program opens a file; empty where nothing is."""
    from tests.fuzz.kinds import KINDS

    opened = KINDS[kind]
    must_name = opened.is_named
    try:
        value = opened.read(path)
        must_name = False
        opened.use(value)
    except ValueError as error:
        return _fault_of_refusal(error, path.name if must_name else "")
    except BaseException as error:
        return _told(error)
    finally:
        if path.exists():
            path.rename(path.with_name(f"last-{kind}{path.suffix}"))
    return ""


def _fault_of_refusal(error: ValueError, name: str) -> str:
    """A refusal is one sentence of ours, which names the file where its reader wrote it."""
    said = str(error)
    if type(error) is not ValueError:
        return _told(error)
    if not said or "\n" in said or "Traceback" in said or not said.isprintable():
        return f"not one line: {said[:300]!r}"
    if len(said) > LONGEST_SENTENCE:
        return f"{len(said)} letters: {said[:300]!r}"
    return f"does not name the file: {said[:300]!r}" if name not in said else ""


def _told(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "site-packages" not in f.filename and "<" not in f.filename]
    place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
    return f"{type(error).__name__}: {str(error)[:200]!r} at {place}"


def _limit() -> None:
    with contextlib.suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (DATA_BYTES, DATA_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main(*sys.argv[1:])
