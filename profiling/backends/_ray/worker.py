"""What runs on a host: an actor that opens models there and runs its share of a schedule.

It is an ordinary class, which Ray loads by its name from the installation of the host. Lanes are
threads as in a local run; what a lane of another host reads is sent there when its segment is over,
by channels between hosts, and its arrival lets the lanes go on that wait for it.
"""

import importlib.metadata
import itertools
import platform
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from placement.core.graph import Graph
from placement.core.machine import Device, Machine
from placement.core.model import Model
from placement.core.schedule import Schedule
from profiling import backends
from profiling.backends._ray.channels import NOTHING, Attention, Incoming, Outgoing, Read
from profiling.backends._ray.hosts import STUDIO, Facts, Host, boot_id, share, studio_version
from profiling.backends._ray.shipping import Shipment, unpacked
from profiling.backends.base import Backend, Compiled, Program, Renewal
from profiling.devices.cores import cpu_model, host_memory_bytes, split, usable_cores
from profiling.devices.lanes import Lane, Lanes, pin
from profiling.devices.local import accelerators, runtimes
from profiling.devices.probes import Probes

LIBRARIES = ("numpy", "onnx", "onnxruntime", "torch", "ray")
# What a device of another host is to the runtime here.
ELSEWHERE = "elsewhere"
CPU = "cpu"
# Messages that belong to no program: a question and its answer, for links, and a first one.
ASKED, ANSWERED, GREETED = -1, -2, -3
LIMIT_S, GREETING_S = 30.0, 2.0
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Kernels:
    """What a host makes of a model: see `profiling.backends.base.Compiled`."""

    graph: Graph
    sources: tuple[tuple[str, ...], ...]
    random_ops: tuple[str, ...]
    renewals: tuple[Renewal, ...]
    exchanged: frozenset[str]


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


# By segment what of its values another host reads: (host, names of tensors).
Leaving = Mapping[int, tuple[tuple[str, tuple[str, ...]], ...]]


@dataclass
class _Part:
    """The share that a host has in one program; `lanes` are there while steps are carried.

    A step is over when the state that segments of other hosts renew has come; these are `due`.
    `errors` have come in with values of other hosts.
    """

    program: Program
    cores: Mapping[int, tuple[int, ...]]
    leaving: Leaving
    others: Mapping[str, Any]
    due: frozenset[int] = frozenset()
    lanes: Lanes | None = None
    errors: list[BaseException] = field(default_factory=list)
    come: set[int] = field(default_factory=set)
    is_over: bool = False
    told: threading.Condition = field(default_factory=threading.Condition)

    def leaves(self, segment: int) -> Iterator[tuple[str, Values]]:
        """The hosts that read what a segment has made, with what they read."""
        for host, names in self.leaving.get(segment, ()):
            yield host, {name: self.program.value(name) for name in names}

    def await_state(self, timeout_s: float) -> None:
        with self.told:
            if not self.told.wait_for(lambda: self.is_over or self.come >= self.due, timeout_s):
                raise TimeoutError(f"State did not come from other hosts within {timeout_s:g} s.")
            self.come.clear()

    def note(self, segment: int) -> None:
        with self.told:
            self.come.add(segment)
            self.told.notify_all()

    def stop(self) -> None:
        self.program.stop()
        with self.told:
            self.is_over = True
            self.told.notify_all()
        if self.lanes is not None:
            self.lanes.close(0.0)


