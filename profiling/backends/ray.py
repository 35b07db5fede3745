"""Ray: the devices of all hosts of a cluster, each driven by the runtime of the model's format.

No runtime of its own: on every host an actor runs its share of a schedule as a local run would,
and Ray carries values between hosts (Moritz et al., OSDI 2018).
"""

import atexit
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

from placement.core.machine import Device, Machine
from placement.core.model import Model
from placement.parallel.executor import Executor
from profiling.backends.base import Backend, Compiled, Counted

if TYPE_CHECKING:
    from profiling.backends._ray.cluster import Cluster
    from profiling.backends._ray.farm import Farm

MOST_LANES = 64
# A task takes some milliseconds beside its work; visits of kernels and tensors worth one.
WORTH_VISITS = 500_000


class Ray(Backend):
    """See `profiling.backends.base.Backend`; a process is connected to one cluster."""

    name: ClassVar[str] = "ray"
    elsewhere: ClassVar[bool] = True

    def __init__(self) -> None:
        self._cluster: Cluster | None = None
        self._kept: dict[tuple[str, str, str], Compiled] = {}
        self._ended: Callable[[], object] | None = None
        self._farm: Farm | None = None

    @contextmanager
    def ending(self, ended: Callable[[], object]) -> Iterator[None]:
        """Have whoever connects now call `ended` when the head is no more, from a thread.

        Ray itself waits for it for up to a minute, and nothing else goes on meanwhile.
        """
        self._ended = ended
        try:
            yield
        finally:
            self._ended = None

    def missing(self) -> str:
        return "" if find_spec("ray") else "needs: pip install -r requirements-hosts.txt"

    def cluster(self, address: str = "") -> "Cluster":
        """The cluster at an address, by default the one that this process is outside of and has
        been connected to, that of `RAY_ADDRESS`, or the one that runs here."""
        address = address or self._outside() or os.environ.get("RAY_ADDRESS", "auto")
        if address.startswith("127."):
            # Ray would take the address of a network instead, but where it knows of no clusters;
            # it looks at this when it is imported.
            os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        from profiling.backends._ray.cluster import Cluster

        known = self._cluster
        if address.startswith("ray://") and known is not None and known.address != address:
            if known.is_whole:
                raise ValueError(
                    f"This process is connected to the Ray cluster at {known.address}; ask for"
                    f" {address} in another one."
                )
            known.leave()
            self._cluster = None
        if self._cluster is None or not self._cluster.is_whole:
            self._kept.clear()
            self._cluster = Cluster(address, self._cluster, self._ended)
        return self._cluster

    def _outside(self) -> str:
        """The address of the cluster that this process was outside of; empty where it was not."""
        known = self._cluster
        return known.address if known is not None and known.is_from_outside else ""

    def executor(
        self,
        address: str,
        lost: Callable[[str], object],
        *,
        asked: bool = True,
        worth_visits: float = WORTH_VISITS,
    ) -> Executor | None:
        """A batch of placements goes there where each share of it takes so many visits of kernels
        and tensors."""
        from profiling.backends._ray.executor import Hosts

        if not asked and self._cluster is None:
            # Nobody was connected, so the machine is only a description.
            return None
        try:
            return Hosts(self.farm(address), lost, worth_visits)
        except ValueError as error:
            if asked:
                raise
            lost(f"This search went on on this computer: {error}")
            return None

    def farm(self, address: str = "") -> "Farm":
        """The cluster as one that searches are carried out by, ready for them; its process goes on
        until the next one is asked for elsewhere, or it ends with this one.

        A process that was connected itself is so no more: Ray would end it with the cluster.
        """
        from profiling.backends._ray.farm import Farm

        address = address or self._outside()
        if self._cluster is not None and self._cluster.is_whole:
            self._kept.clear()
            self._cluster.leave()
        if self._farm is None or not self._farm.is_whole or self._farm.address != address:
            self.close_farm()
            self._farm = Farm(address)
            atexit.register(self._farm.close)
        return self._farm

    def close_farm(self) -> None:
        """End the process that searches have the cluster by, where there is one."""
        if self._farm is not None:
            atexit.unregister(self._farm.close)
            self._farm.close()
            self._farm = None

    def machine(self, spec: str) -> Machine:
        """`ray` is the cluster that runs here, or that this process has reached from outside,
        `ray:2` the same with two lanes for the CPU of each host, `ray://HOST:PORT` another one.
        """
        word = spec.removeprefix(self.name).removeprefix(":")
        address, word = (spec, "") if word.startswith("//") else ("", word)
        if word and not (word.isdecimal() and 1 <= int(word) <= MOST_LANES):
            raise ValueError(
                f"Machine {spec!r} is no cluster; use ray, ray:2 for two lanes per host, or"
                " ray://HOST:PORT."
            )
        if not self.cluster(address).is_current:
            # Who asks by name means the hosts of now.
            self._kept.clear()
            self._cluster = self.cluster(address).anew()
        return self.cluster(address).machine(spec, int(word or 1))

    def hosts(self, spec: str) -> Sequence[Mapping[str, Any]]:
        machine = self.machine(spec)
        return [
            {
                "name": host.name,
                "address": host.address,
                "cores": facts.num_cores,
                "label": facts.label,
                "versions": dict(facts.versions),
                "card": next(
                    (k.card for k in machine.links if k.card and k.src.startswith(f"{host.name}/")),
                    "",
                ),
                "devices": [d.name for d in machine.devices if d.name.startswith(f"{host.name}/")],
            }
            for host, facts in self.cluster().rows()
        ]

    def devices(self) -> tuple[Device, ...]:
        return self.cluster().machine(self.name).devices

    def libraries(self) -> tuple[tuple[str, str], ...]:
        return self.cluster().machine(self.name).libraries

    def why_missing(self, device: Device, here: Mapping[str, Device]) -> str:
        host, hosts = device.name.rpartition("/")[0], {n.rpartition("/")[0] for n in here}
        return "" if host in hosts else f"the cluster has no host {host!r}"

    def link_costs(
        self, devices: Sequence[Device]
    ) -> Mapping[tuple[str, str], tuple[float, float]]:
        from profiling.backends._ray.links import link_costs

        return link_costs(self.cluster(), devices)

    def link_cards(self, devices: Sequence[Device]) -> Mapping[tuple[str, str], str]:
        from profiling.backends._ray.links import link_cards

        return link_cards(self.cluster(), devices)

    def counters(self, devices: Collection[str]) -> Counted | None:
        """What a host's actor and Ray's node there compute is of this work."""
        with suppress(RuntimeError, TimeoutError):
            if self._cluster is not None and self._cluster.is_whole:
                return self._cluster.counters({name.rpartition("/")[0] for name in devices})
        return None

    def compile(self, model: Model, machine: Machine) -> Compiled:
        from profiling.backends._ray.compile import RayCompiled

        executable = model.executable
        if executable is None:
            raise ValueError(model.not_executable)
        key = (executable.content_hash, model.graph.fingerprint, machine.fingerprint)
        if key not in self._kept:
            self._kept.clear()
            self._kept[key] = RayCompiled(self.cluster(), model, machine)
        return self._kept[key]


BACKEND = Ray()
