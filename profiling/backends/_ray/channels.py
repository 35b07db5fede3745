"""Values of a step between hosts: from actor to actor, by a connection of their own.

A call of an actor goes through queues at both ends, and what is above 100 KB waits for the object
directory of its owner, too. Ray's channels in shared memory, which its compiled graphs use, are
quicker, but whoever waits for one tries again and again: with some of them lanes had half of their
core left. Nobody computes while a connection (TCP, RFC 9293) waits. It carries the bytes of arrays
and no objects, so that nothing that comes is ever run; whoever connects has to know a secret that
Ray tells the hosts of a cluster alone. Like all that Ray sends it is not encrypted.
"""

import hmac
import math
import secrets
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np

# To be connected, to say who one is, and to have a message taken.
CONNECT_S, GREETING_S, SEND_S = 5.0, 5.0, 10.0
SECRET_BYTES, HELLO = 32, b"\x01"
# Kinds of numpy's numbers, whose bytes mean the same on all hosts of one kind of processor.
_PLAIN = "biufc"
_SIZE, _MOST_HEAD_BYTES = struct.Struct("!I"), 2**26
# Where an array begins in memory, and buffers in one call of the system.
_ALIGNED, _AT_ONCE = 64, 512
Told = Callable[[str, int, int, Mapping[str, Any]], object]


class Laid(msgspec.Struct, frozen=True, array_like=True):
    """How the bytes of an array are to be read."""

    dtype: str
    shape: tuple[int, ...]


class Named(msgspec.Struct, frozen=True, array_like=True):
    """A value: an array, or a list of some."""

    name: str
    is_list: bool
    arrays: tuple[Laid, ...]


class Head(msgspec.Struct, frozen=True, array_like=True):
    """What comes before the bytes of a message: of which segment of which program it is."""

    number: int
    segment: int
    values: tuple[Named, ...]


class Entry(msgspec.Struct, frozen=True):
    """Where a host is reached, and the secret that opens it."""

    address: str
    port: int
    secret: bytes


class Outgoing:
    """The channel from the host of this process to another one, which its lanes share.

    OSError where the other host cannot be reached so.
    """

    def __init__(self, own: str, reader: Any, entry: Entry) -> None:
        self.reader, self.entry, self.is_open = reader, entry, True
        self._lock = threading.Lock()
        self._socket = socket.create_connection((entry.address, entry.port), CONNECT_S)
        try:
            name = own.encode()
            self._socket.settimeout(GREETING_S)
            self._socket.sendall(entry.secret + _SIZE.pack(len(name)) + name)
            # Only then its reader is there.
            if self._socket.recv(len(HELLO)) != HELLO:
                raise ConnectionError("the other host does not know this one")
        except OSError:
            self._socket.close()
            raise
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.settimeout(SEND_S)

    def send(self, number: int, segment: int, values: Mapping[str, Any]) -> bool:
        """Give a message away; False where it has to go another way."""
        named, buffers = [], list[memoryview]()
        for name, value in values.items():
            is_list = isinstance(value, list | tuple)
            arrays = [_plain(each) for each in (value if is_list else [value])]
            if any(array is None for array in arrays):
                return False
            laid = tuple(Laid(a.dtype.str, a.shape) for a in arrays if a is not None)
            named.append(Named(name, is_list, laid))
            buffers += [memoryview(a.reshape(-1).view(np.uint8)) for a in arrays if a is not None]
        head = msgspec.msgpack.encode(Head(number, segment, tuple(named)))
        first = memoryview(_SIZE.pack(len(head)) + head)
        with self._lock:
            try:
                _send(self._socket, [first, *(b for b in buffers if b.nbytes)])
            except OSError:
                # Half of a message may be there, which only an end tells from a whole one.
                self.close()
                return False
        return True

    def close(self) -> None:
        """End whoever reads."""
        self.is_open = False
        _end(self._socket)


