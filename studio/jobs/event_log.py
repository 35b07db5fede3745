"""Event files of workers, read as they grow: each line is parsed once, however often one asks."""

import json
import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from studio.project import former_names

MOST_FILES = 64
# Thousands a second, and all that pages show of them is in the result.
_SPAN = b'{"event": "span"'
_lock = threading.Lock()


@dataclass
class _Tail:
    offset: int = 0
    events: list[Mapping[str, Any]] = field(default_factory=list)
    num_garbled: int = 0


_tails: OrderedDict[Path, _Tail] = OrderedDict()


def read(path: Path) -> tuple[tuple[Mapping[str, Any], ...], int]:
    """Events of the whole lines so far, without spans, and the number of lines that are none."""
    with _lock:
        tail = _tails.setdefault(path, _Tail())
        _tails.move_to_end(path)
        while len(_tails) > MOST_FILES:
            _tails.popitem(last=False)
        try:
            _read_on(path, tail)
        except OSError:
            return (), 0
        return tuple(tail.events), tail.num_garbled


def _read_on(path: Path, tail: _Tail) -> None:
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
            event = _parsed(line)
            if event is None:
                tail.num_garbled += 1
            else:
                tail.events.append(event)


def _parsed(line: bytes) -> Mapping[str, Any] | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    known = isinstance(event, dict) and isinstance(event.get("event"), str)
    return former_names.in_record(event) if known else None
