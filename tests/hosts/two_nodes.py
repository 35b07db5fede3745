"""A Ray cluster of nodes on this computer, one core each, that only this computer can reach."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

ADDRESS = "127.0.0.1"
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
STORE_BYTES = 128 * 2**20


@dataclass(frozen=True)
class Nodes:
    """The address of a cluster, and Ray's nodes by name."""

    address: str
    by_name: Mapping[str, Any]


@contextmanager
def nodes(names: Sequence[str] = ("alpha", "beta")) -> Iterator[Nodes]:
    """Nodes by these names, the head first; they end with the context."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Ray takes the address of a network instead of this one, but where it knows of no clusters.
    os.environ[LOOPBACK] = "0"
    from ray.cluster_utils import Cluster

    cluster, before = Cluster(), os.environ.get("RAY_ADDRESS")
    try:
        added = {
            name: cluster.add_node(
                node_name=name,
                num_cpus=1,
                node_ip_address=ADDRESS,
                include_dashboard=False,
                object_store_memory=STORE_BYTES,
            )
            for name in names
        }
        os.environ["RAY_ADDRESS"] = cluster.address
        yield Nodes(cluster.address, added)
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
