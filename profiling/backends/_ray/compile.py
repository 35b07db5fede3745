"""A model compiled on the hosts of a cluster, and its programs there.

Every host makes the same kernels of the model and opens its own share of a schedule. A step is one
call to each host, whose lanes then run as in a local step and send values to each other.
"""

import copy
import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from placement.core.decoding import shown
from placement.core.graph import Graph, Tensor
from placement.core.machine import Device, Machine
from placement.core.model import Model
from placement.core.schedule import Schedule
from profiling.backends._joined import difference
from profiling.backends._ray.cluster import Cluster
from profiling.backends._ray.models import Kernels
from profiling.backends._ray.part import Leaving, Opened, Times
from profiling.backends._ray.samples import HostSamples
from profiling.backends._ray.shipping import packed
from profiling.backends.base import Compiled, DevicesLost, DeviceTimes, Feeds, Program, Renewal
from profiling.devices.lanes import Lane, Step

# Compiling and opening have limits of their own; a host that is gone is noticed at any time.
READY_S = 600.0
# What a step may take longer than its limit until the hosts have told so.
MARGIN_S = 5.0
# How long a fixed piece of work may take on a host.
PROBE_S = 60.0
_numbers = itertools.count()


class RayCompiled(Compiled):
    """See `profiling.backends.base.Compiled`; the first host says what kernels there are."""

    def __init__(self, cluster: Cluster, model: Model, machine: Machine) -> None:
        self.cluster, self.machine = cluster, machine
        self.hosts = tuple(dict.fromkeys(device.host for device in machine.devices))
        for host in self.hosts:
            names = (d.name for d in machine.devices if d.host == host)
            cluster.devices[host] = tuple(names)
        shipment = packed(model)
        self.key = f"{shipment.key} {machine.fingerprint}"
        sent = cluster.share(shipment)
        told: dict[str, Kernels] = cluster.all(
            "compile", self.hosts, self.key, sent, machine, timeout_s=READY_S
        )
        first = told[self.hosts[0]]
        for host, kernels in told.items():
            # Each host has them in an order of its own.
            if difference(self.hosts[0], first.graph, host, kernels.graph):
                raise ValueError(
                    f"Hosts {shown(self.hosts[0])} and {shown(host)} make different kernels of"
                    f" {model.graph.name!r}, as processors of different kinds do; use hosts of one"
                    " kind."
                )
        self._by_op, self._has_copies = first.by_op, False
        self._take(first)

    def _take(self, told: Kernels) -> None:
        self.kernels: Graph = told.graph
        self.sources, self.random_ops = told.sources, told.random_ops
        self.renewals, self._exchanged = told.renewals, told.exchanged

    def by_op(self) -> "RayCompiled | None":
        if self._by_op is None:
            return None
        other = copy.copy(self)
        other._take(self._by_op)
        return other

    def feeds(self, seed: int, given: Feeds) -> dict[str, Any]:
        found: dict[str, Any] = self.cluster.ask(
            self.hosts[0], "feeds", self.key, seed, dict(given)
        )
        return found

    def open(self, schedule: Schedule, feeds: Feeds) -> Program:
        return self.open_ring(schedule, (feeds,), 1)[0]

    def open_ring(
        self, schedule: Schedule, feeds: Sequence[Feeds], depth: int
    ) -> tuple[Program, ...]:
        on = [self.machine.device(segment.device).host for segment in schedule.segments]
        used = tuple(dict.fromkeys(on or self.hosts[:1]))
        if self._has_copies and len(used) == 1:
            # The others hold a copy and compute nothing.
            used += tuple(host for host in self.hosts if host not in used)[:1]
        held = {r: self._holders(r, schedule, on, used) for r in self.renewals}
        leaving = self._leaving(schedule, on, held)
        numbers = [next(_numbers) for _ in range(depth)]
        fed = self.cluster.share([dict(one) for one in feeds])
        asked = {
            host: self.cluster.begin(
                host,
                "open",
                numbers,
                self.key,
                schedule,
                fed,
                {i: to for i, to in leaving.items() if on[i] == host},
                {other: self.cluster.workers[other] for other in used if other != host},
                frozenset(
                    schedule.segment_of[renewal.maker]
                    for renewal, (_, *others) in held.items()
                    if host in others
                ),
            )
            for host in used
        }
        told: dict[str, Opened] = self.cluster.settled(asked, READY_S)
        crossing = {(on[segment], host) for segment, to in leaving.items() for host, _ in to}
        return tuple(RayProgram(self, n, told, schedule, on, crossing, held) for n in numbers)

    def _holders(
        self, renewal: Renewal, schedule: Schedule, on: Sequence[str], used: Sequence[str]
    ) -> tuple[str, ...]:
        """The hosts that have a piece of state after each step: first who makes it, then whoever
        reads it, and with copies one more where these are one.
        """
        maker = on[schedule.segment_of[renewal.maker]]
        found = dict.fromkeys([maker, *(on[schedule.segment_of[n]] for n in renewal.readers)])
        if self._has_copies and len(found) == 1 and len(used) > 1:
            found[used[(used.index(maker) + 1) % len(used)]] = None
        return tuple(found)

    def _leaving(
        self, schedule: Schedule, on: Sequence[str], held: Mapping[Renewal, Sequence[str]]
    ) -> Leaving:
        """By segment what other hosts read; ValueError for a value that none can hand over."""
        found: dict[int, dict[str, list[str]]] = {}
        for renewal, (_, *others) in held.items():
            for host in others:
                maker = schedule.segment_of[renewal.maker]
                found.setdefault(maker, {}).setdefault(host, []).append(renewal.made)
        for tensor in self.kernels.tensors:
            if tensor.producer is None:
                continue
            maker = schedule.segment_of[tensor.producer]
            readers = dict.fromkeys(on[schedule.segment_of[name]] for name in tensor.consumers)
            readers.pop(on[maker], None)
            if readers and not self.exchanges(tensor):
                raise ValueError(
                    f"Value {shown(tensor.name)} ({tensor.dtype}) cannot cross between hosts; place"
                    f" {shown(tensor.producer)} and what reads it on one host."
                )
            for host in readers:
                found.setdefault(maker, {}).setdefault(host, []).append(tensor.name)
        return {
            i: tuple((h, tuple(dict.fromkeys(n))) for h, n in to.items()) for i, to in found.items()
        }

    def unplaced(self, device: Device | None, feeds: Feeds) -> Program:
        host = self.hosts[0] if device is None else device.host
        number, name = next(_numbers), device.name if device is not None else ""
        told = self.cluster.ask(host, "open_unplaced", number, self.key, name, dict(feeds))
        return RayProgram(self, number, {host: told}, None, [host])

    def with_copies(self) -> "RayCompiled":
        other = copy.copy(self)
        other._has_copies = True
        return other

    def probe(self) -> dict[str, float]:
        told: Mapping[str, dict[str, float]] = self.cluster.all(
            "probe", self.hosts, self.key, timeout_s=PROBE_S
        )
        return _joined(told.values())

    def exchanges(self, tensor: Tensor) -> bool:
        return tensor.name in self._exchanged


