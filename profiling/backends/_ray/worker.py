"""What runs on a host: an actor that opens models there and runs its share of a schedule.

It is an ordinary class, which Ray loads by its name from the installation of the host. What hosts
send to each other goes by channels between them, or by calls of this class.
"""

import importlib.metadata
import itertools
import os
import platform
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from placement.core.machine import Machine
from placement.core.schedule import Schedule
from profiling.backends._ray.channels import Door, Entry, Message, Outgoing
from profiling.backends._ray.hosts import (
    STUDIO,
    Accelerator,
    Facts,
    Host,
    boot_id,
    share,
    slot_of,
    studio_version,
)
from profiling.backends._ray.models import Kernels, Models, copy_seconds
from profiling.backends._ray.part import Leaving, Opened, Part, Times, Values, opened
from profiling.backends._ray.samples import Sampled, SampleLanes
from profiling.backends._ray.shipping import Shipment
from profiling.backends.base import Core, Program
from profiling.devices.cores import cpu_model, host_memory_bytes, usable_cores
from profiling.devices.lanes import Lane
from profiling.devices.local import accelerators
from profiling.measuring.load import counters

LIBRARIES = ("numpy", "onnx", "onnxruntime", "torch", "ray")
# Messages that belong to no program: a question and its answer, for links.
ASKED, ANSWERED = -1, -2
LIMIT_S = 30.0


