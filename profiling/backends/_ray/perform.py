"""What a search has another host do: a call by its name, in a process that Ray keeps there.

It is an ordinary function, which Ray loads by its name from the installation of the host. What
comes and goes are bytes.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import ray

from placement.parallel.calls import performed


def perform(
    name: str, shared: Mapping[str, Any], args: Sequence[bytes], seconds: float, num_lanes: int
) -> bytes:
    """The answer to a call; `shared` are references to what several calls share, by their key."""
    read: dict[str, Callable[[], bytes]] = {
        key: partial(_fetched, reference) for key, reference in shared.items()
    }
    return performed(name, read, args, seconds, num_lanes)


def _fetched(reference: Any) -> bytes:
    found: bytes = ray.get(reference)
    return found
