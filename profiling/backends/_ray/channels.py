"""Values of a step between hosts, by the shared-memory channels of Ray's compiled graphs.

A call of an actor goes through queues at both ends, and what is above 100 KB waits for the object
directory of its owner, too. A channel is memory on either side: what is written here Ray copies
there, and a thread that reads it is woken. That memory is taken from the object store for good, so
what is very large goes by calls, which are no slower then.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

# Whoever writes waits until what was written before has been read, so they are two, by turns.
NUM_CHANNELS = 2
# What a message needs beside its values, and the most that goes by a channel.
FRAME_BYTES, MOST_BYTES = 2**16, 2**24
_LEAST_BYTES = 2**20
# Whoever reads copies what it reads, and no more, so a channel is free again much sooner.
WRITE_S = 30.0
# How long channels are read after the last message, and how often whoever reads looks up.
LINGER_S, LOOK_S = 2.0, 0.5
Told = Callable[[int, int, Mapping[str, Any]], None]


class Outgoing:
    """The channels from the host of this process to another one, which its lanes share."""

    def __init__(self, reader: Any, node_id: str, num_bytes: int) -> None:
        import ray
        from ray.experimental.channel.shared_memory_channel import Channel

        writer = ray.get_runtime_context().current_actor
        self.reader, self.num_bytes = reader, num_bytes
        self.channels = tuple(
            Channel(writer, [(reader, node_id)], num_bytes) for _ in range(NUM_CHANNELS)
        )
        self._is_read = True
        locks = [threading.Lock() for _ in self.channels]
        self._turns = itertools.cycle(tuple(zip(self.channels, locks, strict=True)))

    def send(self, number: int, segment: int, values: Mapping[str, Any]) -> bool:
        """Give a message away, which is copied; False where it is too large, or nobody reads.

        A RayError says that the channel was closed.
        """
        from ray.exceptions import RayChannelTimeoutError

        if sum(map(_num_bytes, values.values())) + FRAME_BYTES > self.num_bytes:
            return False
        channel, lock = next(self._turns)
        with lock:
            if self._is_read:
                try:
                    channel.write((number, segment, values), WRITE_S)
                except RayChannelTimeoutError:
                    self._is_read = False
            return self._is_read

    def close(self) -> None:
        """End whoever writes and whoever reads."""
        for channel in self.channels:
            with suppress(Exception):
                channel.close()


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

    def wait(self) -> None:
        """Return once messages are expected."""
        while True:
            self._awake.wait()
            with self._lock:
                if self._num_held or time.monotonic() < self._until_s:
                    return
                self._awake.clear()


class Incoming:
    """The channels from another host to this process, read by a thread each until it is closed.

    Arrays of a message are memory of the channel, which whoever is told may not keep. Errors of
    a message are theirs to note; here they end nothing, for a channel that is not read blocks
    whoever writes.
    """

    def __init__(self, channels: Sequence[Any], told: Told, attention: Attention) -> None:
        self._told, self._attention, self._is_over = told, attention, False
        for channel in channels:
            # What is written before somebody is known to read is never told.
            channel.ensure_registered_as_reader()
            threading.Thread(
                target=self._read, args=(channel,), name="channel", daemon=True
            ).start()

    def _read(self, channel: Any) -> None:
        from ray.exceptions import GetTimeoutError, RayChannelTimeoutError, RayError

        while True:
            self._attention.wait()
            if self._is_over:
                return
            try:
                message = channel.read(LOOK_S)
            except (GetTimeoutError, RayChannelTimeoutError):
                continue
            except RayError:  # closed
                return
            with suppress(Exception):
                self._told(*message)
            # The next one is written into its memory, which only then is free.
            del message
            self._attention.wake()

    def close(self) -> None:
        """Read no more; a host that is lost closes nothing itself."""
        self._is_over = True


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
