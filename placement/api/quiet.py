"""Measuring alone: one job at a time, and none while others keep the computer busy for a moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from placement.core.events import Emit, waiting

if TYPE_CHECKING:
    from placement.core.machine import Machine


@contextmanager
def quiet(what: str, machine: Machine, emit: Emit) -> Iterator[None]:
    """Hold the measuring lock; before that others on this computer get some time to be done.

    On a virtual clock nobody disturbs, and what is computed here disturbs no hosts of a cluster;
    one that is lost meanwhile would be noticed late.
    """
    from profiling import backends
    from profiling.measuring.load import await_quiet
    from profiling.measuring.lock import measuring

    with measuring(what, waiting(emit)):
        is_here = len(backends.elsewhere(machine.devices)) < len(machine.devices)
        if is_here and not backends.emulated(machine.devices):
            await_quiet(machine, waiting(emit))
        yield