class RayProgram(Program):
    """See `profiling.backends.base.Program`; without a schedule it is the unplaced model."""

    def __init__(
        self,
        compiled: RayCompiled,
        number: int,
        told: Mapping[str, Opened],
        schedule: Schedule | None,
        on: Sequence[str],
        crossing: Iterable[tuple[str, str]] = (),
        held: Mapping[Renewal, Sequence[str]] | None = None,
    ) -> None:
        self.cluster, self.number, self.on = compiled.cluster, number, tuple(on)
        self.crossing = tuple(sorted(crossing))
        self.hosts = tuple(told)
        self._kernels, self._schedule = compiled.kernels, schedule
        self._held, self._has_begun = held or {}, False
        self._times: dict[int, tuple[float, float]] = {}
        self.actual_devices = _joined(each.actual_devices for each in told.values())
        self.peak_bytes = _joined(each.peak_bytes for each in told.values())
        self.fallbacks = tuple(said for each in told.values() for said in each.fallbacks)
        self.fallen = tuple(sorted({i for each in told.values() for i in each.fallen}))
        self.tolerance = (
            max(each.tolerance[0] for each in told.values()),
            max(each.tolerance[1] for each in told.values()),
        )

    @property
    def lanes_note(self) -> str:  # type: ignore[override]
        """The hosts, and how well their clocks are known by now."""
        return _note(self.cluster, self.hosts)

    def run(self, segment: int) -> None:
        host = self.on[segment]
        began_s, ended_s = self.cluster.ask(host, "run", self.number, segment)
        offset = self.cluster.offset(host)
        self._times[segment] = offset.here(began_s), offset.here(ended_s)

    def device_times(self) -> DeviceTimes | None:
        return DeviceTimes(dict(self._times), {}) if self._times else None

    def carried(self, lanes: Sequence[Lane], num_segments: int) -> "HostLanes":
        return HostLanes(self, lanes, num_segments)

    def streamed(
        self,
        ring: Sequence[Program],
        lanes: Sequence[Lane],
        stage_of: Sequence[int],
        watched: range,
    ) -> HostSamples:
        programs = [program for program in ring if isinstance(program, RayProgram)]
        return HostSamples(programs, lanes, stage_of, watched)

    @property
    def outputs_by_host(self) -> dict[str, tuple[str, ...]]:
        """By host the outputs of the model, and state, that are made there."""
        found, schedule = defaultdict[str, list[str]](list), self._schedule
        for tensor in self._kernels.outputs:
            if schedule is not None and tensor.producer is not None:
                found[self.on[schedule.segment_of[tensor.producer]]].append(tensor.name)
        for renewal, hosts in self._held.items():
            found[hosts[0]].append(renewal.made)
        return {host: tuple(dict.fromkeys(names)) for host, names in found.items()}

    def outputs(self) -> dict[str, Any]:
        first, by_host = self.hosts[0], self.outputs_by_host
        if len(by_host) == 1:
            (first,) = by_host
        away = [(name, host) for host, names in by_host.items() for name in names if host != first]
        values = [self.cluster.begin(host, "value", self.number, name) for name, host in away]
        names = [name for name, _ in away]
        found: dict[str, Any] = self.cluster.ask(first, "outputs", self.number, names, *values)
        return found

    @property
    def moves_on(self) -> bool:
        """Whether the next step starts from what one has made."""
        return bool(self._held)

    def output(self, name: str) -> Any:
        found = next((t for t in self._kernels.outputs if t.name == name), None)
        is_made = self._schedule is not None and found is not None and found.producer is not None
        return self.value(name) if is_made else self.outputs()[name]

    def advance(self) -> None:
        """All hosts that are left move on; one that is lost now is missed by the next step."""
        self._has_begun = True
        asked = {host: self.cluster.begin(host, "advance", self.number) for host in self.hosts}
        for host, ref in asked.items():
            with suppress(DevicesLost):
                self.cluster.settled({host: ref}, READY_S, alone=True)

    def state(self) -> dict[str, Any]:
        while True:
            lost = frozenset(self.cluster.lost)
            try:
                return self._state_without(lost)
            except DevicesLost:
                if self.cluster.lost == lost:
                    raise

    def _state_without(self, lost: frozenset[str]) -> dict[str, Any]:
        """The state from hosts that are left; DevicesLost where a part was on none of them."""
        wanted: dict[str, list[str]] = {}
        for renewal, holders in self._held.items():
            hosts = holders if self._has_begun else self.hosts
            left = next((host for host in hosts if host not in lost), None)
            if left is None:
                raise DevicesLost(
                    f"What the training had reached was on {' and '.join(map(shown, hosts))} alone"
                    " and is lost; train again, with --resume to keep it on two hosts."
                )
            wanted.setdefault(left, []).append(renewal.state)
        asked = {
            host: self.cluster.begin(host, "values", self.number, names)
            for host, names in wanted.items()
        }
        return _joined(self.cluster.settled(asked, READY_S, alone=True).values())

    def take_state(self, state: Mapping[str, Any]) -> None:
        sent = self.cluster.share(dict(state))
        self.cluster.all("take", self.hosts, self.number, sent, timeout_s=READY_S)

    def value(self, name: str) -> Any:
        maker = next(t.producer for t in self._kernels.tensors if t.name == name)
        assert self._schedule is not None and maker is not None, name
        host = self.on[self._schedule.segment_of[maker]]
        return self.cluster.ask(host, "value", self.number, name)

    def feed(self, number: int) -> None:
        self.cluster.all("feed", self.hosts, self.number, number, timeout_s=READY_S)

    def stop(self) -> None:
        for host in self.hosts:
            with suppress(Exception):
                self.cluster.begin(host, "stop", self.number)

    def close(self) -> None:
        for host in self.hosts:
            with suppress(Exception):
                self.cluster.begin(host, "close", self.number)


