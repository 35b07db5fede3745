"""Runs that go on where devices are lost in the middle, on those that are left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from placement.api.place import place
from placement.api.run import LiveRun, LiveStream, run, stream
from placement.core.events import Emit, never, silent
from placement.core.verb_options import LOCAL, PlaceOptions, RunOptions, StreamOptions
from placement.costs.remaining import without_devices

if TYPE_CHECKING:
    from placement.core.model import Model
    from placement.core.placement import Placement
    from placement.core.problem import Problem

Live = TypeVar("Live")


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

    def go(problem: Problem, placement: Placement) -> LiveRun:
        return run(model, problem, placement, options, inputs=inputs, emit=emit)

    return _to_the_end(go, problem, placement, emit, placer)


def stream_to_the_end(
    model: Model,
    problem: Problem,
    placement: Placement,
    options: StreamOptions,
    *,
    inputs: Mapping[str, Any] | None = None,
    emit: Emit = silent,
    stop: Callable[[], bool] = never,
    placer: str = PlaceOptions.placer,
) -> tuple[Problem, Placement, LiveStream]:
    """`stream`, begun again likewise."""

    def go(problem: Problem, placement: Placement) -> LiveStream:
        return stream(model, problem, placement, options, inputs=inputs, emit=emit, stop=stop)

    return _to_the_end(go, problem, placement, emit, placer)


def _to_the_end(
    go: Callable[[Problem, Placement], Live],
    problem: Problem,
    placement: Placement,
    emit: Emit,
    placer: str,
) -> tuple[Problem, Placement, Live]:
    from profiling.backends.base import DevicesLost

    while True:
        try:
            return problem, placement, go(problem, placement)
        except DevicesLost as lost:
            emit({"event": "lost", "message": str(lost), "devices": list(lost.devices)})
            problem = without_devices(problem, lost.devices)
            # At once: a cluster that has just lost hosts is not asked to search.
            placement = place(problem, placer, search_on=LOCAL, emit=emit).placement
