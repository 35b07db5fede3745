"""A running Ray cluster and an actor on each of its hosts: who is asked, and who is gone."""

import itertools
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from placement.core.decoding import shown
from placement.core.machine import Machine
from placement.core.verb_options import MOST_IN_FLIGHT
from profiling.backends._ray.alive import Address, NoAnswer, answers, watch
from profiling.backends._ray.clocks import HostClock, Offset
from profiling.backends._ray.connection import join_cluster, needed
from profiling.backends._ray.hosts import (
    ROOT,
    Facts,
    Host,
    address_of,
    boot_id,
    hosts_of,
    is_head,
    require_same_versions,
    require_version,
)
from profiling.backends._ray.machine import machine_of
from profiling.backends._ray.outside import (
    door_of,
    is_break,
    is_connected,
    is_outside,
    leave_outside,
    lets_in,
)
from profiling.backends._ray.worker import Worker
from profiling.backends.base import ClusterEnded, Counted, DevicesLost

# How often the nodes of those that are waited for are looked after, and how long that may take.
LOOK_S, SILENCE_S = 1.0, 6.0
# How long who is needed may be silent where it is looked after all the time.
ANSWER_S = 2.0
# How often it is looked whether an actor has ended, which Ray tells of each by itself.
GLANCE_S = 0.1
START_S = 60.0
# Calls that an actor answers side by side: as many as there may be samples, and some.
AT_ONCE = MOST_IN_FLIGHT + 32
# After so long a host that could not be reached is tried again.
REFUSED_S = 60.0
# Hosts, from and to.
Pair = tuple[str, str]


