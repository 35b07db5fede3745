"""The share that a host has in one program: its segments, and what it sends to other hosts.

Lanes are threads as in a local run; what a lane of another host reads is sent there when its
segment is over, and its arrival lets the lanes go on that wait for it.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from placement.core.machine import Device
from profiling.backends.base import Program
from profiling.devices.lanes import Lane, Lanes, pin

CPU = "cpu"
Values = Mapping[str, Any]
# By segment what of its values another host reads: (host, names of tensors).
Leaving = Mapping[int, tuple[tuple[str, tuple[str, ...]], ...]]
# Sends what a segment of a program has made to a host; False where that host must be called.
Send = Callable[[str, int, int, Values], bool]


@dataclass(frozen=True)
class Opened:
    """What a program of a host says of itself: see `profiling.backends.base.Program`."""

    actual_devices: Mapping[str, str]
    fallbacks: tuple[str, ...]
    fallen: tuple[int, ...]
    peak_bytes: Mapping[str, int]
    tolerance: tuple[float, float]


@dataclass(frozen=True)
class Times:
    """A step of one host on its own clock: see `profiling.devices.lanes.Step`."""

    began_s: float
    ended_s: float
    segments: Mapping[int, tuple[float, float]]
    resumed_s: Mapping[tuple[int, str], float]
    copied_s: Mapping[tuple[str, str], tuple[float, float]]
    processor_s: float


class Arrivals(Protocol):
    """The lanes that samples run through, as a program of theirs sees them."""

    def arrive(self, producer: int) -> None: ...

    def close(self, timeout_s: float = ...) -> bool: ...


@dataclass
class Part:
    """The share of a program, known by its number, in segments that have these `cores`; `lanes`
    are there while steps are carried, or samples of which this program is a slot.

    A step is over when the state that segments of other hosts renew has come; these are `due`.
    `errors` have come in with values of other hosts.
    """

    number: int
    program: Program
    cores: Mapping[int, tuple[int, ...]]
    leaving: Leaving
    others: Mapping[str, Any]
    due: frozenset[int] = frozenset()
    lanes: Lanes | Arrivals | None = None
    errors: list[BaseException] = field(default_factory=list)
    come: set[int] = field(default_factory=set)
    is_over: bool = False
    told: threading.Condition = field(default_factory=threading.Condition)

    def run(self, segment: int) -> tuple[float, float]:
        """Compute one segment and send what others read of it; start and end of the computing."""
        import ray

        pin(self.cores[segment])
        began_s = time.perf_counter()
        self.program.run(segment)
        ended_s = time.perf_counter()
        sent = (
            self.others[host].arrive.remote(self.number, segment, values)
            for host, values in self._leaves(segment)
        )
        ray.get(list(sent))
        return began_s, ended_s

    def carry(self, lanes: Sequence[Lane], num_segments: int, send: Send) -> None:
        """Have threads for the lanes of this host, which run steps from now on."""
        own = self.pinned(lanes)
        native = self.program.native if self.is_alone(own) else None
        run = partial(self.run_and_send, send)
        self.lanes = Lanes(own, num_segments, run, rest=self.program.rest, native=native)

    def pinned(self, lanes: Sequence[Lane]) -> Sequence[Lane]:
        """Lanes of this host on its own cores."""
        own = [
            replace(lane, device=replace(lane.device, core_ids=self.cores[lane.segments[0]]))
            for lane in lanes
        ]
        return self.program.pinned(own)

    def is_alone(self, own: Sequence[Lane]) -> bool:
        """Whether nothing goes to other hosts and nothing comes from them."""
        return not self.leaving and not any(
            awaited not in self.cores for lane in own for them in lane.awaits for awaited in them
        )

    def run_and_send(self, send: Send, segment: int) -> None:
        """Compute a segment; what others read of it is on its way then."""
        self.program.run(segment)
        for host, values in self._leaves(segment):
            if not send(host, self.number, segment, values):
                self.others[host].deliver.remote(self.number, segment, values)

    def _leaves(self, segment: int) -> Iterator[tuple[str, Values]]:
        """The hosts that read what a segment has made, with what they read."""
        leaving = self.leaving.get(segment, ())
        # What one host has may let others go on, and write where the next one's value is.
        look = self.program.view if len(leaving) == 1 else self.program.value
        for host, names in leaving:
            yield host, {name: look(name) for name in names}

    def step(self, timeout_s: float, is_own: Callable[[str], bool]) -> Times:
        """Have the lanes run a step, with the copies to devices that are own ones."""
        assert isinstance(self.lanes, Lanes)
        used_s = time.process_time()
        step = self.lanes.step(timeout_s)
        self._await_state(timeout_s)
        if self.errors:
            raise self.errors[0]
        segments = {i: (step.start_s[i], step.end_s[i]) for i in self.cores}
        told, copies = self.program.device_times(), {}
        if told is not None:
            segments |= {i: span for i, span in told.segments.items() if i in self.cores}
            copies = {to: span for to, span in told.copies.items() if is_own(to[1])}
        used_s = time.process_time() - used_s
        return Times(step.began_s, step.ended_s, segments, step.resumed_s, copies, used_s)

    def _await_state(self, timeout_s: float) -> None:
        with self.told:
            if not self.told.wait_for(lambda: self.is_over or self.come >= self.due, timeout_s):
                raise TimeoutError(f"State did not come from other hosts within {timeout_s:g} s.")
            self.come.clear()

    def arrive(self, segment: int, values: Values) -> None:
        """What a segment of another host has made for lanes here."""
        self.take(values)
        with self.told:
            self.come.add(segment)
            self.told.notify_all()
        if self.lanes is not None:
            self.lanes.arrive(segment)

    def deliver(self, segment: int, values: Values) -> None:
        """Have it arrive where nobody waits to hear of errors: the step tells them and ends."""
        try:
            self.arrive(segment, values)
        except Exception as error:
            # Its traceback has the values, which are the channel's.
            self.errors.append(error.with_traceback(None))
            self.stop()

    def take(self, values: Values) -> None:
        """Use these values, which were made elsewhere."""
        for name, value in values.items():
            self.program.take(name, value)

    def values(self, names: Sequence[str]) -> dict[str, Any]:
        return {name: self.program.value(name) for name in names}

    def stop(self) -> None:
        self.program.stop()
        with self.told:
            self.is_over = True
            self.told.notify_all()
        if self.lanes is not None:
            self.lanes.close(0.0)

    def close(self) -> None:
        if self.lanes is None or self.lanes.close():
            self.program.close()


def opened(program: Program, devices: Sequence[Device]) -> Opened:
    """What is said of these devices of this host."""
    own, actual = {d.name: d for d in devices}, program.actual_devices
    return Opened(
        {
            # Of another runtime's word only what differs from what was asked for is of interest.
            name: CPU if own[name].on_host and found == own[name].provider else found
            for name, found in actual.items()
            if name in own
        },
        program.fallbacks,
        program.fallen,
        {name: num for name, num in program.peak_bytes.items() if name in own},
        program.tolerance,
    )