class Worker:
    """The actor of one host."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._cores = share(usable_cores(), host.first_core, host.num_cores)
        self._compiled: dict[str, Compiled] = {}
        self._machine: dict[str, Machine] = {}
        self._read: dict[str, Model] = {}
        self._parts: dict[int, _Part] = {}
        self._outgoing: dict[str, Outgoing] = {}
        self._incoming: dict[str, Incoming] = {}
        self._attention = Attention()
        self._questions = itertools.count()
        # Answers and first messages that have come, by kind and number.
        self._heard, self._hearing = Counter[tuple[int, int]](), threading.Condition()
        self._probes: dict[str, Probes] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="placement-", ignore_cleanup_errors=True)

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
            accelerators(),
        )

    def clock(self) -> float:
        return time.perf_counter()

    def connect(
        self, host: str, reader: Any, node_id: str, num_bytes: int, attempt: int
    ) -> tuple[Any, ...]:
        """Make channels for messages of so many bytes to another host's actor on a node.

        There are none where the object store has no room for them.
        """
        from ray.exceptions import ObjectStoreFullError

        self.disconnect(host)
        with suppress(ObjectStoreFullError):
            self._outgoing[host] = Outgoing(reader, node_id, num_bytes, attempt)
            return self._outgoing[host].channels
        return ()

    def disconnect(self, host: str) -> None:
        """Send to that host by calls from now on."""
        before = self._outgoing.pop(host, None)
        if before is not None:
            before.close()

    def listen(self, host: str, writer: Any, channels: Sequence[Any], attempt: int) -> None:
        """Take what comes by these channels of another host's actor from now on, and by no earlier
        ones.
        """

        def say(read: Read) -> None:
            writer.was_read.remote(self._host.name, read)

        if host in self._incoming:
            self._incoming[host].close()
        told = partial(self.told, host)
        self._incoming[host] = Incoming(channels, attempt, told, say, self._attention)

    def was_read(self, host: str, read: Read) -> None:
        """That host has read so much of what was sent to it by channels."""
        outgoing = self._outgoing.get(host)
        if outgoing is not None:
            outgoing.was_read(read)

    def forget(self, host: str) -> None:
        """That host is no more."""
        self.disconnect(host)
        if host in self._incoming:
            self._incoming.pop(host).close()

    def expect(self) -> None:
        """Messages of another host will come soon."""
        self._attention.wake()

    def greet(self, host: str, attempt: int) -> int:
        """Send a first message by each channel; how many there are, 0 where one is not read."""
        outgoing = self._outgoing.get(host)
        if outgoing is None:
            return 0
        sent = [self._sends(host, GREETED, attempt, {}) for _ in outgoing.channels]
        return len(sent) if all(sent) else 0

    def was_greeted(self, attempt: int, times: int) -> bool:
        """Whether so many first messages of this attempt to connect have come."""
        with self._attention.held():
            return self._has_heard(GREETED, attempt, times, GREETING_S)

    def _sends(self, host: str, number: int, segment: int, values: Values) -> bool:
        """Send a message by a channel; whether that could be."""
        outgoing, incoming = self._outgoing.get(host), self._incoming.get(host)
        if outgoing is None:
            return False
        read = NOTHING if incoming is None else incoming.read
        is_sent = outgoing.send(number, segment, values, read)
        if is_sent and incoming is not None:
            incoming.has_said(read)
        return is_sent

    def told(self, host: str, number: int, segment: int, values: Values, read: Read) -> None:
        """A message of another host has come, by a channel or a call."""
        self.was_read(host, read)
        if number == ASKED:
            self.copied(values)
            self._say(host, ANSWERED, segment, {})
        elif number in (ANSWERED, GREETED):
            with self._hearing:
                self._heard[number, segment] += 1
                self._hearing.notify_all()
        else:
            self.deliver(number, segment, values)

    def _has_heard(self, kind: int, number: int, times: int, timeout_s: float) -> bool:
        """Wait until so many messages of that kind and number have come; whether they have."""
        with self._hearing:
            return self._hearing.wait_for(lambda: self._heard[kind, number] >= times, timeout_s)

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
        if actor is None:
            ray.get(self._outgoing[other].reader.expect.remote(), timeout=LIMIT_S)
        with self._attention.held():
            for _ in range(rounds):
                began_s = time.perf_counter()
                if actor is None:
                    self._ask(other, {self._host.name: value})
                else:
                    ray.get(actor.copied.remote({self._host.name: value}), timeout=LIMIT_S)
                found.append(time.perf_counter() - began_s)
        return found

    def _say(self, host: str, number: int, segment: int, values: Values) -> None:
        """Send a message by a channel, or by a call while those are taken."""
        if not self._sends(host, number, segment, values):
            reader = self._outgoing[host].reader
            reader.told.remote(self._host.name, number, segment, values, NOTHING)

    def _ask(self, other: str, values: Values) -> None:
        """Send values by a channel and wait for the answer to these."""
        number = next(self._questions)
        self._say(other, ASKED, number, values)
        if not self._has_heard(ANSWERED, number, 1, LIMIT_S):
            raise TimeoutError(f"Host {other!r} gave no answer within {LIMIT_S:g} s.")

    def compile(self, key: str, shipment: Shipment, machine: Machine) -> Kernels:
        """Open a model and let the runtime of its format optimise it for all devices alike.

        What was compiled last is kept, by a key for model and machine.
        """
        if key not in self._compiled:
            for part in list(self._parts):
                self.close(part)
            self._compiled.clear()
            while self._probes:
                self._probes.popitem()[1].close()
            model = self._model(shipment)
            executable: Any = model.executable
            able = [b for b in backends.running(executable.format) if not b.missing()]
            if not able:
                raise ValueError(
                    f"Host {self._host.name!r} has no runtime for {model.graph.name!r}; install the"
                    " requirements of the studio there."
                )
            runtime = able[0]
            devices = self._as_here(machine.devices, runtime)
            inner = replace(machine, devices=devices)
            compiled = runtime.compile(model, inner)
            # From here on what other hosts run is another runtime's.
            mixed = tuple(
                d if self._own(d.name) else replace(d, runtime=ELSEWHERE) for d in devices
            )
            self._machine[key] = replace(inner, devices=mixed)
            self._compiled[key] = compiled.among(self._machine[key])
        found = self._compiled[key]
        exchanged = frozenset(t.name for t in found.kernels.tensors if found.exchanges(t))
        return Kernels(found.kernels, found.sources, found.random_ops, found.renewals, exchanged)

    def _as_here(self, devices: Sequence[Device], runtime: Backend) -> tuple[Device, ...]:
        """Devices as the runtime of a format drives them; own lanes of the CPU get their cores."""
        own_lanes = [d for d in devices if d.on_host and self._own(d.name)]
        cores = dict(
            zip((d.name for d in own_lanes), split(self._cores, len(own_lanes) or 1), strict=False)
        )
        here = {d.name: d for d in runtime.devices()}
        found = []
        for device in devices:
            provider = runtime.cpu_provider if device.on_host else device.provider
            if not device.on_host and self._own(device.name):
                if device.own_name not in here:
                    raise ValueError(
                        f"{runtime.name} has no {device.own_name} on host {self._host.name!r};"
                        " choose a machine file without it, or a model of another format."
                    )
                provider = here[device.own_name].provider
            core_ids = cores.get(device.name, ())
            found.append(
                replace(device, runtime=runtime.name, provider=provider, core_ids=core_ids)
            )
        return tuple(found)

    def copy_seconds(self, src: str, dst: str, sizes: Sequence[int]) -> Sequence[float] | None:
        """Seconds by size of a copy between two devices here, one of which is the CPU.

        None where no runtime tells.
        """
        for runtime in map(backends.get, runtimes()):
            here = {} if runtime.missing() else {d.name: d for d in runtime.devices()}
            if src in here and dst in here:
                return runtime.copy_seconds(here[src], here[dst], sizes)
        return None

    def _model(self, shipment: Shipment) -> Model:
        """The model of a shipment; the last one that was read is kept for other machines."""
        if shipment.key not in self._read:
            self._read.clear()
            folder = Path(tempfile.mkdtemp(dir=self._folder.name))
            self._read[shipment.key] = unpacked(shipment, folder)
        return self._read[shipment.key]

    def _own(self, device: str) -> bool:
        return device.rpartition("/")[0] == self._host.name

    def feeds(self, key: str, seed: int, given: Values) -> dict[str, Any]:
        return self._compiled[key].feeds(seed, given)

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
        compiled = self._compiled[key]
        if len(numbers) == 1 and len(feeds) == 1:
            programs: tuple[Program, ...] = (compiled.open(schedule, feeds[0]),)
        else:
            programs = compiled.open_ring(schedule, feeds, len(numbers))
        machine = self._machine[key]
        cores = {
            i: machine.device(segment.device).core_ids
            for i, segment in enumerate(schedule.segments)
            if self._own(segment.device)
        }
        for number, program in zip(numbers, programs, strict=True):
            self._parts[number] = _Part(program, cores, leaving, others, due)
        return _opened(programs[0], [d for d in machine.devices if self._own(d.name)])

    def open_unplaced(self, number: int, key: str, device: str, feeds: Values) -> Opened:
        """The whole model on one device, or on all cores of this host where none is named."""
        machine = self._machine[key]
        on = machine.device(device) if device else None
        program = self._compiled[key].unplaced(on, feeds)
        cores = on.core_ids if on else self._cores
        self._parts[number] = _Part(program, {0: cores}, {}, {})
        return _opened(program, [on] if on else [])

    def run(self, number: int, segment: int) -> tuple[float, float]:
        """Compute one segment and send what others read of it; start and end of the computing."""
        import ray

        part = self._parts[number]
        pin(part.cores[segment])
        began_s = time.perf_counter()
        part.program.run(segment)
        ended_s = time.perf_counter()
        sent = (
            part.others[host].arrive.remote(number, segment, values)
            for host, values in part.leaves(segment)
        )
        ray.get(list(sent))
        return began_s, ended_s

    def carry(
        self, number: int, lanes: Sequence[Lane], num_segments: int, by_channels: bool
    ) -> None:
        """Have threads for the lanes of this host, which run steps from now on.

        They send by channels, where these are and this is wanted, else by calls.
        """
        part = self._parts[number]
        own = [
            replace(lane, device=replace(lane.device, core_ids=part.cores[lane.segments[0]]))
            for lane in lanes
        ]
        alone = not part.leaving and not any(
            awaited not in part.cores for lane in own for them in lane.awaits for awaited in them
        )
        native = part.program.native if alone else None

        def run(segment: int) -> None:
            part.program.run(segment)
            for host, values in part.leaves(segment):
                if not (by_channels and self._sends(host, number, segment, values)):
                    part.others[host].deliver.remote(number, segment, values)

        part.lanes = Lanes(own, num_segments, run, native=native)

    def step(self, number: int, timeout_s: float) -> Times:
        part = self._parts[number]
        assert part.lanes is not None
        with self._attention.held():
            step = part.lanes.step(timeout_s)
            part.await_state(timeout_s)
        if part.errors:
            raise part.errors[0]
        segments = {i: (step.start_s[i], step.end_s[i]) for i in part.cores}
        told, copies = part.program.device_times(), {}
        if told is not None:
            segments |= {i: span for i, span in told.segments.items() if i in part.cores}
            copies = {to: span for to, span in told.copies.items() if self._own(to[1])}
        return Times(step.began_s, step.ended_s, segments, step.resumed_s, copies)

    def arrive(self, number: int, segment: int, values: Values) -> None:
        """What a segment of another host has made for lanes here."""
        part = self._parts[number]
        for name, value in values.items():
            part.program.take(name, value)
        part.note(segment)
        if part.lanes is not None:
            part.lanes.arrive(segment)

    def deliver(self, number: int, segment: int, values: Values) -> None:
        """Have it arrive where nobody waits to hear of errors: the step tells them and ends."""
        part = self._parts.get(number)
        if part is None:  # its program is closed
            return
        try:
            self.arrive(number, segment, values)
        except Exception as error:
            # Its traceback has the values, and with them memory that the channel needs.
            part.errors.append(error.with_traceback(None))
            part.stop()

    def outputs(self, number: int, names: Sequence[str] = (), *values: Any) -> dict[str, Any]:
        """The model's outputs; other hosts have made the values of these names."""
        program = self._parts[number].program
        for name, value in zip(names, values, strict=True):
            program.take(name, value)
        return program.outputs()

    def value(self, number: int, name: str) -> Any:
        return self._parts[number].program.value(name)

    def values(self, number: int, names: Sequence[str]) -> dict[str, Any]:
        return {name: self._parts[number].program.value(name) for name in names}

    def take(self, number: int, state: Values) -> None:
        """Let the next step start from this state."""
        for name, value in state.items():
            self._parts[number].program.take(name, value)

    def advance(self, number: int) -> None:
        self._parts[number].program.advance()

    def probe(self, key: str) -> dict[str, float]:
        """Seconds of a fixed piece of work by device of this host."""
        if key not in self._probes:
            devices = self._machine[key].devices
            self._probes[key] = Probes(d for d in devices if self._own(d.name))
        return self._probes[key].probe()

    def feed(self, number: int, which: int) -> None:
        self._parts[number].program.feed(which)

    def stop(self, number: int) -> None:
        part = self._parts.get(number)
        if part is not None:
            part.stop()

    def close(self, number: int) -> None:
        part = self._parts.pop(number, None)
        if part is not None and (part.lanes is None or part.lanes.close()):
            part.program.close()


def _opened(program: Program, devices: Sequence[Device]) -> Opened:
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
