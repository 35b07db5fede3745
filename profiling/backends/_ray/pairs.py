"""Which hosts have channels between them, and who uses any: those are closed that nobody uses."""

from collections.abc import Set
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

# So often channels are closed; later ones stay.
MOST_CLOSED = 100
Pair = tuple[str, str]


@dataclass
class Pairs:
    """Pairs of hosts, from and to, of a cluster and of those that it was before hosts were lost.

    `rooms` are the bytes of a message for which each was tried last, `joined` the actors of those
    that have channels, and `closing` what hosts were told to close and may not have yet.
    """

    rooms: dict[Pair, int] = field(default_factory=dict)
    joined: dict[Pair, tuple[Any, Any]] = field(default_factory=dict)
    closing: list[tuple[str, Any]] = field(default_factory=list)
    num_users: int = 0
    num_closed: int = 0

    def leave(self, hosts: Set[str]) -> None:
        """Those hosts, or their actors, are no more; without channels others are tried anew."""
        self.joined = {pair: ends for pair, ends in self.joined.items() if hosts.isdisjoint(pair)}
        self.rooms = {pair: size for pair, size in self.rooms.items() if pair in self.joined}
        self.closing = [(host, ref) for host, ref in self.closing if host not in hosts]

    def close(self) -> None:
        """Have hosts close all channels, for Ray takes a core's time as long as one is there.

        Of each a thread stays, asleep. Nobody waits for them yet: one that has left is missed by
        whoever asks next, who has words for that.
        """
        if not self.joined or self.num_closed >= MOST_CLOSED:
            return
        self.num_closed += 1
        actors = dict[Pair, Any]()
        for (source, target), (writer, reader) in self.joined.items():
            actors |= {(source, target): writer, (target, source): reader}
        self.rooms.clear()
        self.joined.clear()
        # Whoever closes has more to close.
        with suppress(Exception):
            for (host, other), actor in actors.items():
                self.closing.append((host, actor.forget.remote(other)))
