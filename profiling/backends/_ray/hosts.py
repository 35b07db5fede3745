"""The hosts of a cluster: what Ray's nodes are called, and what of a computer belongs to each.

A host is named as it was started (`ray start --node-name`), or else as its computer. Several nodes
on one computer are several hosts, which share its cores out in the order of their names.
"""

import hashlib
import itertools
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placement.core.decoding import shown
from placement.core.machine import Device

ROOT = Path(__file__).resolve().parents[3]
# What the studio's own code is called among the versions of a host.
STUDIO = "studio"
_HEAD = "node:__internal_head__"


@dataclass(frozen=True)
class Host:
    """A node of the cluster: `first_core` and `num_cores` are its share of the computer's cores.

    The node's own process listens at `port`.
    """

    name: str
    node_id: str
    address: str
    first_core: int
    num_cores: int
    port: int = 0


@dataclass(frozen=True)
class Accelerator:
    """A device besides the CPU as a host calls it, and which one of its computer's it is."""

    device: Device
    slot: str


@dataclass(frozen=True)
class Facts:
    """What a host says of itself: versions decide kernels and times, the rest is of its CPU.

    Hosts on one computer have the same `boot`, and so one clock; the memory is the computer's.
    """

    versions: tuple[tuple[str, str], ...]
    memory_bytes: int
    num_cores: int
    label: str
    boot: str = ""
    accelerators: tuple[Accelerator, ...] = ()


def hosts_of(nodes: Iterable[Mapping[str, Any]], known: Iterable[Host] = ()) -> tuple[Host, ...]:
    """Hosts of what Ray lists as nodes, the head first, without those that have ended.

    Hosts that are known already stay what they are; names and cores that these have are not given
    to others.

    >>> node = {"Alive": True, "NodeID": "1", "NodeName": "10.0.0.1", "NodeManagerHostname": "a"}
    >>> node |= {"NodeManagerAddress": "10.0.0.1", "Resources": {"CPU": 2.0}}
    >>> [host.name for host in hosts_of([node, {**node, "NodeID": "2"}])]
    ['a', 'a-2']
    """
    alive = [node for node in nodes if node["Alive"]]
    alive.sort(key=lambda n: (not is_head(n), _called(n), n["NodeID"]))
    before = {host.node_id: host for host in known}
    names, shares = set[str](), dict[str, list[Host]]()
    for node in alive:
        if node["NodeID"] in before:
            host = before[node["NodeID"]]
            names.add(host.name)
            shares.setdefault(node["NodeManagerHostname"], []).append(host)
    hosts = []
    for node in alive:
        node_id = node["NodeID"]
        if node_id in before:
            hosts.append(before[node_id])
            continue
        beside = shares.setdefault(node["NodeManagerHostname"], [])
        name = _free_name(_called(node), names)
        num_cores = int(node["Resources"].get("CPU", 0))
        address, port = address_of(node)
        host = Host(name, node_id, address, _free_core(num_cores, beside), num_cores, port)
        names.add(name)
        beside.append(host)
        hosts.append(host)
    return tuple(hosts)


def is_head(node: Mapping[str, Any]) -> bool:
    return _HEAD in node["Resources"]


def address_of(node: Mapping[str, Any]) -> tuple[str, int]:
    """Where the own process of a node listens."""
    return node["NodeManagerAddress"], int(node.get("NodeManagerPort", 0))


def _free_name(called: str, names: Collection[str]) -> str:
    """What a host is called where others have these names."""
    numbered = (f"{called}-{number}" for number in itertools.count(2))
    return next(name for name in itertools.chain([called], numbered) if name not in names)


def _free_core(num_cores: int, beside: Iterable[Host]) -> int:
    """The first of so many cores in a row that no host beside on the computer has."""
    first = 0
    for host in sorted(beside, key=lambda host: (host.first_core, host.num_cores)):
        if first + num_cores <= host.first_core:
            break
        first = max(first, host.first_core + host.num_cores)
    return first


def _called(node: Mapping[str, Any]) -> str:
    given = str(node.get("NodeName") or "")
    name = given if given != node["NodeManagerAddress"] else str(node["NodeManagerHostname"])
    return name.replace("/", "-") or "host"


def require_same_versions(facts: Mapping[str, Facts]) -> None:
    """ValueError where a library has not one version on all hosts (by name)."""
    names = dict.fromkeys(name for told in facts.values() for name, _ in told.versions)
    for library in names:
        found = {host: dict(told.versions).get(library, "none") for host, told in facts.items()}
        if len(set(found.values())) > 1:
            first = next(iter(found))
            other = next(host for host, version in found.items() if version != found[first])
            raise ValueError(
                f"Host {shown(other)} has {library} {found[other]} and host {shown(first)} has"
                f" {found[first]}; install the same version on all hosts."
            )


def require_version(facts: Mapping[str, Facts]) -> None:
    """ValueError where hosts have another state of the studio's code than this computer, which asks
    them from outside of their cluster."""
    here = studio_version()
    for host, told in facts.items():
        if dict(told.versions).get(STUDIO, here) != here:
            raise ValueError(
                f"Host {shown(host)} has another version of the studio than this computer; install"
                " the same on both."
            )


def share(cores: Sequence[int], first: int, number: int) -> tuple[int, ...]:
    """The cores of a host among those of its computer; all where there are fewer than promised.

    >>> share((0, 1, 2, 3), 2, 2)
    (2, 3)
    """
    own = tuple(cores[first : first + number])
    return own if len(own) == number else tuple(cores)


def slot_of(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """Which of a computer's accelerators a process calls by this name, where it may see some only.

    >>> slot_of("cuda:1", {"CUDA_VISIBLE_DEVICES": "3,5"}), slot_of("cuda:1", {})
    ('cuda:5', 'cuda:1')
    """
    kind, _, number = name.partition(":")
    visible = environment.get(f"{kind.upper()}_VISIBLE_DEVICES", "").split(",")
    is_named = number.isdecimal() and int(number) < len(visible) and any(visible)
    return f"{kind}:{visible[int(number)].strip()}" if is_named else name


def accelerators_of(facts: Mapping[str, Facts]) -> list[tuple[str, Device]]:
    """The accelerators of hosts (by name), each with its host.

    Of several hosts on one computer that see the same one the first has it.
    """
    owner = dict[tuple[str, str], str]()
    return [
        (host, accelerator.device)
        for host, told in facts.items()
        for accelerator in told.accelerators
        if owner.setdefault((told.boot or host, accelerator.slot), host) == host
    ]


def studio_version(root: Path = ROOT) -> str:
    """What tells one state of the studio's own code from others, a release or not."""
    digest = hashlib.sha256()
    for folder in ("placement", "profiling"):
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return digest.hexdigest()[:8]


def boot_id() -> str:
    """What tells one start of a computer from all others; empty where the system does not say."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""
