"""Policies on disk: arrays of numbers with a note of whose they are.

A safetensors file holds arrays and text and nothing that runs, so that a stranger's policy may be
opened. Its note (a JSON text in the file's metadata) names the learner, the sizes that its network
was made with and the version of this format; names, shapes and numbers are checked against what the
learner expects.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placement.core.decoding import decode, listed, shown
from placement.files.input import json_value, regular_file
from placement.files.output import plain_refusals, write_bytes
from placement.files.program import ASSETS

Arrays = Mapping[str, NDArray[np.float32]]

BUNDLED, SUFFIX = "bundled", ".safetensors"
FOLDER = ASSETS / "policies"
VERSION = 1
# No weight that was learned comes near; far larger ones make chances that are no numbers.
MOST = 1e3
MAX_BYTES, MAX_NOTE_BYTES = 64 * 2**20, 2**20
# A safetensors file begins with the length of its header.
_LENGTH_BYTES = 8
_NOTE = "placement-policy"
_REMEDY = "save it anew, or name another"


@dataclass(frozen=True)
class Note:
    """What a file says of itself: whose policy it is, and what its network was made with."""

    learner: str
    sizes: dict[str, int]
    version: int = VERSION


def path_of(policy: str, learner: str) -> Path | None:
    """The file that a setting names: none where it is empty, and a learner's own by a word."""
    if policy == BUNDLED:
        return FOLDER / f"{learner}{SUFFIX}"
    return Path(policy) if policy else None


def save_policy(path: Path, learner: str, sizes: Mapping[str, int], arrays: Arrays) -> None:
    """Write a policy whole; ValueError says in one sentence why it cannot be."""
    from safetensors.numpy import save

    note = Note(learner, dict(sizes))
    rows = {name: np.asarray(row, dtype=np.float32, order="C") for name, row in arrays.items()}
    content = save(rows, {_NOTE: json.dumps(asdict(note), sort_keys=True)})
    with plain_refusals(path):
        write_bytes(path, content)


def load_policy(
    path: Path, learner: str, sizes: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, NDArray[np.float32]]:
    """The arrays of a learner's policy, each of the shape it should have.

    ValueError says in one sentence what is wrong with the file.
    """
    num_bytes = regular_file(path).stat().st_size
    name = repr(path.name[:200])
    if num_bytes > MAX_BYTES:
        raise ValueError(
            f"The policy {name} has {num_bytes} bytes, more than the {MAX_BYTES} that one may"
            " have; name another."
        )
    try:
        note, arrays = _read(path.read_bytes())
        _check(note, learner, sizes)
        _check_arrays(arrays, shapes)
    except ValueError as error:
        raise ValueError(f"The policy {name} cannot be used: {error}") from None
    return arrays


def require_folder(save: str) -> None:
    """ValueError where a policy could not be written to a path, for its folder is missing."""
    if save and not Path(save).absolute().parent.is_dir():
        raise ValueError(
            f"There is no folder {str(Path(save).parent)!r} to save the policy in; make it or name"
            " another."
        )


def learner_of(path: Path) -> str:
    """The learner that a policy is for, by its note; empty where the file is none."""
    try:
        return note_of(path).learner
    except (OSError, ValueError):
        return ""


def note_of(path: Path) -> Note:
    """Whose policy a file holds, without its arrays; ValueError where it is none."""
    with open(regular_file(path), "rb") as file:
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        return _note(file.read(min(length, MAX_NOTE_BYTES)))


def _read(content: bytes) -> tuple[Note, dict[str, NDArray[Any]]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(content)
    except (SafetensorError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"it is no safetensors file ({error!s:.100}); {_REMEDY}.") from None
    # `load` has checked where the header ends, but leaves out its metadata.
    length = int.from_bytes(content[:_LENGTH_BYTES], "little")
    return _note(content[_LENGTH_BYTES : _LENGTH_BYTES + length]), arrays


def _note(header: bytes) -> Note:
    found = json_value(header)
    about = found.get("__metadata__") if isinstance(found, dict) else None
    text = about.get(_NOTE) if isinstance(about, dict) else None
    if not isinstance(text, str):
        raise ValueError("it does not say which learner it is for; save it here.")
    return decode(json_value(text), Note, remedy=_REMEDY)


def _check(note: Note, learner: str, sizes: Mapping[str, int]) -> None:
    if note.version != VERSION:
        raise ValueError(f"it has version {note.version}, known is {VERSION}; {_REMEDY}.")
    if note.learner != learner:
        raise ValueError(f"it is for {shown(note.learner)}, not {learner!r}; name one for that.")
    if note.sizes != dict(sizes):
        raise ValueError(
            f"its network has the sizes {shown(note.sizes)}, not {dict(sizes)}; {_REMEDY}."
        )


def _check_arrays(arrays: Arrays, shapes: Mapping[str, tuple[int, ...]]) -> None:
    if set(arrays) != set(shapes):
        raise ValueError(f"it holds {listed(sorted(arrays))}, not {listed(shapes)}; {_REMEDY}.")
    for name, shape in shapes.items():
        found = arrays[name]
        if found.shape != shape or found.dtype != np.float32:
            raise ValueError(
                f"its {name!r} is {found.dtype} of shape {found.shape}, not float32 of shape"
                f" {shape}; {_REMEDY}."
            )
        if not (np.abs(found) <= MOST).all():
            raise ValueError(
                f"its {name!r} has numbers that are none or too large for a network; {_REMEDY}."
            )
