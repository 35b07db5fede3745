"""The models that a host has read, and what the runtimes there make of them."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from placement.core.graph import Graph
from placement.core.machine import Device, Machine
from placement.core.model import Model
from profiling import backends
from profiling.backends._ray.shipping import Shipment, unpacked
from profiling.backends.base import Backend, Compiled, Renewal
from profiling.devices.cores import split
from profiling.devices.local import runtimes
from profiling.devices.probes import Probes

# What a device of another host is to the runtime here.
ELSEWHERE = "elsewhere"


@dataclass(frozen=True)
class Kernels:
    """What a host makes of a model: see `profiling.backends.base.Compiled`.

    `by_op` is the same with a kernel for each op, where there are fewer kernels than that.
    """

    graph: Graph
    sources: tuple[tuple[str, ...], ...]
    random_ops: tuple[str, ...]
    renewals: tuple[Renewal, ...]
    exchanged: frozenset[str]
    by_op: "Kernels | None" = None

    @classmethod
    def of(cls, compiled: Compiled) -> "Kernels":
        graph = compiled.kernels
        exchanged = frozenset(t.name for t in graph.tensors if compiled.exchanges(t))
        return cls(graph, compiled.sources, compiled.random_ops, compiled.renewals, exchanged)


@dataclass(frozen=True)
class Made:
    """A model compiled on this host, and the machine as its runtime sees it: own devices are those
    of the runtime, others are elsewhere."""

    compiled: Compiled
    machine: Machine


class Models:
    """The model that was read last on a host with these cores, and what was compiled last."""

    def __init__(self, host: str, cores: Sequence[int]) -> None:
        self._host, self._cores = host, tuple(cores)
        self._made: dict[str, Made] = {}
        self._read: dict[str, Model] = {}
        self._probes: dict[str, Probes] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="placement-", ignore_cleanup_errors=True)

    def __getitem__(self, key: str) -> Made:
        return self._made[key]

    def __contains__(self, key: str) -> bool:
        return key in self._made

    def close(self) -> None:
        """Forget all that was compiled."""
        self._made.clear()
        while self._probes:
            self._probes.popitem()[1].close()

    def compile(self, key: str, shipment: Shipment, machine: Machine) -> None:
        """Open a model and let the runtime of its format optimise it for all devices alike.

        What was compiled before is forgotten.
        """
        self.close()
        model = self._model(shipment)
        executable: Any = model.executable
        able = [b for b in backends.running(executable.format) if not b.missing()]
        if not able:
            raise ValueError(
                f"Host {self._host!r} has no runtime for {model.graph.name!r}; install the"
                " requirements of the studio there."
            )
        runtime = able[0]
        devices = self._as_here(machine.devices, runtime)
        inner = replace(machine, devices=devices)
        # From here on what other hosts run is another runtime's.
        mixed = tuple(d if self.has(d.name) else replace(d, runtime=ELSEWHERE) for d in devices)
        seen = replace(inner, devices=mixed)
        self._made[key] = Made(runtime.compile(model, inner).among(seen), seen)

    def kernels(self, key: str) -> Kernels:
        found = self[key].compiled
        by_op = found.by_op()
        if by_op is None or by_op.kernels is found.kernels:
            return Kernels.of(found)
        return replace(Kernels.of(found), by_op=Kernels.of(by_op))

    def probe(self, key: str) -> dict[str, float]:
        """Seconds of a fixed piece of work by device of this host."""
        if key not in self._probes:
            self._probes[key] = Probes(d for d in self[key].machine.devices if self.has(d.name))
        return self._probes[key].probe()

    def has(self, device: str) -> bool:
        """Whether a device is one of this host."""
        return device.rpartition("/")[0] == self._host

    def _as_here(self, devices: Sequence[Device], runtime: Backend) -> tuple[Device, ...]:
        """Devices as the runtime of a format drives them; own lanes of the CPU get their cores."""
        own_lanes = [d for d in devices if d.on_host and self.has(d.name)]
        cores = dict(
            zip((d.name for d in own_lanes), split(self._cores, len(own_lanes) or 1), strict=False)
        )
        here = {d.name: d for d in runtime.devices()}
        return tuple(
            replace(
                device,
                runtime=runtime.name,
                provider=self._provider(device, runtime, here),
                core_ids=cores.get(device.name, ()),
            )
            for device in devices
        )

    def _provider(self, device: Device, runtime: Backend, here: Mapping[str, Device]) -> str:
        """By what a runtime drives a device; a ValueError for one of this host that it has not."""
        if device.on_host:
            return runtime.cpu_provider
        if not self.has(device.name):
            return device.provider
        if device.own_name not in here:
            raise ValueError(
                f"{runtime.name} has no {device.own_name} on host {self._host!r};"
                " choose a machine file without it, or a model of another format."
            )
        return here[device.own_name].provider

    def _model(self, shipment: Shipment) -> Model:
        """The model of a shipment; the last one that was read is kept for other machines."""
        if shipment.key not in self._read:
            self._read.clear()
            folder = Path(tempfile.mkdtemp(dir=self._folder.name))
            self._read[shipment.key] = unpacked(shipment, folder)
        return self._read[shipment.key]


def copy_seconds(src: str, dst: str, sizes: Sequence[int]) -> Sequence[float] | None:
    """Seconds by size of a copy between two devices of this computer, one of which is the CPU.

    None where no runtime tells.
    """
    for runtime in map(backends.get, runtimes()):
        here = {} if runtime.missing() else {d.name: d for d in runtime.devices()}
        if src in here and dst in here:
            return runtime.copy_seconds(here[src], here[dst], sizes)
    return None
