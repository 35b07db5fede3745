"""What runs on a host: an actor that opens models there and runs its share of a schedule.

It is an ordinary class, which Ray loads by its name from the installation of the host. Lanes are
threads as in a local run; what a lane of another host reads is sent there when its segment is over,
from host to host, and its arrival lets the lanes go on that wait for it.
"""

import importlib.metadata
import platform
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from placement.core.graph import Graph
from placement.core.machine import Machine
from placement.core.schedule import Schedule
from profiling import backends
from profiling.backends._ray.hosts import STUDIO, Facts, Host, boot_id, share, studio_version
from profiling.backends._ray.shipping import Shipment, unpacked
from profiling.backends.base import Compiled, Program
from profiling.devices.cores import cpu_model, host_memory_bytes, split, usable_cores
from profiling.devices.lanes import Lane, Lanes, pin

LIBRARIES = ("numpy", "onnx", "onnxruntime", "torch", "ray")
# What a device of another host is to the runtime here.
ELSEWHERE = "elsewhere"
CPU = "cpu"
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Kernels:
    """What a host makes of a model: see `profiling.backends.base.Compiled`."""

    graph: Graph
    sources: tuple[tuple[str, ...], ...]
    random_ops: tuple[str, ...]
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


# By segment what of its values another host reads: (host, names of tensors).
Leaving = Mapping[int, tuple[tuple[str, tuple[str, ...]], ...]]


@dataclass
class _Part:
    """The share that a host has in one program; `lanes` are there while steps are carried."""

    program: Program
    cores: Mapping[int, tuple[int, ...]]
    leaving: Leaving
    others: Mapping[str, Any]
    lanes: Lanes | None = None
    sent: list[Any] = field(default_factory=list)


class Worker:
    """The actor of one host."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._cores = share(usable_cores(), host.first_core, host.num_cores)
        self._compiled: dict[str, Compiled] = {}
        self._machine: dict[str, Machine] = {}
        self._parts: dict[int, _Part] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="placement-", ignore_cleanup_errors=True)

    def facts(self) -> Facts:
        """Versions, the CPU as one device, and which computer this is."""
        versions = [("Python", platform.python_version()), (STUDIO, studio_version())]
        for name in LIBRARIES:
            try:
                versions.append((name, importlib.metadata.version(name)))
            except importlib.metadata.PackageNotFoundError:
                versions.append((name, "none"))
        return Facts(tuple(versions), host_memory_bytes(), len(self._cores), cpu_model(), boot_id())

    def clock(self) -> float:
        return time.perf_counter()

    def echo(self, value: Any) -> None:
        """Take a value and do nothing: for links."""

    def sent_s(self, other: Any, num_bytes: int, rounds: int) -> list[float]:
        """Seconds to send so many bytes to another host and hear of it, by round."""
        import numpy as np
        import ray

        value, found = np.ones(num_bytes, np.uint8), list[float]()
        for _ in range(rounds):
            began_s = time.perf_counter()
            ray.get(other.echo.remote(value))
            found.append(time.perf_counter() - began_s)
        return found

    def compile(self, key: str, shipment: Shipment, machine: Machine) -> Kernels:
        """Open a model and let the runtime of its format optimise it for all devices alike.

        What was compiled last is kept, by a key for model and machine.
        """
        if key not in self._compiled:
            for part in list(self._parts):
                self.close(part)
            self._compiled.clear()
            folder = Path(tempfile.mkdtemp(dir=self._folder.name))
            model = unpacked(shipment, folder)
            executable: Any = model.executable
            able = [b for b in backends.running(executable.format) if not b.missing()]
            if not able:
                raise ValueError(
                    f"Host {self._host.name!r} has no runtime for {model.graph.name!r}; install the"
                    " requirements of the studio there."
                )
            runtime = able[0]
            cores = iter(split(self._cores, sum(self._own(d.name) for d in machine.devices)))
            devices = tuple(
                replace(
                    device,
                    runtime=runtime.name,
                    provider=runtime.cpu_provider,
                    core_ids=next(cores) if self._own(device.name) else (),
                )
                for device in machine.devices
            )
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
        return Kernels(found.kernels, found.sources, found.random_ops, exchanged)

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
            self._parts[number] = _Part(program, cores, leaving, others)
        own = {d.name: d.provider for d in machine.devices if self._own(d.name)}
        return _opened(programs[0], own)

    def open_unplaced(self, number: int, key: str, device: str, feeds: Values) -> Opened:
        """The whole model on one device, or on all cores of this host where none is named."""
        machine = self._machine[key]
        on = machine.device(device) if device else None
        program = self._compiled[key].unplaced(on, feeds)
        cores = on.core_ids if on else self._cores
        self._parts[number] = _Part(program, {0: cores}, {}, {})
        return _opened(program, {on.name: on.provider} if on else {})

    def run(self, number: int, segment: int) -> tuple[float, float]:
        """Compute one segment and send what others read of it; start and end of the computing."""
        import ray

        part = self._parts[number]
        pin(part.cores[segment])
        began_s = time.perf_counter()
        part.program.run(segment)
        ended_s = time.perf_counter()
        ray.get(self._sent(number, part, segment))
        return began_s, ended_s

    def carry(self, number: int, lanes: Sequence[Lane], num_segments: int) -> None:
        """Have threads for the lanes of this host, which run steps from now on."""
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
            part.sent += self._sent(number, part, segment)

        part.lanes = Lanes(own, num_segments, run, native=native)

    def step(self, number: int, timeout_s: float) -> Times:
        part = self._parts[number]
        assert part.lanes is not None
        part.sent.clear()
        step = part.lanes.step(timeout_s)
        segments = {i: (step.start_s[i], step.end_s[i]) for i in part.cores}
        return Times(step.began_s, step.ended_s, segments, step.resumed_s)

    def _sent(self, number: int, part: _Part, segment: int) -> list[Any]:
        sent = []
        for host, names in part.leaving.get(segment, ()):
            values = {name: part.program.value(name) for name in names}
            sent.append(part.others[host].arrive.remote(number, segment, values))
        return sent

    def arrive(self, number: int, segment: int, values: Values) -> None:
        """What a segment of another host has made for lanes here."""
        part = self._parts[number]
        for name, value in values.items():
            part.program.take(name, value)
        if part.lanes is not None:
            part.lanes.arrive(segment)

    def outputs(self, number: int, names: Sequence[str] = (), *values: Any) -> dict[str, Any]:
        """The model's outputs; other hosts have made the values of these names."""
        program = self._parts[number].program
        for name, value in zip(names, values, strict=True):
            program.take(name, value)
        return program.outputs()

    def value(self, number: int, name: str) -> Any:
        return self._parts[number].program.value(name)

    def feed(self, number: int, which: int) -> None:
        self._parts[number].program.feed(which)

    def stop(self, number: int) -> None:
        part = self._parts.get(number)
        if part is not None:
            part.program.stop()
            if part.lanes is not None:
                part.lanes.close(0.0)

    def close(self, number: int) -> None:
        part = self._parts.pop(number, None)
        if part is not None and (part.lanes is None or part.lanes.close()):
            part.program.close()


def _opened(program: Program, own: Mapping[str, str]) -> Opened:
    """What is said of devices of this host, given as name and provider."""
    actual = program.actual_devices
    return Opened(
        {
            # Of another runtime's word only what differs from what was asked for is of interest.
            name: CPU if found == own[name] else found
            for name, found in actual.items()
            if name in own
        },
        program.fallbacks,
        program.fallen,
        {name: num for name, num in program.peak_bytes.items() if name in own},
        program.tolerance,
    )
