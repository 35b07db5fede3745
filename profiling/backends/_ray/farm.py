"""The hosts of a cluster as searches reach them: calls go to a relay, and answers come back.

What is shared by many calls, as a problem is, goes to Ray's object store once and from there once
to each host.
"""

import hashlib
import itertools
import os
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from placement.core.decoding import shown
from placement.parallel.calls import Call
from placement.parallel.encoding import encoded
from profiling.backends._ray.frames import (
    Answered,
    Ask,
    Cancel,
    Drop,
    Frame,
    HostLost,
    ProcessEnded,
    Ready,
    Refused,
    Share,
    Undone,
    read,
    write,
)

ROOT = Path(__file__).resolve().parents[3]
MOST_SHARED = 8
ENDED = "The Ray cluster ended in the middle of this search, which went on on this computer."


class Gone(Exception):
    """Nobody carried out what was asked for."""


class Farm:
    """The hosts of a cluster, reached through a process that is connected to it.

    What is said where hosts leave is in `said`, a sentence each.
    """

    def __init__(self, address: str) -> None:
        self.address, self.is_whole = address, True
        self._futures: dict[int, Future[bytes]] = {}
        self._numbers = itertools.count()
        self._shared: OrderedDict[int, tuple[Any, str]] = OrderedDict()
        self._guard = threading.Lock()
        self.said: SimpleQueue[str] = SimpleQueue()
        # What all lanes have compiled.
        self.prepared: set[tuple[str, bytes]] = set()
        paths = (str(ROOT), os.environ.get("PYTHONPATH", ""))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "profiling.backends._ray.relay", address or "ray"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)},
            # Who stops a search stops it here first.
            start_new_session=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        self.num_lanes = 0
        self._listener = threading.Thread(target=self._listen, name="farm", daemon=True)
        first = read(self._out)
        if not isinstance(first, Ready):
            self.close()
            raise ValueError(
                first.message
                if isinstance(first, Refused)
                else "The Ray cluster ended before anything could be asked of it; start it again."
            )
        self.cores = dict(first.cores)
        self.num_lanes = sum(self.cores.values())
        self._listener.start()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None and self.num_lanes > 0

    def close(self) -> None:
        """End the process; what was asked for stays undone."""
        self.num_lanes = 0
        with suppress(OSError):
            self._in.close()
        self._process.kill()
        self._process.wait()
        if self._listener.is_alive():
            self._listener.join()
        self._out.close()

    def ask(self, call: Call, until_s: float, whole: bool) -> tuple[int, Future[bytes]]:
        """Have a call carried out, by its number; the future fails as Gone where nobody does."""
        future: Future[bytes] = Future()
        with self._guard:
            number = next(self._numbers)
            keys = tuple(self._key_of(value) for value in call.shared)
            args = tuple(encoded(value) for value in call.args)
            self._futures[number] = future
            self._write(Ask(number, call.name, keys, args, until_s, whole))
        if not self.is_alive:
            self._fail_all()
        return number, future

    def cancel(self, numbers: Sequence[int]) -> None:
        """Nobody waits for these calls any more."""
        if not numbers:
            return
        with self._guard:
            for number in numbers:
                self._futures.pop(number, None)
            self._write(Cancel(tuple(numbers)))

    def _key_of(self, value: Any) -> str:
        """The key of a value that calls share, which is sent when it is first used."""
        if id(value) not in self._shared:
            content = encoded(value)
            key = hashlib.sha256(content).hexdigest()
            # With the value itself, so that no other one has its number.
            self._shared[id(value)] = value, key
            self._write(Share(key, content))
        self._shared.move_to_end(id(value))
        while len(self._shared) > MOST_SHARED:
            _, (_, key) = self._shared.popitem(last=False)
            if key not in (kept for _, kept in self._shared.values()):
                self._write(Drop(key))
        return self._shared[id(value)][1]

    def _write(self, frame: Frame) -> None:
        # Where it has ended, what was asked of it fails.
        with suppress(OSError, ValueError):
            write(self._in, frame)
            self._in.flush()

    def _listen(self) -> None:
        with suppress(OSError, ValueError):
            while (found := read(self._out)) is not None:
                self._hear(found)
        if self.num_lanes:
            self.num_lanes, self.is_whole = 0, False
            self.said.put(ENDED)
        self._fail_all()

    def _hear(self, found: Frame) -> None:
        if isinstance(found, HostLost):
            self.num_lanes, self.is_whole = found.num_lanes, False
            self.said.put(
                f"Host {shown(found.host)} left the cluster in the middle of this search, which"
                " went on on the hosts that are left."
            )
        elif isinstance(found, ProcessEnded):
            self.prepared.clear()
        elif isinstance(found, (Answered, Undone)):
            with self._guard:
                future = self._futures.pop(found.number, None)
            if future is not None and isinstance(found, Answered):
                future.set_result(found.content)
            elif future is not None and isinstance(found, Undone):
                future.set_exception(Gone(found.why))

    def _fail_all(self) -> None:
        with self._guard:
            futures, self._futures = list(self._futures.values()), {}
        for future in futures:
            future.set_exception(Gone("the cluster ended"))
