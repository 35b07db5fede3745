"""`python -m profiling.backends._ray.relay ADDRESS`: between a search and a cluster.

Ray ends whoever is connected to a node that dies, so a search does not connect: this process does,
hands on what the search asks for as tasks of Ray's, and what they answer. Where it ends, the search
goes on without it. Frames come on standard input and go to standard output.
"""

import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, BinaryIO

import ray
from ray.exceptions import RayError, RayTaskError, TaskCancelledError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from profiling.backends._ray.cluster import LOOK_S, Cluster
from profiling.backends._ray.frames import (
    Answered,
    Ask,
    Cancel,
    Drop,
    HostLost,
    ProcessEnded,
    Ready,
    Refused,
    Share,
    Undone,
    read,
    write,
)
from profiling.backends._ray.hosts import Host
from profiling.backends._ray.perform import perform
from profiling.backends.ray import BACKEND

# How often a task is begun again whose process ended while its host goes on.
MOST_TRIES = 2
# A task that nobody waits for is interrupted, which a library may take for its own and forget; one
# that is at work so long after that ends with its process, or it would keep its lane for ever.
GRACE_S = 5.0


@dataclass(eq=False)
class Task:
    """What is asked for, and where it is at work."""

    ask: Ask
    shared: Mapping[str, Any]
    host: str = ""
    reference: Any = None
    tries: int = 0
    cancelled_s: float = math.inf
    # Whether its process is ended with it.
    is_ended: bool = False

    @property
    def is_cancelled(self) -> bool:
        return self.cancelled_s < math.inf


@dataclass(frozen=True, eq=False)
class Came:
    """A task that has ended, as the thread of Ray's that heard of it says."""

    task: Task
    reference: Any


@dataclass(eq=False)
class Lanes:
    """The cores of a host that have nothing to do."""

    host: Host
    free: int = field(init=False)

    def __post_init__(self) -> None:
        self.free = self.host.num_cores


