"""What workers say, line by line: read as their files grow, each line decoded once.

Events are no tagged union of msgspec, which would have one type by name: a row is what `compare`
gives anyway, and a result has the type of its verb.
"""

import json
import os
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import Struct

from placement.api.results.placing import CompareRow
from placement.api.results.training import Move, Stay
from placement.api.results.verbs import Result, result_from_json
from placement.core.decoding import decode
from placement.core.profile import Profile, profile_from_json
from studio.project import former_names

MOST_FILES = 64
# Thousands a second, and all that pages show of them is in the result.
_SPAN = b'{"event": "span"'
_lock = threading.Lock()


class Progress(Struct, frozen=True, kw_only=True):
    """How far a job is; a method also tells its seconds, its best value and a proven bound.

    One that tries placements tells how many it has tried, what they come to on average of late
    (`mean`, in `unit`), and the entropy of its decisions (0: it does not learn).
    """

    what: str = ""
    step: int | None = None
    of: int | None = None
    seconds: float | None = None
    best: float | None = None
    bound: float | None = None
    unit: str = "s"
    note: str = ""
    evaluations: int = 0
    mean: float | None = None
    entropy: float = 0.0


class Waiting(Struct, frozen=True, kw_only=True):
    """Another job measures on this computer; `holder` says which."""

    holder: str = ""


class Step(Struct, frozen=True, kw_only=True):
    """A step has run, or a sample has come out."""

    seconds: float
    loss: float | None = None
    predicted_s: float | None = None


class Lost(Struct, frozen=True, kw_only=True):
    """Devices have left in the middle; a run begins again without them, training goes on."""

    message: str = ""
    devices: tuple[str, ...] = ()


class NotKept(Struct, frozen=True, kw_only=True):
    """What was measured and could not be stored."""

    profile: Profile


class Damaged(Struct, frozen=True, kw_only=True):
    """A result that is none, and why."""

    why: str


Event = Progress | Waiting | Step | Lost | NotKept | Damaged | Move | Stay | CompareRow | Result
_KINDS: dict[str, type[Any]] = {
    "progress": Progress,
    "waiting": Waiting,
    "step": Step,
    "lost": Lost,
    "row": CompareRow,
    "move": Move,
    "stay": Stay,
}


@dataclass
class _Tail:
    offset: int = 0
    events: list[Event] = field(default_factory=list)
    num_garbled: int = 0


_tails: OrderedDict[Path, _Tail] = OrderedDict()


def read(path: Path, verb: str) -> tuple[tuple[Event, ...], int]:
    """Events of the whole lines so far, without spans, and the number of lines that are none.

    What is called after something unknown, as by a later version, is passed over.
    """
    with _lock:
        tail = _tails.setdefault(path, _Tail())
        _tails.move_to_end(path)
        while len(_tails) > MOST_FILES:
            _tails.popitem(last=False)
        try:
            _read_on(path, verb, tail)
        except OSError:
            return (), 0
        return tuple(tail.events), tail.num_garbled


def _read_on(path: Path, verb: str, tail: _Tail) -> None:
    with open(path, "rb") as file:
        # Who writes faster than this reads would otherwise keep it here for good.
        end = os.fstat(file.fileno()).st_size
        file.seek(tail.offset)
        for line in file:
            if not line.endswith(b"\n") or tail.offset >= end:
                return
            tail.offset += len(line)
            if line.startswith(_SPAN) or not line.strip():
                continue
            try:
                event = decoded(json.loads(line), verb)
            except ValueError:
                tail.num_garbled += 1
            else:
                tail.events += [] if event is None else [event]


def decoded(content: Any, verb: str) -> Event | None:
    """An event that a verb's worker told; None for one of another kind, a ValueError for none."""
    name = content.get("event") if isinstance(content, dict) else None
    if not isinstance(name, str):
        raise ValueError("A line of a worker is no event.")
    content = former_names.in_record(content)
    if name == "result":
        try:
            return result_from_json(verb, content)
        except ValueError as error:
            return Damaged(why=str(error))
    if name == "not_kept":
        return NotKept(profile=profile_from_json(content.get("profile")))
    found: Event | None = decode(content, _KINDS[name]) if name in _KINDS else None
    return found
