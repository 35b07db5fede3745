"""What confined processes are asked and answer, as bytes: requests pickled, answers MessagePack.

An answer is a row of frames: a letter that says what it is, its length, and its content.
"""

from __future__ import annotations

import copyreg
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from placement.core.graph import Graph
from placement.core.model import SymbolicDim
from placement.core.problem import Problem
from placement.parallel import encoding
from placement.parallel.encoding import encoded as encoded

HEAD = struct.Struct("<cQ")
EVENT, RESULT, REFUSAL = b"e", b"r", b"x"
MOST_BYTES = 2**31
CANCELLED = "It was cancelled; nothing was kept."


def _frozen(mapping: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(mapping)


copyreg.pickle(MappingProxyType, lambda mapping: (_frozen, (dict(mapping),)))


@dataclass(frozen=True)
class Request:
    """Something to do in a confined process with the model in a file.

    `verb` is "load", "pose" (a lesson and its folder stand in `args`) or "module:function";
    `content` the fingerprint of the graph and the hash of what the file had in it when it was
    opened; `args` come after the model. `writes` is the output that is asked for, `hears` and
    `stops` say whether somebody listens and may stop it. `measuring` says that whoever waits for
    the answer holds the measuring lock.
    """

    verb: str
    source: str
    dims: tuple[tuple[str, int | str], ...]
    content: tuple[str, ...] = ()
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    writes: str = ""
    hears: bool = False
    stops: bool = False
    measuring: bool = False


@dataclass(frozen=True)
class Opened:
    """What a confined process says of a file: a model whose executable side is only named.

    `format` and `content_hash` are empty where it has none.
    """

    graph: Graph
    format: str
    content_hash: str
    symbolic_dims: tuple[SymbolicDim, ...]
    problem: Problem | None
    notes: tuple[str, ...]
    has_weights: bool = True


def decoded(content: bytes, kind: Any) -> Any:
    """The value of a type in some bytes; a RuntimeError where it is of another."""
    try:
        return encoding.decoded(content, kind)
    except ValueError as error:
        raise RuntimeError(f"A confined process gave an answer that is none ({error}).") from None
