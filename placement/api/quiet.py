"""Measuring alone: one job at a time, and none while others keep the computer busy for a moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from placement.core.decoding import shown
from placement.core.events import Emit, waiting

if TYPE_CHECKING:
    from placement.core.machine import Machine
    from placement.core.model import Model

# Open dimensions whose sizes a failure tells.
MOST_LISTED = 6


@contextmanager
def quiet(what: str, model: Model, machine: Machine, emit: Emit) -> Iterator[None]:
    """Hold the measuring lock for `what` is done with a model; before that others on this computer
    get some time to be done.

    On a virtual clock nobody disturbs, and what is computed here disturbs no hosts of a cluster;
    one that is lost meanwhile would be noticed late. A failure of the runtime also tells the sizes
    that stood for what the model leaves open.
    """
    from profiling import backends
    from profiling.backends.base import RuntimeFailure
    from profiling.measuring.load import await_quiet
    from profiling.measuring.lock import measuring

    with measuring(f"{what} {model.graph.name}", waiting(emit)):
        is_here = len(backends.elsewhere(machine.devices)) < len(machine.devices)
        if is_here and not backends.emulated(machine.devices):
            await_quiet(machine, waiting(emit))
        try:
            yield
        except RuntimeFailure as error:
            # What can be done comes first, for pages cut what is long.
            raise RuntimeError(f"{_sizes_of(model)}{str(error).rstrip('. ')}.") from None


def _sizes_of(model: Model) -> str:
    """That sizes which nobody gave a model's open dimensions may be why its runtime failed, where
    there are such."""
    taken = dict(getattr(model.executable, "dims", ()))
    dims = getattr(model.executable, "symbolic_dims", ())
    named = {dim.name: dim.size for dim in dims if not dim.words}
    sizes = {name: size for name, size in named.items() if taken.get(name, size) == size}
    if not sizes:
        return ""
    some = list(sizes.items())[:MOST_LISTED]
    listed = ", ".join(f"{shown(name)} = {size}" for name, size in some)
    more = ", and more" * (len(sizes) > MOST_LISTED)
    return (
        f"Perhaps sizes that nobody gave do not fit this network ({listed}{more}); set them on the"
        " Model page, or with --dim NAME=N. "
    )