class HostLanes:
    """The lanes of a program on their hosts; a step is one call to each."""

    def __init__(self, program: RayProgram, lanes: Sequence[Lane], num_segments: int) -> None:
        self._program, self._cluster = program, program.cluster
        self._num_segments = num_segments
        by_host: dict[str, list[Lane]] = {}
        for lane in lanes:
            by_host.setdefault(program.on[lane.segments[0]], []).append(lane)
        self._computing = frozenset(by_host)
        on = program.on
        self._crossing = [
            (producer, reader)
            for lane in lanes
            for reader, awaits in zip(lane.segments, lane.awaits, strict=True)
            for producer in awaits
            if on[producer] != on[reader]
        ]
        # Who only keeps state has a step, too, which ends when that has come.
        by_host |= {host: [] for host in program.hosts if program.moves_on and host not in by_host}
        self._hosts = tuple(by_host)
        self._cluster.join(program.crossing)
        asked = {
            host: self._cluster.begin(host, "carry", program.number, own, num_segments)
            for host, own in by_host.items()
        }
        self._cluster.settled(asked, READY_S)

    def step(self, timeout_s: float) -> Step:
        asked = {
            host: self._cluster.begin(host, "step", self._program.number, timeout_s)
            for host in self._hosts
        }
        try:
            told: dict[str, Times] = self._cluster.settled(asked, timeout_s + MARGIN_S)
        except BaseException:
            # Lanes of other hosts wait for values that do not come.
            self._program.stop()
            raise
        start_s, end_s = [0.0] * self._num_segments, [0.0] * self._num_segments
        resumed_s: dict[tuple[int, str], float] = {}
        copied_s: dict[tuple[str, str], tuple[float, float]] = {}
        began_s, ended_s = list[float](), list[float]()
        for host, times in told.items():
            here = self._cluster.offset(host).here
            if host in self._computing:
                ended_s.append(here(times.ended_s))
            for segment, (start, end) in times.segments.items():
                start_s[segment], end_s[segment] = here(start), here(end)
                began_s.append(start_s[segment])
            resumed_s |= {key: here(at_s) for key, at_s in times.resumed_s.items()}
            copied_s |= {
                to: (here(start), here(end)) for to, (start, end) in times.copied_s.items()
            }
        for producer, reader in self._crossing:
            # Who reads a value may begin before its sender knows that it is sent.
            latest_s = min(end_s[producer], start_s[reader])
            end_s[producer] = max(start_s[producer], latest_s)
        return Step(
            # A host that waits for another may hear of the step before that one does.
            min(began_s, default=0.0),
            max(ended_s, default=0.0),
            tuple(start_s),
            tuple(end_s),
            resumed_s,
            copied_s,
            sum(times.processor_s for times in told.values()),
        )

    def close(self) -> bool:
        """True: what is still inside a segment is the hosts' to wait for."""
        return True


def _joined(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for row in rows for name, value in row.items()}


def _note(cluster: Cluster, hosts: Sequence[str]) -> str:
    offsets = [cluster.known_offset(host) for host in hosts]
    worst = max(offsets, key=lambda offset: offset.uncertainty_s)
    clocks = ""
    if worst.uncertainty_s:
        rate_us, within_us = round(worst.rate * 1e6), round(worst.rate_uncertainty * 1e6)
        clocks = (
            f", whose clocks are known to {worst.uncertainty_s * 1e3:.2g} ms and drift by"
            f" {rate_us} us per second, within {within_us}"
        )
    return f"Lanes ran on {' and '.join(hosts)}{clocks}."