class Worker:
    """The actor of one host."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._cores = share(usable_cores(), host.first_core, host.num_cores)
        self._models = Models(host.name, self._cores)
        self._parts: dict[int, Part] = {}
        self._streams: dict[int, SampleLanes] = {}
        # Other hosts' actors, and channels to them.
        self._others: dict[str, Any] = {}
        self._outgoing: dict[str, Outgoing] = {}
        self._connecting = threading.Lock()
        self._door: Door | None = None
        self._questions = itertools.count()
        # Questions that have been answered.
        self._answered, self._hearing = set[int](), threading.Condition()

    def facts(self) -> Facts:
        """Versions, the CPU as one device, and which computer this is."""
        versions = [("Python", platform.python_version()), (STUDIO, studio_version())]
        for name in LIBRARIES:
            try:
                versions.append((name, importlib.metadata.version(name)))
            except importlib.metadata.PackageNotFoundError:
                versions.append((name, "none"))
        return Facts(
            tuple(versions),
            host_memory_bytes(),
            len(self._cores),
            cpu_model(),
            boot_id(),
            tuple(Accelerator(device, slot_of(device.name)) for device in accelerators()),
        )

    def clock(self) -> float:
        return time.perf_counter()

    def counters(self) -> tuple[Mapping[Core, float], float, float] | None:
        """Busy seconds of the cores of this host, those of this actor and of its node there, and
        which share of the computer's cores these are.

        Nobody says on which of them a node computes, so its share is taken for that.
        """
        import psutil

        counted, node = counters(), psutil.Process().parent()
        if counted is None or node is None:
            return None
        ((busy_s, own_s),) = counted
        share = len(self._cores) / len(busy_s)
        try:
            times = node.cpu_times()
        except psutil.Error:
            return None
        # Another actor in place of this one counts anew.
        name, pid = self._host.name, os.getpid()
        there: dict[Core, float] = {
            (name, pid, core): busy_s[core] for core in self._cores if core in busy_s
        }
        return there, own_s + share * float(times.user + times.system), share

    def entry(self) -> Entry | None:
        """Where other hosts connect to this one; None where it cannot be reached."""
        with self._connecting:
            if self._door is None:
                with suppress(OSError):
                    self._door = Door(self._host.address, self.told, self.broke)
            return None if self._door is None else self._door.entry

    def connect(self, host: str, actor: Any, entry: Entry | None) -> bool:
        """Have a channel to another host's actor; False where it has to be called."""
        with self._connecting:
            self._others[host] = actor
            before = self._outgoing.get(host)
            is_there = before is not None and before.is_open and not before.has_ended()
            if is_there and before is not None and before.entry == entry:
                # Somebody may be sending by it.
                return True
            self._disconnect(host)
            if entry is not None:
                otherwise = partial(self._calls, host)
                with suppress(OSError):
                    self._outgoing[host] = Outgoing(self._host.name, entry, otherwise)
            return host in self._outgoing

    def forget(self, host: str) -> None:
        """That host is no more."""
        with self._connecting:
            self._others.pop(host, None)
            self._disconnect(host)
            if self._door is not None:
                self._door.forget(host)

    def _disconnect(self, host: str) -> None:
        before = self._outgoing.pop(host, None)
        if before is not None:
            before.close()

    def _sends(self, host: str, number: int, segment: int, values: Values) -> bool:
        """Send a message by a channel; whether that could be."""
        outgoing = self._outgoing.get(host)
        return outgoing is not None and outgoing.send(number, segment, values)

    def _calls(self, host: str, message: Message) -> None:
        """Send a message by a call, which who waits for it hears of where it fails."""
        actor = self._others.get(host)
        if actor is not None:
            actor.told.remote(self._host.name, *message)

    def broke(self, host: str, error: Exception) -> None:
        """What came of that host could not be read: whoever waits for it waits in vain."""
        told = RuntimeError(f"values of host {host!r} could not be read: {error}")
        for part in tuple(self._parts.values()):
            if host in part.others:
                part.errors.append(told)
                part.stop()

    def told(self, host: str, number: int, segment: int, values: Values) -> None:
        """A message of another host has come, by a channel or a call."""
        if number == ASKED:
            self.copied(values)
            self._say(host, ANSWERED, segment, {})
        elif number == ANSWERED:
            with self._hearing:
                self._answered.add(segment)
                self._hearing.notify_all()
        else:
            self.deliver(number, segment, values)

    def copied(self, values: Values) -> None:
        """Take what is sent for the sake of its time: what a segment reads is copied."""
        for value in values.values():
            np.array(value)

    def sent_s(self, other: str, actor: Any, num_bytes: int, rounds: int) -> list[float]:
        """Seconds to send so many bytes to another host and hear of it, by round.

        By channels, or by calls where an actor is given.
        """
        import ray

        value, found = np.ones(num_bytes, np.uint8), list[float]()
        for _ in range(rounds):
            began_s = time.perf_counter()
            if actor is None:
                self._ask(other, {self._host.name: value})
            else:
                ray.get(actor.copied.remote({self._host.name: value}), timeout=LIMIT_S)
            found.append(time.perf_counter() - began_s)
        return found

    def _say(self, host: str, number: int, segment: int, values: Values) -> None:
        """Send a message by a channel, or by a call where there is none."""
        if not self._sends(host, number, segment, values):
            self._calls(host, (number, segment, values))

    def _ask(self, other: str, values: Values) -> None:
        """Send values by a channel and wait for the answer to these."""
        number = next(self._questions)
        self._say(other, ASKED, number, values)
        with self._hearing:
            if not self._hearing.wait_for(lambda: number in self._answered, LIMIT_S):
                raise TimeoutError(f"Host {other!r} gave no answer within {LIMIT_S:g} s.")
            self._answered.remove(number)

    def compile(self, key: str, shipment: Shipment, machine: Machine) -> Kernels:
        """Open a model and let the runtime of its format optimise it for all devices alike.

        What was compiled last is kept, by a key for model and machine.
        """
        if key not in self._models:
            for number in list(self._parts):
                self.close(number)
            self._models.compile(key, shipment, machine)
        return self._models.kernels(key)

    def copy_seconds(self, src: str, dst: str, sizes: Sequence[int]) -> Sequence[float] | None:
        return copy_seconds(src, dst, sizes)

    def probe(self, key: str) -> dict[str, float]:
        return self._models.probe(key)

    def feeds(self, key: str, seed: int, given: Values) -> dict[str, Any]:
        return self._models[key].compiled.feeds(seed, given)

    def open(
        self,
        numbers: Sequence[int],
        key: str,
        schedule: Schedule,
        feeds: Sequence[Values],
        leaving: Leaving,
        others: Mapping[str, Any],
        due: frozenset[int],
    ) -> Opened:
        """Programs of a schedule by these numbers; of several inputs all take any of them."""
        made = self._models[key]
        if len(numbers) == 1 and len(feeds) == 1:
            programs: tuple[Program, ...] = (made.compiled.open(schedule, feeds[0]),)
        else:
            programs = made.compiled.open_ring(schedule, feeds, len(numbers))
        cores = {
            i: made.machine.device(segment.device).core_ids
            for i, segment in enumerate(schedule.segments)
            if self._models.has(segment.device)
        }
        for number, program in zip(numbers, programs, strict=True):
            self._parts[number] = Part(number, program, cores, leaving, others, due)
        return opened(programs[0], [d for d in made.machine.devices if self._models.has(d.name)])

    def open_unplaced(self, number: int, key: str, device: str, feeds: Values) -> Opened:
        """The whole model on one device, or on all cores of this host where none is named."""
        made = self._models[key]
        on = made.machine.device(device) if device else None
        program = made.compiled.unplaced(on, feeds)
        cores = on.core_ids if on else self._cores
        self._parts[number] = Part(number, program, {0: cores}, {}, {})
        return opened(program, [on] if on else [])

    def run(self, number: int, segment: int) -> tuple[float, float]:
        return self._parts[number].run(segment)

    def carry(self, number: int, lanes: Sequence[Lane], num_segments: int) -> None:
        """Have lanes for the steps of a program."""
        self._parts[number].carry(lanes, num_segments, self._sends)

    def step(self, number: int, timeout_s: float) -> Times:
        return self._parts[number].step(timeout_s, self._models.has)

    def stream(
        self,
        numbers: Sequence[int],
        lanes: Sequence[Lane],
        stage_of: Sequence[int],
        answers: Sequence[str] | None,
    ) -> None:
        """Have lanes for samples through programs of these numbers, known by the first of them."""
        parts = [self._parts[number] for number in numbers]
        self._streams[numbers[0]] = SampleLanes(parts, lanes, stage_of, self._sends, answers)

    def sample(self, number: int, sample: int, feed: int) -> Sampled:
        return self._streams[number].sample(sample, feed)

    def end_stream(self, number: int, limit: int) -> None:
        self._streams[number].end(limit)

    def arrive(self, number: int, segment: int, values: Values) -> None:
        self._parts[number].arrive(segment, values)

    def deliver(self, number: int, segment: int, values: Values) -> None:
        part = self._parts.get(number)
        if part is not None:  # else its program is closed
            part.deliver(segment, values)

    def outputs(self, number: int, names: Sequence[str] = (), *values: Any) -> dict[str, Any]:
        """The model's outputs; other hosts have made the values of these names."""
        part = self._parts[number]
        part.take(dict(zip(names, values, strict=True)))
        return part.program.outputs()

    def value(self, number: int, name: str) -> Any:
        return self._parts[number].program.value(name)

    def values(self, number: int, names: Sequence[str]) -> dict[str, Any]:
        return self._parts[number].values(names)

    def take(self, number: int, state: Values) -> None:
        """Let the next step start from this state."""
        self._parts[number].take(state)

    def advance(self, number: int) -> None:
        self._parts[number].program.advance()

    def feed(self, number: int, which: int) -> None:
        self._parts[number].program.feed(which)

    def stop(self, number: int) -> None:
        part = self._parts.get(number)
        if part is not None:
            part.stop()

    def close(self, number: int) -> None:
        self._streams.pop(number, None)
        part = self._parts.pop(number, None)
        if part is not None:
            part.close()
