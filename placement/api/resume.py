"""A run that goes on where devices are lost in the middle, on those that are left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from placement.api.place import place
from placement.api.run import LiveRun, run
from placement.core.events import Emit, silent
from placement.core.verb_options import LOCAL, PlaceOptions, RunOptions
from placement.costs.remaining import without_devices

if TYPE_CHECKING:
    from placement.core.model import Model
    from placement.core.placement import Placement
    from placement.core.problem import Problem


def run_to_the_end(
    model: Model,
    problem: Problem,
    placement: Placement,
    options: RunOptions,
    *,
    inputs: Mapping[str, Any] | None = None,
    emit: Emit = silent,
    placer: str = PlaceOptions.placer,
) -> tuple[Problem, Placement, LiveRun]:
    """`run`, begun again where devices are lost in the middle: placed anew on those that are left.

    Returns what was run in the end. `emit` hears {"event": "lost", "message", "devices"}.
    """
    from profiling.backends.base import DevicesLost

    while True:
        try:
            live = run(model, problem, placement, options, inputs=inputs, emit=emit)
            return problem, placement, live
        except DevicesLost as lost:
            emit({"event": "lost", "message": str(lost), "devices": list(lost.devices)})
            problem = without_devices(problem, lost.devices)
            # At once: a cluster that has just lost hosts is not asked to search.
            placement = place(problem, placer, search_on=LOCAL, emit=emit).placement
