"""Values of a step between hosts: from actor to actor, by a connection of their own.

A call of an actor goes through queues at both ends, and what is above 100 KB waits for the object
directory of its owner, too. Ray's channels in shared memory, which its compiled graphs use, are
quicker, but whoever waits for one tries again and again: with some of them lanes had half of their
core left. Nobody computes while a connection (TCP, RFC 9293) waits. It carries the bytes of arrays
and no objects, so that nothing that comes is ever run; whoever connects has to know a secret that
Ray tells the hosts of a cluster alone. Like all that Ray sends it is not encrypted.
"""

import copy
import hmac
import math
import secrets
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np

# To be connected, to say who one is, and to have some of a message taken.
CONNECT_S, GREETING_S, SEND_S = 5.0, 5.0, 10.0
# After so long a host that is there no more is noticed, be anything sent to it or not.
GONE_S, IDLE_S = 8, 30
SECRET_BYTES, HELLO = 32, b"\x01"
# So many may be about to say who they are.
MOST_STRANGERS = 64
# Kinds of numpy's numbers, whose bytes mean the same on all hosts of one kind of processor.
_PLAIN = "biufc"
_SIZE, _MOST_HEAD_BYTES = struct.Struct("!I"), 2**26
# How far apart arrays of a message begin, how large the memory for them is at least, and at most
# for longer than for one.
_APART, _LEAST_BYTES, _MOST_KEPT_BYTES = 64, 2**20, 2**24
# Buffers in one call of the system, and bytes.
_AT_ONCE, _MOST_AT_ONCE_BYTES = 512, 2**30
_PAUSE_S = 0.1
Values = Mapping[str, Any]
Told = Callable[[str, int, int, Values], object]
Message = tuple[int, int, Values]


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


_decoder = msgspec.msgpack.Decoder(Head)


class Entry(msgspec.Struct, frozen=True):
    """Where a host is reached, and the secret that opens it."""

    address: str
    port: int
    secret: bytes

    def __repr__(self) -> str:
        return f"Entry({self.address!r}, {self.port})"


class Outgoing:
    """The channel from the host of this process to another one, which its lanes share.

    OSError where the other host cannot be reached so. `otherwise` is told what was taken to be
    sent and then could not be, from a thread.
    """

    def __init__(self, own: str, entry: Entry, otherwise: Callable[[Message], object]) -> None:
        self.entry, self.is_open, self._otherwise = entry, True, otherwise
        self._changed = threading.Condition()
        # Messages with those of their bytes that have not left, the last of these first.
        self._waiting = deque[tuple[Message, list[memoryview]]]()
        self._socket = socket.create_connection((entry.address, entry.port), CONNECT_S)
        try:
            name = own.encode()
            self._socket.settimeout(GREETING_S)
            self._socket.sendall(entry.secret + _SIZE.pack(len(name)) + name)
            # Only then its reader is there.
            if self._socket.recv(len(HELLO)) != HELLO:
                raise ConnectionError("the other host does not know this one")
            # A time limit of Python's own would wait before it sends.
            self._socket.settimeout(None)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            limit = struct.pack("ll", int(SEND_S), int(SEND_S % 1 * 1e6))
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
            _notice_its_end(self._socket)
        except OSError:
            self._socket.close()
            raise
        threading.Thread(target=self._send_on, name="sender", daemon=True).start()

    def send(self, number: int, segment: int, values: Values) -> bool:
        """Give a message away, and wait for nobody; False where it has to go another way.

        The memory of its arrays is the caller's again then.
        """
        laid = _laid(values)
        if laid is None:
            return False
        named, arrays = laid
        head = msgspec.msgpack.encode(Head(number, segment, named))
        left = [memoryview(_SIZE.pack(len(head)) + head), *arrays][::-1]
        with self._changed:
            if not self.is_open or self.has_ended():
                self.close()
                return False
            try:
                if not self._waiting:
                    with suppress(BlockingIOError):
                        _send(self._socket, left, socket.MSG_DONTWAIT)
                if left:
                    # Whoever made them may write into them from now on.
                    kept = [memoryview(bytes(buffer)) for buffer in left]
                    copies = {name: copy.deepcopy(value) for name, value in values.items()}
                    self._waiting.append(((number, segment, copies), kept))
                    self._changed.notify()
            except BaseException as error:
                # Half of a message may be there, which its end tells from a whole one.
                self.close()
                if isinstance(error, OSError):
                    return False
                raise
        return True

    def has_ended(self) -> bool:
        """Whether the other host has closed it, which sending alone tells too late."""
        try:
            return not self._socket.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def _send_on(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or not self.is_open)
                if not self._waiting:
                    return
                message, left = self._waiting[0]
            try:
                _send(self._socket, left)
            except OSError:
                self.close()
                with self._changed:
                    unsent = [message for message, _ in self._waiting]
                    self._waiting.clear()
                for message in unsent:
                    self._otherwise(message)
                return
            with self._changed:
                self._waiting.popleft()

    def close(self) -> None:
        """End whoever reads, and whoever sends."""
        self.is_open = False
        _end(self._socket)
        with self._changed:
            self._changed.notify()


