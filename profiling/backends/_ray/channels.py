"""Values of a step between hosts, by the shared-memory channels of Ray's compiled graphs.

A call of an actor goes through queues at both ends, and what is above 100 KB waits for the object
directory of its owner, too. A channel is memory on either side: what is written here Ray copies
there, and a thread that reads it is woken. That memory is taken from the object store for good, so
what is very large goes by calls, which are no slower then.

Ray's node there writes a message in the thread that does everything else, and waits without a
limit for whoever should have read the one before: where that actor was killed, the node answers
nobody any more, not even who asks how the actor is. So a message is written only where the reader
has said that the one before it has been read. The channels of a pair of hosts take turns, and are
a window of messages that may be under way, as that of TCP (RFC 9293).
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

# Messages from one host to another that may be under way; who has read half of them says so.
WINDOW = 4
# What a message needs beside its values, and the most that goes by a channel.
FRAME_BYTES, MOST_BYTES = 2**16, 2**24
_LEAST_BYTES = 2**20
# Nobody waits to write: what was there before has been read.
WRITE_S = 30.0
# How long channels are read after the last message, and how often whoever reads looks up.
LINGER_S, LOOK_S = 2.0, 0.5
# What was read: the attempt to connect two hosts that made the channels, and how many messages.
Read = tuple[int, int]
NOTHING: Read = (-1, 0)
Told = Callable[[int, int, Mapping[str, Any], Read], None]


class Outgoing:
    """The channels from the host of this process to another one, which its lanes share."""

    def __init__(self, reader: Any, node_id: str, num_bytes: int, attempt: int) -> None:
        import ray
        from ray.experimental.channel.shared_memory_channel import Channel

        writer = ray.get_runtime_context().current_actor
        self.reader, self.num_bytes = reader, num_bytes
        self.channels = tuple(
            Channel(writer, [(reader, node_id)], num_bytes) for _ in range(WINDOW)
        )
        self._window = Window(attempt)

    def send(self, number: int, segment: int, values: Mapping[str, Any], read: Read) -> bool:
        """Give a message away, which is copied; False where it is too large, or must wait.

        It says what this host has `read` of the other one. A RayError says that the channel was
        closed.
        """
        if sum(map(_num_bytes, values.values())) + FRAME_BYTES > self.num_bytes:
            return False
        turn = self._window.enter()
        if turn is None:
            return False
        channel = self.channels[turn % len(self.channels)]
        channel.write((number, segment, values, read), WRITE_S)
        return True

    def was_read(self, read: Read) -> None:
        """Take note of what the other host has read."""
        self._window.was_read(read)

    def close(self) -> None:
        """End whoever writes and whoever reads."""
        for channel in self.channels:
            with suppress(Exception):
                channel.close()


class Window:
    """Which messages may be under way: WINDOW more than have been read.

    >>> window = Window(attempt=3)
    >>> [window.enter() for _ in range(5)]
    [0, 1, 2, 3, None]
    >>> window.was_read((2, 4)), window.enter(), window.was_read((3, 1)), window.enter()
    (None, None, None, 4)
    """

    def __init__(self, attempt: int) -> None:
        self._attempt, self._num_sent, self._num_read = attempt, 0, 0
        self._lock = threading.Lock()

    def enter(self) -> int | None:
        """The number of the message that may go now, if one may."""
        with self._lock:
            if self._num_sent - self._num_read >= WINDOW:
                return None
            self._num_sent += 1
            return self._num_sent - 1

    def was_read(self, read: Read) -> None:
        """So many have been read; what is said of earlier channels is too late."""
        attempt, num_read = read
        with self._lock:
            if attempt == self._attempt:
                self._num_read = max(self._num_read, num_read)


class Attention:
    """Whether messages are expected now. Ray takes a core's time from whoever waits for one."""

    def __init__(self) -> None:
        self._lock, self._awake = threading.Lock(), threading.Event()
        self._num_held, self._until_s = 0, 0.0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Messages are expected all the while."""
        with self._lock:
            self._num_held += 1
        self._awake.set()
        try:
            yield
        finally:
            self.wake()
            with self._lock:
                self._num_held -= 1

    def wake(self) -> None:
        """Messages are expected for a while from now on."""
        with self._lock:
            self._until_s = time.monotonic() + LINGER_S
        self._awake.set()

    def look_up(self) -> None:
        """Have all who wait see whether it is over for them."""
        self._awake.set()

    def wait(self, is_over: Callable[[], bool]) -> None:
        """Return once messages are expected, or it is over."""
        while not is_over():
            self._awake.wait()
            with self._lock:
                if self._num_held or time.monotonic() < self._until_s:
                    return
                self._awake.clear()


class Incoming:
    """The channels from another host to this process, read by turns in a thread until it is closed.

    Arrays of a message are memory of the channel, which whoever is told may not keep. Errors of
    a message are theirs to note; here they end nothing, for a channel that is not read blocks
    whoever writes. `say` tells the other host what was read, where no message does in time.
    """

    def __init__(
        self,
        channels: Sequence[Any],
        attempt: int,
        told: Told,
        say: Callable[[Read], object],
        attention: Attention,
    ) -> None:
        self._told, self._say, self._attention = told, say, attention
        self._attempt, self._num_read, self._num_said, self._is_over = attempt, 0, 0, False
        for channel in channels:
            # What is written before somebody is known to read is never told.
            channel.ensure_registered_as_reader()
        threading.Thread(target=self._go, args=(channels,), name="channels", daemon=True).start()

    @property
    def read(self) -> Read:
        """What was read so far."""
        return self._attempt, self._num_read

    def has_said(self, read: Read) -> None:
        """The other host gets to know of this."""
        self._num_said = max(self._num_said, read[1])

    def _go(self, channels: Sequence[Any]) -> None:
        for channel in itertools.cycle(channels):
            message = self._next(channel)
            if message is None:
                return
            with suppress(Exception):
                self._told(*message)
            # Only then its memory is free, and may be said to be.
            del message
            self._num_read += 1
            if self._num_read - self._num_said >= WINDOW // 2:
                read = self.read
                self._say(read)
                self.has_said(read)
            self._attention.wake()

    def _next(self, channel: Any) -> Any:
        """The next message, once there is one; None when all is over."""
        from ray.exceptions import GetTimeoutError, RayChannelTimeoutError, RayError

        while True:
            self._attention.wait(lambda: self._is_over)
            if self._is_over:
                return None
            try:
                return channel.read(LOOK_S)
            except (GetTimeoutError, RayChannelTimeoutError):
                continue
            except RayError:  # closed
                return None

    def close(self) -> None:
        """Read no more; a host that is lost closes nothing itself."""
        self._is_over = True
        self._attention.look_up()


def room(num_bytes: int) -> int:
    """How large channels are made for messages of so many bytes: seldom anew.

    >>> room(1000) == 2**20, room(2**20) == 2**21, room(2**40) == MOST_BYTES + FRAME_BYTES
    (True, True, True)
    """
    needed = min(num_bytes, MOST_BYTES) + FRAME_BYTES
    size = _LEAST_BYTES
    while size < needed:
        size *= 2
    return min(size, MOST_BYTES + FRAME_BYTES)


def _num_bytes(value: Any) -> int:
    """Bytes of an array, or of the arrays of a list."""
    if isinstance(value, list | tuple):
        return sum(map(_num_bytes, value))
    return int(getattr(value, "nbytes", 0))