class Relay:
    """Tasks that wait and that are at work, and the hosts that are left."""

    def __init__(self, cluster: Cluster, out: BinaryIO) -> None:
        self._cluster, self._out = cluster, out
        self.heard: SimpleQueue[Any] = SimpleQueue()
        self._lanes = {name: Lanes(host) for name, host in cluster.hosts.items()}
        self._waiting, self._busy = deque[Task](), dict[int, Task]()
        self._shared: dict[str, Any] = {}
        self._remote = ray.remote(perform)
        self._looked_s = time.monotonic()

    def go(self) -> None:
        """Hand on until nobody asks any more, or no host is left."""
        while self._lanes:
            try:
                said = self.heard.get(timeout=LOOK_S)
            except Empty:
                said = ()
            if said is None:
                return
            if said:
                self._hear(said)
            if time.monotonic() - self._looked_s >= LOOK_S:
                self._look_after_hosts()
                self._end_cancelled()
                self._looked_s = time.monotonic()
            self._hand_on()

    def _hear(self, said: Any) -> None:
        if isinstance(said, Came):
            self._end(said.task, said.reference)
        elif isinstance(said, Ask):
            self._waiting.append(Task(said, {key: self._shared[key] for key in said.shared}))
        elif isinstance(said, Cancel):
            self._cancel(said.numbers)
        elif isinstance(said, Share):
            self._shared[said.key] = ray.put(said.content)
        elif isinstance(said, Drop):
            self._shared.pop(said.key, None)

    def _hand_on(self) -> None:
        """Begin what there are lanes for, each on the host with most of them free."""
        waiting, self._waiting = self._waiting, deque()
        for task in waiting:
            chosen = self._host_for(task)
            if chosen is None:
                self._waiting.append(task)
            else:
                self._begin(task, chosen)

    def _host_for(self, task: Task) -> Lanes | None:
        able = [
            lanes
            for lanes in self._lanes.values()
            if lanes.free >= (lanes.host.num_cores if task.ask.whole else 1)
        ]
        return max(able, key=lambda lanes: lanes.free, default=None)

    def _begin(self, task: Task, lanes: Lanes) -> None:
        ask, host = task.ask, lanes.host
        num_lanes = host.num_cores if ask.whole else 1
        lanes.free -= num_lanes
        task.host, task.tries = host.name, task.tries + 1
        task.reference = self._remote.options(
            num_cpus=num_lanes,
            max_retries=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(host.node_id, soft=False),
        ).remote(
            ask.name,
            # Inside of something they are fetched by who needs them, and not for each task.
            task.shared,
            ask.args,
            max(0.0, ask.until_s - time.monotonic()),
            num_lanes,
        )
        self._busy[ask.number] = task
        came = Came(task, task.reference)
        task.reference.future().add_done_callback(lambda _: self.heard.put(came))

    def _end(self, task: Task, reference: Any) -> None:
        if task.reference is not reference:
            # It was begun again elsewhere.
            return
        self._leave(task)
        number = task.ask.number
        try:
            answer = ray.get(reference)
        except RayTaskError as error:
            if not task.is_cancelled:
                write(self._out, Undone(number, " ".join(str(error.cause).split())[:300]))
        except RayError as error:
            if task.is_ended or not isinstance(error, TaskCancelledError):
                write(self._out, ProcessEnded())
            if not task.is_cancelled:
                self._again(task)
        else:
            if not task.is_cancelled:
                write(self._out, Answered(number, answer))

    def _again(self, task: Task) -> None:
        """Have a task done elsewhere whose process, or whose host, is no more."""
        if task.host in self._lanes and not self._cluster.is_there(task.host):
            self._lose(task.host)
        if task.tries < MOST_TRIES or task.host not in self._lanes:
            self._waiting.appendleft(task)
        else:
            write(self._out, Undone(task.ask.number, "its process ended"))

    def _leave(self, task: Task) -> None:
        self._busy.pop(task.ask.number, None)
        task.reference = None
        if task.host in self._lanes:
            lanes = self._lanes[task.host]
            lanes.free += lanes.host.num_cores if task.ask.whole else 1

    def _cancel(self, numbers: tuple[int, ...]) -> None:
        wanted = [task for task in self._waiting if task.ask.number not in numbers]
        self._waiting = deque(wanted)
        for number in numbers:
            if number in self._busy:
                # Its lane is busy until it notices.
                self._busy[number].cancelled_s = time.monotonic()
                ray.cancel(self._busy[number].reference, force=False)

    def _end_cancelled(self) -> None:
        """End the processes of tasks that were cancelled a while ago and have not noticed."""
        for task in self._busy.values():
            if task.is_cancelled and time.monotonic() - task.cancelled_s >= GRACE_S:
                task.is_ended = True
                ray.cancel(task.reference, force=True)
                # Once more after as long, should that be lost, too.
                task.cancelled_s = time.monotonic()

    def _look_after_hosts(self) -> None:
        """Ray needs up to 17 s to notice that a node is no more."""
        for name in {task.host for task in self._busy.values()}:
            if name in self._lanes and not self._cluster.is_there(name):
                self._lose(name)

    def _lose(self, name: str) -> None:
        if not self._cluster.has_head:
            # All is over, and whoever asked says so.
            os._exit(1)
        del self._lanes[name]
        for task in [task for task in self._busy.values() if task.host == name]:
            self._leave(task)
            if not task.is_cancelled:
                self._waiting.appendleft(task)
        if self._lanes:
            write(self._out, HostLost(name, sum(x.host.num_cores for x in self._lanes.values())))


def main() -> None:
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    # What a library prints must not get between the frames.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    address = sys.argv[1]
    try:
        with BACKEND.ending(lambda: os._exit(1)):
            cluster = BACKEND.cluster("" if address == "ray" else address)
        cluster.require_versions()
        cluster.dismiss()
    except (ValueError, RuntimeError, TimeoutError) as error:
        write(out, Refused(" ".join(str(error).split())))
        return
    relay = Relay(cluster, out)
    write(out, Ready({name: host.num_cores for name, host in cluster.hosts.items()}))

    def listen() -> None:
        while (said := read(sys.stdin.buffer)) is not None:
            relay.heard.put(said)
        relay.heard.put(None)

    threading.Thread(target=listen, name="listen", daemon=True).start()
    relay.go()
    out.close()
    # Ray would wait for hosts that are no more.
    os._exit(0)


if __name__ == "__main__":
    main()