class Door:
    """Where other hosts connect to this process; what they send is `told` in a thread of each.

    Arrays are memory of the channel, which whoever is told may not keep. Errors of a message are
    theirs to note: here they end nothing. `broke` hears of a message that could not be read.
    """

    def __init__(self, address: str, told: Told, broke: Callable[[str, Exception], object]) -> None:
        self._told, self._broke, self._lock = told, broke, threading.Lock()
        self._incoming: dict[str, list[socket.socket]] = {}
        self._strangers, self._is_closed = threading.Semaphore(MOST_STRANGERS), False
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
            found = self._incoming.pop(host, [])
        for each in found:
            _end(each)

    def close(self) -> None:
        """Let nobody in any more."""
        self._is_closed = True
        # To close it alone would leave the thread that waits for others.
        _end(self._socket)
        for host in self.hosts:
            self.forget(host)

    def _open(self) -> None:
        while not self._is_closed:
            with suppress(OSError, RuntimeError):
                found, _ = self._socket.accept()
                if not self._strangers.acquire(blocking=False):
                    found.close()
                    continue
                reading = threading.Thread(target=self._read, args=(found,), name="channel")
                reading.daemon = True
                try:
                    reading.start()
                except RuntimeError:
                    self._strangers.release()
                    found.close()
                    raise
                continue
            # As where there are too many files or threads: some end.
            time.sleep(_PAUSE_S)

    def _read(self, found: socket.socket) -> None:
        """All messages of one that has connected, if it may."""
        host = ""
        try:
            try:
                host = _greeted(found, self.entry.secret)
                with self._lock:
                    # Of one that was closed at its other end what came before may not be read yet.
                    self._incoming.setdefault(host, []).append(found)
                found.sendall(HELLO)
            finally:
                self._strangers.release()
            for number, segment, values in _messages(found):
                with suppress(Exception):
                    self._told(host, number, segment, values)
                del values
        except (OSError, EOFError):
            """It has ended, or was none of us."""
        except Exception as error:
            if host:
                self._broke(host, error)
        finally:
            with self._lock:
                left = [each for each in self._incoming.pop(host, []) if each is not found]
                if left:
                    self._incoming[host] = left
            found.close()


def _greeted(found: socket.socket, secret: bytes) -> str:
    """The host that has connected; EOFError where it does not know the secret."""
    until_s = time.monotonic() + GREETING_S
    if not hmac.compare_digest(_exactly(found, SECRET_BYTES, until_s), secret):
        raise EOFError
    host = _sized(found, until_s).decode()
    found.settimeout(None)
    _notice_its_end(found)
    return host


def _messages(found: socket.socket) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """What comes by a connection; the memory of each message is that of the next one."""
    memory = np.empty(0, np.uint8)
    while True:
        head = _decoder.decode(_sized(found))
        num_bytes = sum(_room(laid) for value in head.values for laid in value.arrays)
        if num_bytes > memory.size:
            memory = np.empty(max(num_bytes, _LEAST_BYTES), np.uint8)
        yield head.number, head.segment, _values(found, head, memory)
        if memory.size > _MOST_KEPT_BYTES:
            memory = np.empty(0, np.uint8)


