"""What a search and its relay tell each other: MessagePack behind its length."""

import struct
from collections.abc import Mapping
from typing import IO

import msgspec

from placement.parallel.encoding import read_whole

HEAD = struct.Struct("<Q")


class Frame(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A frame; which one it is, its first field says."""


class Share(Frame, frozen=True):
    """The bytes of a value that calls share."""

    key: str
    content: bytes


class Drop(Frame, frozen=True):
    """No call shares this value any more."""

    key: str


class Ask(Frame, frozen=True):
    """A call; see `placement.parallel.executor.Job`. The clock is that of this computer."""

    number: int
    name: str
    shared: tuple[str, ...]
    args: tuple[bytes, ...]
    until_s: float
    whole: bool


class Cancel(Frame, frozen=True):
    """Nobody waits for these calls any more."""

    numbers: tuple[int, ...]


class Ready(Frame, frozen=True):
    """The hosts that there are, with their cores."""

    cores: Mapping[str, int]


class Refused(Frame, frozen=True):
    """Why nothing can be asked of this cluster, in a sentence."""

    message: str


class Answered(Frame, frozen=True):
    """What a call answers."""

    number: int
    content: bytes


class Undone(Frame, frozen=True):
    """A call that no host could carry out, and why."""

    number: int
    why: str


class HostLost(Frame, frozen=True):
    """A host has left; the others have so many cores."""

    host: str
    num_lanes: int


class ProcessEnded(Frame, frozen=True):
    """A process that carries out calls has ended, and another one takes its place."""


_KINDS = Share | Drop | Ask | Cancel | Ready | Refused | Answered | Undone | HostLost | ProcessEnded


def write(stream: IO[bytes], frame: Frame) -> None:
    content = msgspec.msgpack.encode(frame)
    left = memoryview(HEAD.pack(len(content)) + content)
    while left:
        left = left[stream.write(left) :]


def read(stream: IO[bytes]) -> Frame | None:
    """The next frame, None at the end."""
    head = read_whole(stream, HEAD.size)
    if len(head) < HEAD.size:
        return None
    content = read_whole(stream, HEAD.unpack(head)[0])
    found: Frame = msgspec.msgpack.decode(content, type=_KINDS)
    return found
