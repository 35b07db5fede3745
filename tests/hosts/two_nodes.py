"""A Ray cluster of nodes on this computer, one core each, that only this computer can reach."""

import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Any

import psutil

from placement.core.machine import Machine
from profiling import backends

ADDRESS = "127.0.0.1"
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
# Ray takes the address of a network instead of this one, but where it knows of no clusters.
VARIABLES = {"RAY_USAGE_STATS_ENABLED": "0", LOOPBACK: "0"}
STORE_BYTES = 128 * 2**20
# An actor is there sooner, however busy this computer is.
ACTOR_S = 120.0


class Nodes:
    """Nodes of a cluster by name, the head first; they may be killed and replaced.

    They are started with these settings of Ray's.
    """

    def __init__(self, cluster: Any, names: Sequence[str], settings: Mapping[str, Any]) -> None:
        self._cluster, self._names, self._settings = cluster, tuple(names), settings
        self.by_name: dict[str, Any] = {}
        self.replace()

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def replace(self) -> None:
        """Start the nodes that are not there, or are no more."""
        for name in self._names:
            if name in self.by_name:
                if self._process(name).poll() is None:
                    continue
                self._cluster.remove_node(self.by_name[name], allow_graceful=False)
            self.by_name[name] = self._cluster.add_node(
                node_name=name,
                num_cpus=1,
                node_ip_address=ADDRESS,
                # What nobody asks for here would take seconds of a core's time.
                include_dashboard=False,
                include_log_monitor=False,
                no_monitor=True,
                object_store_memory=STORE_BYTES,
                **self._settings,
            )

    @contextmanager
    def one_more(self, name: str) -> Iterator[None]:
        """A node beside these."""
        names = self._names
        self._names = (*names, name)
        self.replace()
        try:
            yield
        finally:
            self._names = names
            self._cluster.remove_node(self.by_name.pop(name), allow_graceful=False)

    def machine(self) -> Machine:
        """The machine of all nodes, those that had ended started anew."""
        self.replace()
        return backends.get("ray").machine("ray")

    def raylet(self, name: str) -> psutil.Process:
        """The process of a node itself."""
        return psutil.Process(self._process(name).pid)

    def processes(self, name: str) -> list[psutil.Process]:
        """The processes that Ray started for a node, on the head those of the cluster, too."""
        started = self.by_name[name].all_processes.values()
        return [psutil.Process(each.process.pid) for several in started for each in several]

    def _process(self, name: str) -> Any:
        return self.by_name[name].all_processes["raylet"][0].process

    def own_worker(self, name: str) -> psutil.Process:
        """The process of the actor that this process has on a node."""
        import ray

        actor = backends.get("ray").cluster().workers[name]
        return psutil.Process(ray.get(actor.__ray_call__.remote(lambda actor: os.getpid())))

    def workers(self, name: str) -> set[psutil.Process]:
        """The processes of the studio's actors on a node."""
        found, node_id = set(), self.by_name[name].node_id
        for actor in self._cluster.global_state.actor_table(None).values():
            if actor["State"] == "ALIVE" and actor["Address"]["NodeID"] == node_id:
                # Of one that has just ended Ray may not know yet.
                with suppress(psutil.NoSuchProcess):
                    found.add(psutil.Process(actor["Pid"]))
        return found

    def worker_since(self, name: str, before: Set[psutil.Process]) -> psutil.Process:
        """The process of the studio's one actor on a node that was none of these before."""
        end_s = time.monotonic() + ACTOR_S
        while not (found := self.workers(name) - before):
            assert time.monotonic() < end_s, f"{name} has no actor of the studio"
        (one,) = found
        return one


def kill(process: psutil.Process) -> None:
    """End a process at once, as a computer that loses its power ends it."""
    os.kill(process.pid, signal.SIGKILL)


@contextmanager
def nodes(
    names: Sequence[str] = ("alpha", "beta"), settings: Mapping[str, Any] = MappingProxyType({})
) -> Iterator[Nodes]:
    """Nodes by these names, the head first, with settings of Ray's; they end with the context."""
    os.environ.update(VARIABLES)
    from ray.cluster_utils import Cluster

    cluster, before = Cluster(), os.environ.get("RAY_ADDRESS")
    try:
        started = Nodes(cluster, names, settings)
        os.environ["RAY_ADDRESS"] = started.address
        yield started
    finally:
        if before is None:
            os.environ.pop("RAY_ADDRESS", None)
        else:
            os.environ["RAY_ADDRESS"] = before
        cluster.shutdown()


if __name__ == "__main__":
    with nodes() as started:
        print(f"export RAY_ADDRESS={started.address} {LOOPBACK}=0", flush=True)
        input("Return ends the cluster. ")