def _values(found: socket.socket, head: Head, memory: Any) -> dict[str, Any]:
    """The values of a message, in this memory."""
    values, at = dict[str, Any](), 0
    for value in head.values:
        read = list[Any]()
        for laid in value.arrays:
            place = memory[at : at + _num_bytes(laid)]
            _fill(found, place.data)
            read.append(place.view(np.dtype(laid.dtype)).reshape(laid.shape))
            at += _room(laid)
        # Lists are not copied by those who take them.
        values[value.name] = [each.copy() for each in read] if value.is_list else read[0]
    return values


def _room(laid: Laid) -> int:
    return -(-_num_bytes(laid) // _APART) * _APART


def _laid(values: Values) -> tuple[tuple[Named, ...], list[memoryview]] | None:
    """What is said of values before their bytes, and these; None where they have none to send."""
    named, buffers = list[Named](), list[memoryview]()
    for name, value in values.items():
        is_list = isinstance(value, list | tuple)
        laid = []
        for each in value if is_list else [value]:
            if not isinstance(each, np.ndarray | np.generic) or not _is_plain(each.dtype):
                return None
            laid.append(Laid(each.dtype.str, each.shape))
            row = np.ascontiguousarray(each).reshape(-1).view(np.uint8).data
            buffers += [
                row[at : at + _MOST_AT_ONCE_BYTES]
                for at in range(0, row.nbytes, _MOST_AT_ONCE_BYTES)
            ]
        named.append(Named(name, is_list, tuple(laid)))
    return tuple(named), buffers


def _is_plain(dtype: np.dtype[Any]) -> bool:
    # Those that other libraries add to numpy's are not known by their letters.
    return dtype.kind in _PLAIN and dtype.isbuiltin == 1


def _num_bytes(laid: Laid) -> int:
    return math.prod(laid.shape) * np.dtype(laid.dtype).itemsize


def _send(to: socket.socket, left: list[memoryview], flags: int = 0) -> None:
    """Send all that is left, the last of it first, and take what was sent out of it."""
    while left:
        num_sent = to.sendmsg(_some(left), (), flags)
        while left and num_sent >= left[-1].nbytes:
            num_sent -= left.pop().nbytes
        if num_sent:
            left[-1] = left[-1][num_sent:]


def _some(left: Sequence[memoryview]) -> list[memoryview]:
    """As many as one call of the system takes."""
    found, num_bytes = list[memoryview](), 0
    for buffer in left[: -_AT_ONCE - 1 : -1]:
        num_bytes += buffer.nbytes
        if found and num_bytes > _MOST_AT_ONCE_BYTES:
            break
        found.append(buffer)
    return found


def _sized(found: socket.socket, until_s: float | None = None) -> bytes:
    """Bytes that come after their number."""
    (num_bytes,) = _SIZE.unpack(_exactly(found, _SIZE.size, until_s))
    if num_bytes > _MOST_HEAD_BYTES:
        raise EOFError
    return _exactly(found, num_bytes, until_s)


def _exactly(found: socket.socket, num_bytes: int, until_s: float | None = None) -> bytes:
    place = bytearray(num_bytes)
    _fill(found, memoryview(place), until_s)
    return bytes(place)


def _fill(found: socket.socket, place: memoryview, until_s: float | None = None) -> None:
    """Read as many bytes as there is room for; EOFError where the other end has none, or where
    they have not come at a time.
    """
    while place.nbytes:
        if until_s is not None:
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                raise EOFError
            found.settimeout(left_s)
        num_read = found.recv_into(place[:_MOST_AT_ONCE_BYTES], 0, socket.MSG_WAITALL)
        if not num_read:
            raise EOFError
        place = place[num_read:]


def _notice_its_end(found: socket.socket) -> None:
    """Have the system ask a silent host whether it is there, and not wait long for a lost one."""
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    wanted = {
        "TCP_KEEPIDLE": IDLE_S,
        "TCP_KEEPALIVE": IDLE_S,
        "TCP_KEEPINTVL": GONE_S // 3,
        "TCP_KEEPCNT": 3,
        "TCP_USER_TIMEOUT": 1000 * GONE_S,
    }
    for name, value in wanted.items():
        # Not every system has all of them.
        if hasattr(socket, name):
            with suppress(OSError):
                found.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _end(found: socket.socket) -> None:
    """Close a socket, and wake whoever waits for it."""
    with suppress(OSError):
        found.shutdown(socket.SHUT_RDWR)
    found.close()