class Cluster:
    """The hosts of a cluster that this process is connected to, by name, the head first.

    Hosts that are left of a cluster that was there `before` go on with their actors and names.
    `ended` is called, from a thread, when the head or the node that this process is connected to
    is no more.
    """

    def __init__(
        self,
        address: str,
        before: "Cluster | None" = None,
        ended: Callable[[], object] | None = None,
    ) -> None:
        self.address, self.lost, self._looked_s = address, set[str](), 0.0
        # What of a host somebody uses, by name: said where the host is lost.
        self.devices: dict[str, tuple[str, ...]] = {}
        # Which pairs have channels, when others were refused, and where hosts are reached.
        self._joined: set[Pair] = set() if before is None else set(before._joined)
        self._refused: dict[Pair, float] = {} if before is None else dict(before._refused)
        self._entries: dict[str, Any] = {} if before is None else dict(before._entries)
        self._watched: threading.Event = threading.Event() if before is None else before._watched
        self._tell_end: Callable[[], object] | None = ended
        if ended is None and before is not None:
            self._tell_end = before._tell_end
        has_joined = not is_connected()
        if has_joined:
            join_cluster(address)
        # From outside of a cluster its nodes need not be reached: which were tried, and by which
        # addresses of computers one was.
        self._tried: set[Address] = set() if before is None else before._tried
        self._reached: set[str] = set() if before is None else before._reached
        self._needed: tuple[Address, ...] = (
            (door_of(address),) if self.is_from_outside else needed()
        )
        if has_joined:
            self._watch()
        self.hosts: dict[str, Host] = {} if before is None else before.hosts
        self.hosts = {host.name: host for host in self._listed()}
        if not self.hosts:
            raise ValueError("The Ray cluster has no host with a CPU; start one with `ray start`.")
        if self.is_from_outside:
            self._need_head()
        self.workers = _Workers(self.hosts)
        self._facts: dict[str, Facts] = {}
        self._clocks: dict[str, HostClock] = {}
        if before is not None:
            gone = {n for n, host in before.hosts.items() if self.hosts.get(n) is not host}
            # Actors belong to a connection.
            ended_since = set(before.hosts) if has_joined else before._ended()
            lost = before.lost | gone | ended_since
            self.workers |= {n: actor for n, actor in before.workers.items() if n not in lost}
            self._facts |= {n: facts for n, facts in before._facts.items() if n not in lost}
            self._part(lost)
            for name, other in itertools.product(tuple(self.workers), sorted(lost)):
                # Nobody waits for this: one that has ended, too, is missed soon enough.
                self.begin(name, "forget", other)

    @property
    def is_from_outside(self) -> bool:
        """Whether this process is connected by a process of the head (Ray's client)."""
        return is_outside(self.address)

    def _need_head(self) -> None:
        """Whoever lets this process in may go on answering for a while when the head's node, and
        what is connected to it, are no more."""
        # It need not be one of the hosts: many a head computes nothing.
        heads = (address_of(node) for node in self._alive() if is_head(node))
        self._needed += tuple(head for head in heads if head[0] in self._reached)

    def _watch(self) -> None:
        """Look after who is needed, for whoever wants to be told of their end."""
        if self._tell_end is not None:
            self._watched.set()
            self._watched = watch(partial(self._has_head, ANSWER_S), self._tell_end)

    @property
    def is_whole(self) -> bool:
        """Whether no host was lost since this was made."""
        return not self.lost

    @property
    def is_current(self) -> bool:
        """Whether no host has come or gone, and no actor has ended, since this was made."""
        known = {host.node_id for host in self.hosts.values()}
        listed = {host.node_id for host in self._listed()}
        return self.is_whole and known == listed and not self._ended()

    def _ended(self) -> set[str]:
        """The hosts whose actors are known to have ended."""
        with self._connected():
            asked = {self.begin(name, "clock"): name for name in tuple(self.workers)}
            if not asked:
                return set()
            ready, _ = ray.wait(list(asked), num_returns=len(asked), timeout=LOOK_S)
            return {asked[ref] for ref in ready if self._is_end(ref)}

    def _is_end(self, ref: Any) -> bool:
        """Whether an actor has ended before it answered."""
        try:
            ray.get(ref)
        except RayTaskError:
            return False
        except RayError:
            return True
        return False

    def anew(self) -> "Cluster":
        """The cluster as it is now."""
        return Cluster(self.address, self)

    @property
    def has_head(self) -> bool:
        """Whether the head answers, and the node that this process is connected to."""
        return self._has_head(SILENCE_S)

    def _has_head(self, limit_s: float) -> bool:
        is_let_in = not self.is_from_outside or lets_in(limit_s)
        return is_let_in and all(answers(address, limit_s) for address in self._needed)

    def dismiss(self) -> None:
        """Let the actors end; what hosts have said of themselves is known still."""
        for name, other in itertools.permutations(tuple(self.workers), 2):
            # One that another knows would not end.
            with suppress(Exception):
                self.workers[name].forget.remote(other)
        self._part(set(self.hosts))
        self.workers.clear()

    def leave(self) -> None:
        """Be connected no more, so that the cluster may end without this process.

        Whoever asks next connects anew, to hosts of the same names.
        """
        self._watched.set()
        self.lost |= set(self.hosts)
        self.dismiss()
        if self.is_from_outside:
            leave_outside()
        else:
            ray.shutdown()

    def _listed(self) -> list[Host]:
        """The hosts that can be computed on now."""
        # One that has ended and was started again is listed twice for a while, by one name.
        there = (node for node in self._alive() if self._is_there(address_of(node)))
        return [host for host in hosts_of(there, self.hosts.values()) if host.num_cores]

    def _alive(self) -> list[Mapping[str, Any]]:
        """The nodes that Ray takes to be alive; from outside it is tried which can be reached."""
        with self._connected():
            nodes = [node for node in ray.nodes() if node["Alive"]]
        if self.is_from_outside:
            new = sorted({address_of(node) for node in nodes} - self._tried)
            with ThreadPoolExecutor(AT_ONCE) as pool:
                heard = pool.map(partial(answers, limit_s=LOOK_S), new)
                self._reached |= {
                    a for (a, _), answered in zip(new, heard, strict=True) if answered
                }
            self._tried |= set(new)
        return nodes

    @property
    def facts(self) -> Mapping[str, Facts]:
        """What the hosts say of themselves; a RuntimeError names one that has no studio."""
        asked = [name for name in self.hosts if name not in self._facts]
        self._facts |= self.all("facts", asked, timeout_s=START_S)
        return {name: self._facts[name] for name in self.hosts}

    def offset(self, host: str) -> Offset:
        """The clock of a host as of now."""
        if self.has_this_clock(host):
            return Offset()
        if host not in self._clocks:
            self._clocks[host] = HostClock(partial(self.ask, host, "clock", timeout_s=START_S))
        return self._clocks[host].offset()

    def known_offset(self, host: str) -> Offset:
        """The same by what is known of its clock: nobody is asked."""
        return self._clocks[host].known() if host in self._clocks else Offset()

    def has_this_clock(self, host: str) -> bool:
        """Whether a host is on this computer, and has the clock of this process."""
        if host not in self._facts:
            self._facts[host] = self.ask(host, "facts", timeout_s=START_S)
        return bool(self._facts[host].boot) and self._facts[host].boot == boot_id()

    def counters(self, hosts: Iterable[str]) -> Counted | None:
        """By host the busy seconds of its cores, and those of this work; None where a host is left
        no more, or cannot tell.
        """
        names = sorted(hosts)
        if not set(names) <= self.hosts.keys():
            return None
        told = self.all("counters", names, timeout_s=START_S)
        if None in told.values():
            return None
        here_s = time.process_time()
        return tuple(
            (busy_s, own_s + share * here_s * self.has_this_clock(name))
            for name, (busy_s, own_s, share) in told.items()
        )

    def machine(self, name: str, lanes: int = 1) -> Machine:
        """The CPUs of all hosts, each as so many lanes where it has as many cores, then their
        accelerators; ValueError where hosts, or this computer, have different versions.
        """
        self.require_versions()
        return machine_of(name, self.facts, lanes)

    def require_versions(self) -> None:
        """ValueError where hosts, or this computer beside them, have different versions."""
        require_same_versions(self.facts)
        if self.is_from_outside:
            require_version(self.facts)

    def rows(self) -> list[tuple[Host, Facts]]:
        """Every host with what it says of itself."""
        return [(host, self.facts[name]) for name, host in self.hosts.items()]

    def join(self, pairs: Iterable[Pair]) -> None:
        """Have channels between pairs of hosts, from and to; those that are there stay.

        A pair of which one cannot be reached by the other sends by calls, for a while at least.
        """
        for pair in pairs:
            source, target = pair
            if time.monotonic() < self._refused.get(pair, -math.inf) + REFUSED_S:
                continue
            if self._entries.get(target) is None:
                self._entries[target] = self.ask(target, "entry", timeout_s=START_S)
            actor, entry = self.workers[target], self._entries[target]
            if self.ask(source, "connect", target, actor, entry, timeout_s=START_S):
                self._joined.add(pair)
            else:
                self._joined.discard(pair)
                self._refused[pair] = time.monotonic()

    def has_channel(self, source: str, target: str) -> bool:
        """Whether what one host sends to another goes by a channel, by when it was joined last."""
        return (source, target) in self._joined

    def _part(self, hosts: Set[str]) -> None:
        """Those hosts, or their actors, are no more."""
        self._joined = {pair for pair in self._joined if hosts.isdisjoint(pair)}
        self._refused = {p: at_s for p, at_s in self._refused.items() if hosts.isdisjoint(p)}
        self._entries = {h: entry for h, entry in self._entries.items() if h not in hosts}

    def ask(self, host: str, what: str, *values: Any, timeout_s: float | None = None) -> Any:
        """What a host answers, its errors and its end as ours."""
        return self.settled({host: self.begin(host, what, *values)}, timeout_s)[host]

    def all(
        self, what: str, hosts: Sequence[str] | Mapping[str, Any], *values: Any, timeout_s: float
    ) -> dict[str, Any]:
        """What some hosts answer to the same question."""
        return self.settled({h: self.begin(h, what, *values) for h in hosts}, timeout_s)

    def begin(self, host: str, what: str, *values: Any) -> Any:
        """Ask a host and do not wait."""
        with self._connected():
            return getattr(self.workers[host], what).remote(*values)

    def share(self, value: Any) -> Any:
        """Have something in the cluster that several hosts are to be told."""
        with self._connected():
            return ray.put(value)

    def settled(
        self, asked: Mapping[str, Any], timeout_s: float | None = None, *, alone: bool = False
    ) -> dict[str, Any]:
        """The answers by host; the first error, or the end of a host, is raised at once.

        That of any host that is used, for those that are asked may wait for it, or was lost
        before, but where they are asked `alone`. TimeoutError where hosts that are alive take
        longer than `timeout_s`.
        """
        until_s = None if timeout_s is None else time.monotonic() + timeout_s
        waiting, found = dict(asked), dict[str, Any]()
        if not alone and time.monotonic() > self._looked_s + LOOK_S:
            # Where a node has ended its actor may go on answering for ten seconds and more.
            self._looked_s = time.monotonic()
            self._require_alive(self.devices)
        looked_s = time.monotonic()
        while waiting:
            refs = list(waiting.values())
            # One that has ended would be told of at once, but not while others are waited for.
            with self._connected():
                ready, _ = ray.wait(refs, num_returns=len(refs), timeout=GLANCE_S)
            for host in [h for h, ref in waiting.items() if ref in ready]:
                found[host] = self._answer(host, waiting.pop(host))
            if waiting:
                if self.lost and not alone:
                    # Another thread has missed it; whoever is asked may wait for it.
                    raise self._lost(min(self.lost))
                if time.monotonic() > looked_s + LOOK_S:
                    looked_s = time.monotonic()
                    self._require_alive(dict.fromkeys((*waiting, *(() if alone else self.devices))))
                if until_s is not None and time.monotonic() > until_s:
                    raise NoAnswer(f"Hosts {', '.join(waiting)} gave no answer in time.")
        return {host: found[host] for host in asked}

    def _require_alive(self, hosts: Iterable[str]) -> None:
        """Raise for a node that is gone; of an actor that has ended Ray tells in its answers.

        One that computes may be silent for any time.
        """
        for host in hosts:
            if not self.is_there(host):
                raise self._lost(host)

    def is_there(self, host: str) -> bool:
        """Whether a host's node answers, or is taken to be alive where it cannot be reached."""
        known = self.hosts[host]
        if self._is_reached(known.address):
            return answers((known.address, known.port), SILENCE_S)
        return known.node_id in {node["NodeID"] for node in self._alive()}

    def _is_there(self, node: Address) -> bool:
        """Whether the own process of a node answers that is taken to be alive."""
        return not self._is_reached(node[0]) or answers(node, SILENCE_S)

    def _is_reached(self, address: str) -> bool:
        """Whether nodes of a computer answer here as long as they are there."""
        return not self.is_from_outside or address in self._reached

    def _answer(self, host: str, ref: Any) -> Any:
        try:
            with self._connected():
                return ray.get(ref)
        except RayTaskError as error:
            cause = error.cause
            if isinstance(cause, RayActorError):
                # Not the host that was asked, but one that it sends to.
                raise self._lost(self._host_by_actor(str(cause), host)) from None
            if isinstance(cause, (ValueError, TimeoutError, MemoryError, AssertionError)):
                raise cause from None
            text = " ".join(str(cause).split())[:300]
            raise RuntimeError(f"Host {shown(host)} failed: {text}") from None
        except RayActorError as error:
            if "ModuleNotFoundError" in str(error) or "ImportError" in str(error):
                raise RuntimeError(
                    f"Host {shown(host)} cannot load the studio from {ROOT}; install it there, in"
                    " the same folder and of the same version."
                ) from None
            raise self._lost(host) from None
        except RayError:
            raise self._lost(host) from None

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Raise ClusterEnded where this process, outside of the cluster, has lost it."""
        try:
            yield
        except Exception as error:
            if not self.is_from_outside or not is_break(error):
                raise
            self.lost |= set(self.hosts)
            if self._tell_end is not None:
                self._tell_end()
            raise ClusterEnded from None

    def _host_by_actor(self, text: str, otherwise: str) -> str:
        """The host whose actor an error speaks of."""
        found = (h for h, actor in self.workers.items() if actor._actor_id.hex() in text)
        return next(found, otherwise)

    def _lost(self, host: str) -> RuntimeError:
        """What is raised where a host has left; whoever comes next asks the cluster anew.

        With the head all hosts have, which whoever wants to know is told at once.
        """
        self.lost.add(host)
        if not self.has_head:
            if self._tell_end is not None:
                self._tell_end()
            return ClusterEnded()
        return DevicesLost(
            f"Host {shown(host)} left the cluster in the middle of this, and nothing that was saved"
            " is lost; run again on the hosts that are left (with --resume at once), start the host"
            " again, or use --machine local.",
            self.devices.get(host, ()),
        )


class _Workers(dict[str, Any]):
    """The actors by host, each started when it is first asked for."""

    def __init__(self, hosts: Mapping[str, Host]) -> None:
        super().__init__()
        self._hosts, self._actor = hosts, ray.remote(Worker)

    def __missing__(self, name: str) -> Any:
        host = self._hosts[name]
        self[name] = self._actor.options(
            num_cpus=0,
            max_concurrency=AT_ONCE,
            scheduling_strategy=NodeAffinitySchedulingStrategy(host.node_id, soft=False),
        ).remote(host)
        return self[name]
