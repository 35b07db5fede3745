"""Samples on their way through hosts: the lanes of one of them, and who lets samples begin.

A host's lanes are those of a local pipeline (`StreamLanes`). One call to every host lets a sample
begin there; its answer says when that host was done with it, and what it made. Between its
segments nobody asks the process that waits for the samples.
"""

import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from profiling.backends._ray.alive import NoAnswer
from profiling.backends._ray.part import Part, Send
from profiling.devices.lanes import Lane
from profiling.devices.native import ENDLESS
from profiling.devices.stream_lanes import Ran, StreamLanes

if TYPE_CHECKING:
    from profiling.backends._ray.compile import RayProgram

# Opening has a limit of its own. How long a sample may take is for its caller to say.
READY_S, FOREVER_S = 600.0, threading.TIMEOUT_MAX


@dataclass(frozen=True)
class Sampled:
    """What a host says of a sample: when its lanes were done, on its own clock, what they ran, and
    the model's outputs or values of some names.
    """

    ended_s: float
    ran: tuple[Ran, ...]
    made: Mapping[str, Any]


class SampleLanes:
    """The lanes of a host, for the programs of a ring that it has parts of.

    `answers` are the names of what it tells of each sample; None for the model's outputs.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        lanes: Sequence[Lane],
        stage_of: Sequence[int],
        send: Send,
        answers: Sequence[str] | None,
    ) -> None:
        self._parts, self._send, self._answers = tuple(parts), send, answers
        own = parts[0].pinned(lanes)
        native = [part.program.native for part in parts] if parts[0].is_alone(own) else []
        self._lanes = StreamLanes(
            own,
            stage_of,
            len(parts),
            self._run,
            native=[calls for calls in native if calls is not None],
            watched=range(ENDLESS),
        )
        for slot, part in enumerate(parts):
            part.lanes = _Slot(self._lanes, slot)

    def _run(self, segment: int, slot: int) -> None:
        self._parts[slot].run_and_send(self._send, segment)

    def sample(self, sample: int, feed: int) -> Sampled:
        """Let a sample begin with the inputs of a number, and wait for it."""
        part = self._parts[sample % len(self._parts)]
        part.program.feed(feed)
        self._lanes.begin(sample)
        try:
            ended_s = self._lanes.completed_s(sample, FOREVER_S)
        finally:
            # Lanes were ended for it, and what they say then is not why.
            for error in (error for each in self._parts for error in each.errors):
                raise error
        if self._lanes.is_over:
            raise RuntimeError("The lanes of this host were ended before the sample was over.")
        program, answers = part.program, self._answers
        made = program.outputs() if answers is None else part.values(answers)
        return Sampled(ended_s, tuple(self._lanes.ran_by(sample)), made)

    def end(self, limit: int) -> None:
        self._lanes.end(limit)


@dataclass(frozen=True)
class _Slot:
    """See `part.Arrivals`."""

    lanes: StreamLanes
    slot: int

    def arrive(self, producer: int) -> None:
        self.lanes.arrive(producer, self.slot)

    def close(self, timeout_s: float = 5.0) -> bool:
        return self.lanes.close(timeout_s)


class HostSamples:
    """See `profiling.backends.base.Streamed`: the lanes of a ring of programs, on their hosts."""

    def __init__(
        self,
        ring: "Sequence[RayProgram]",
        lanes: Sequence[Lane],
        stage_of: Sequence[int],
        watched: range,
    ) -> None:
        self._ring, self._cluster, self._watched = tuple(ring), ring[0].cluster, watched
        self._number = ring[0].number
        self.ran: list[Ran] = []
        self.busy_s: dict[str, list[float]] = {lane.device.name: [] for lane in lanes}
        self._lane_of = {s: lane.device.name for lane in lanes for s in lane.segments}
        self._asked: dict[int, dict[str, Any]] = {}
        self._told: dict[str, Sampled] = {}
        by_host = defaultdict[str, list[Lane]](list)
        for lane in lanes:
            by_host[ring[0].on[lane.segments[0]]].append(lane)
        self._hosts = tuple(by_host) or ring[0].hosts[:1]
        made_by = ring[0].outputs_by_host
        # Whoever makes all outputs tells them as the model has them; of several the first is asked
        # once it has what the others made.
        self._gathers = next(iter(made_by), self._hosts[0])
        self._is_made_there = len(made_by) <= 1
        answers: dict[str, Sequence[str] | None] = {
            host: made_by.get(host, ()) for host in self._hosts
        }
        answers[self._gathers] = None if self._is_made_there else ()
        # One offset for all samples, or the time between two would be off by how sure each is.
        self._here = {host: self._cluster.offset(host).here for host in self._hosts}
        self._cluster.join(ring[0].crossing)
        asked = {
            host: self._cluster.begin(
                host,
                "stream",
                [program.number for program in ring],
                by_host[host],
                tuple(stage_of),
                answers[host],
            )
            for host in self._hosts
        }
        self._cluster.settled(asked, READY_S)

    def begin(self, sample: int, feed: int) -> None:
        begin, number = self._cluster.begin, self._number
        self._asked[sample] = {h: begin(h, "sample", number, sample, feed) for h in self._hosts}

    def end(self, limit: int) -> None:
        for host in self._hosts:
            self._cluster.begin(host, "end_stream", self._number, limit)

    def completed_s(self, sample: int, timeout_s: float) -> float:
        try:
            self._told = self._cluster.settled(self._asked.pop(sample), timeout_s)
        except BaseException as error:
            # Lanes of other hosts wait for values that do not come.
            for program in self._ring:
                program.stop()
            if isinstance(error, NoAnswer):
                raise TimeoutError(
                    f"A sample took longer than {timeout_s:g} s and was given up."
                ) from None
            raise
        ended_s = []
        busy_s = dict.fromkeys(self.busy_s, 0.0)
        for host, told in self._told.items():
            here = self._here[host]
            ended_s.append(here(told.ended_s))
            for ran in told.ran:
                busy_s[self._lane_of[ran.segment]] += ran.end_s - ran.start_s
                if sample in self._watched:
                    self.ran.append(Ran(sample, ran.segment, here(ran.start_s), here(ran.end_s)))
        for name, seconds in busy_s.items():
            self.busy_s[name].append(seconds)
        return max(ended_s)

    def outputs(self, sample: int) -> dict[str, Any]:
        first = self._gathers
        if self._is_made_there:
            return dict(self._told[first].made)
        values = {n: v for told in self._told.values() for n, v in told.made.items()}
        number = self._ring[sample % len(self._ring)].number
        found: dict[str, Any] = self._cluster.ask(
            first, "outputs", number, list(values), *values.values()
        )
        return found

    def close(self) -> bool:
        """True: what is still inside a segment is the hosts' to wait for."""
        return True
