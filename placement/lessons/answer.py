"""Answer files: what somebody hands in, and nothing that a mark could be read from.

    {"format": "placement-lesson-answer", "lesson": HASH, "problem": FINGERPRINT, "name": "Ada",
     "placement": {"device_of": {...}, "order": [...]}, "moves": [["op", "device"], ...],
     "answers": {"2": "both"}, "hints": [1]}

`answers` go by the number of their task, `hints` are those that were taken. `moves` are the steps
by hand from the lesson's start, in order, where the placement came about like that.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, to_builtins

from placement.core.decoding import decode
from placement.core.placement import Placement, placement_from_json
from placement.files.input import parse_json, regular_file
from placement.lessons.letters import can_be_shown

FORMAT = "placement-lesson-answer"
MOST_BYTES = 16 * 2**20
LONGEST_NAME = 100
MOST_REPLIED = 1e18
REMEDY = "hand in the file that the studio made"

Digits = Annotated[str, Meta(pattern=r"^[1-9][0-9]{0,2}$")]
Word = Annotated[str, Meta(max_length=200)]
# A number of ordinary size, a word, or a list of ops.
Given = (
    Annotated[float, Meta(ge=-MOST_REPLIED, le=MOST_REPLIED)]
    | Word
    | Annotated[tuple[Word, ...], Meta(max_length=1_000)]
)
MOST_MOVES = 100_000
# Ops and devices are called whatever graphs and machines call them.
Moves = Annotated[tuple[tuple[str, str], ...], Meta(max_length=MOST_MOVES)]


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    """What the file says, by its own words; the placement is read as placements are."""

    format: Literal["placement-lesson-answer"]
    lesson: Annotated[str, Meta(max_length=64)]
    problem: Annotated[str, Meta(max_length=64)]
    placement: Mapping[str, Any]
    name: Annotated[str, Meta(max_length=LONGEST_NAME)] = ""
    moves: Moves | None = None
    answers: Annotated[Mapping[Digits, Given], Meta(max_length=200)] = {}
    hints: Annotated[tuple[Annotated[int, Meta(ge=1, le=200)], ...], Meta(max_length=200)] = ()


class Answer(Struct, frozen=True, kw_only=True):
    """What was handed in for a lesson (by its hash) on a problem (by its fingerprint)."""

    lesson: str
    problem: str
    placement: Placement
    name: str = ""
    moves: Moves | None = None
    answers: Mapping[str, Given] = {}
    hints: tuple[int, ...] = ()

    def to_text(self) -> str:
        content = {
            "format": FORMAT,
            "lesson": self.lesson,
            "problem": self.problem,
            "name": self.name,
            "placement": self.placement.to_json(),
            "moves": self.moves,
            "answers": to_builtins(self.answers),
            "hints": list(self.hints),
        }
        return json.dumps(content, indent=1) + "\n"


def read_answer(path: Path) -> Answer:
    """The answer in a file; a ValueError names the file and says why it is none."""
    _require_small(regular_file(path).stat().st_size, path.name)
    return answer_of(path.read_bytes(), path.name)


def answer_of(content: bytes, name: str) -> Answer:
    """The answer in the content of a file that is called `name`."""
    _require_small(len(content), name)
    found = parse_json(content, name)
    try:
        file = decode(found, _File, remedy=REMEDY)
        if not can_be_shown(file.name):
            raise ValueError(f"name: it holds what cannot be shown; {REMEDY}.")
        placement = placement_from_json(dict(file.placement))
    except ValueError as error:
        raise ValueError(f"The answer {name[:200]!r} cannot be used: {error}") from None
    return Answer(
        lesson=file.lesson,
        problem=file.problem,
        placement=placement,
        name=file.name,
        moves=file.moves,
        answers=file.answers,
        hints=tuple(sorted(set(file.hints))),
    )


def _require_small(size: int, name: str) -> None:
    if size > MOST_BYTES:
        raise ValueError(
            f"{name[:200]!r} has {size} bytes, more than the {MOST_BYTES} that an answer may"
            f" have; {REMEDY}."
        )
