"""A cluster as the executor of searches: their jobs are tasks on all hosts, by way of a relay.

What is shared by many jobs, as a problem is, goes to Ray's object store once and from there once to
each host. Where hosts leave, the others go on; where all do, or the head, the search goes on here.
"""

import hashlib
import itertools
import os
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from placement.core.decoding import shown
from placement.parallel.calls import Call
from placement.parallel.encoding import encoded
from placement.parallel.executor import ASK_EVERY_S, HERE, Executor, Job, always
from profiling.backends._ray.frames import (
    Answered,
    Ask,
    Cancel,
    Drop,
    Frame,
    HostLost,
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
        # What lanes have compiled.
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


class Hosts(Executor):
    """The lanes of a farm; `tell` hears a sentence where hosts leave."""

    def __init__(self, farm: Farm, tell: Callable[[str], object], worth_visits: float) -> None:
        self._farm, self._tell, self._worth_visits = farm, tell, worth_visits

    @property
    def num_lanes(self) -> int:
        return self._farm.num_lanes or HERE.num_lanes

    def num_parts(self, visits: float) -> int:
        if not self._farm.is_alive:
            return 1
        return int(min(self._farm.num_lanes, visits // max(1.0, self._worth_visits)))

    def prepare(self, call: Call) -> None:
        asked = call.name, encoded(call.args)
        if asked not in self._farm.prepared:
            self._farm.prepared.add(asked)
            job = Job(here=lambda _: None, away=lambda: call)
            self.each([job] * self._farm.num_lanes)

    def each(
        self,
        jobs: Sequence[Job],
        going_on: Callable[[], bool] = always,
        every_s: float = ASK_EVERY_S,
    ) -> list[Any]:
        if not self._farm.is_alive:
            self._pass_on()
            return HERE.each(jobs, going_on, every_s)
        found: list[Any] = [None] * len(jobs)
        undone, calls = list[int](), [job.away() for job in jobs]
        numbers, asked = list[int](), dict[Future[bytes], int]()
        for i, (job, call) in enumerate(zip(jobs, calls, strict=True)):
            number, future = self._farm.ask(call, job.until_s, job.whole)
            numbers.append(number)
            asked[future] = i
        left, next_s = set(asked), time.monotonic() + every_s
        try:
            while left:
                done, left = wait(left, max(0.0, next_s - time.monotonic()), FIRST_COMPLETED)
                for future in sorted(done, key=asked.__getitem__):
                    i = asked[future]
                    try:
                        answer = calls[i].answer(future.result())
                    except Gone:
                        undone.append(i)
                    else:
                        found[i] = jobs[i].back(answer)
                if left and time.monotonic() >= next_s:
                    next_s = time.monotonic() + every_s
                    self._pass_on()
                    if not going_on():
                        return found
        finally:
            self._farm.cancel([numbers[asked[future]] for future in left])
        self._pass_on()
        done_here = HERE.each([jobs[i] for i in undone], going_on, every_s)
        for i, value in zip(undone, done_here, strict=True):
            found[i] = value
        return found

    def _pass_on(self) -> None:
        """Tell what was said of hosts since."""
        with suppress(Empty):
            while True:
                self._tell(self._farm.said.get_nowait())