class Door:
    """Where other hosts connect to this process; what they send is `told` in a thread of each.

    Arrays are memory of the channel, which whoever is told may not keep. Errors of a message are
    theirs to note: here they end nothing.
    """

    def __init__(self, address: str, told: Told) -> None:
        self._told, self._lock = told, threading.Lock()
        self._incoming: dict[str, socket.socket] = {}
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._socket = socket.create_server((address, 0), family=family)
        port = int(self._socket.getsockname()[1])
        self.entry = Entry(address, port, secrets.token_bytes(SECRET_BYTES))
        threading.Thread(target=self._open, name="door", daemon=True).start()

    @property
    def hosts(self) -> list[str]:
        """Who is connected."""
        with self._lock:
            return sorted(self._incoming)

    def forget(self, host: str) -> None:
        """Hear no more of that host."""
        with self._lock:
            found = self._incoming.pop(host, None)
        _end(found)

    def close(self) -> None:
        """Let nobody in any more."""
        # To close it alone would leave the thread that waits for others.
        _end(self._socket)
        for host in self.hosts:
            self.forget(host)

    def _open(self) -> None:
        while True:
            try:
                found, _ = self._socket.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._read, args=(found,), name="channel", daemon=True).start()

    def _read(self, found: socket.socket) -> None:
        """All messages of one that has connected, if it may."""
        host = ""
        try:
            host = self._greeted(found)
            for number, segment, values in _messages(found):
                with suppress(Exception):
                    self._told(host, number, segment, values)
        except (OSError, EOFError, ValueError):
            """It has ended, or was none of us."""
        finally:
            with self._lock:
                if self._incoming.get(host) is found:
                    del self._incoming[host]
            found.close()

    def _greeted(self, found: socket.socket) -> str:
        """The host that has connected, in the place of its connection before."""
        found.settimeout(GREETING_S)
        if not hmac.compare_digest(_exactly(found, SECRET_BYTES), self.entry.secret):
            raise EOFError
        host = _sized(found).decode()
        self.forget(host)
        with self._lock:
            self._incoming[host] = found
        found.settimeout(None)
        # Of a host that has lost its power nothing is heard otherwise.
        found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        found.sendall(HELLO)
        return host


def _messages(found: socket.socket) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """What comes by a connection; the memory of each message is that of the next one."""
    decoder, memory = msgspec.msgpack.Decoder(Head), np.empty(0, np.uint8)
    while True:
        head = decoder.decode(_sized(found))
        sizes = [_num_bytes(laid) for value in head.values for laid in value.arrays]
        starts = np.cumsum([0, *(-(-size // _ALIGNED) * _ALIGNED for size in sizes)]).tolist()
        if starts[-1] > memory.size:
            memory = np.empty(2 * starts[-1], np.uint8)
        places = [memory[at : at + size] for at, size in zip(starts, sizes, strict=False)]
        for place in places:
            _fill(found, place.data)
        arrays, values = iter(places), dict[str, Any]()
        for value in head.values:
            read = [
                next(arrays).view(np.dtype(laid.dtype)).reshape(laid.shape) for laid in value.arrays
            ]
            # Lists are not copied by those who take them.
            values[value.name] = [each.copy() for each in read] if value.is_list else read[0]
        yield head.number, head.segment, values


def _plain(value: Any) -> Any:
    """The value as an array whose bytes can be sent, None where there are none."""
    if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in _PLAIN:
        return None
    return np.ascontiguousarray(value).reshape(value.shape)


def _num_bytes(laid: Laid) -> int:
    return math.prod(laid.shape) * np.dtype(laid.dtype).itemsize


def _send(to: socket.socket, buffers: Sequence[memoryview]) -> None:
    """All of these bytes, one after the other."""
    left = list(buffers)[::-1]
    while left:
        num_sent = to.sendmsg(left[: -_AT_ONCE - 1 : -1])
        while left and num_sent >= left[-1].nbytes:
            num_sent -= left.pop().nbytes
        if num_sent:
            left[-1] = left[-1][num_sent:]


def _sized(found: socket.socket) -> bytes:
    """Bytes that come after their number."""
    (num_bytes,) = _SIZE.unpack(_exactly(found, _SIZE.size))
    if num_bytes > _MOST_HEAD_BYTES:
        raise EOFError
    return _exactly(found, num_bytes)


def _exactly(found: socket.socket, num_bytes: int) -> bytes:
    place = bytearray(num_bytes)
    _fill(found, memoryview(place))
    return bytes(place)


def _fill(found: socket.socket, place: memoryview) -> None:
    """Read as many bytes as there is room for; EOFError where the other end has none."""
    while place.nbytes:
        num_read = found.recv_into(place, 0, socket.MSG_WAITALL)
        if not num_read:
            raise EOFError
        place = place[num_read:]


def _end(found: socket.socket | None) -> None:
    """Close a socket, and wake whoever waits for it."""
    if found is not None:
        with suppress(OSError):
            found.shutdown(socket.SHUT_RDWR)
        found.close()
