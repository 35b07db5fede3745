"""The verb `train`: training steps of a placement, which may follow the machine's speed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from placement.api.run import require_runnable
from placement.core.events import Emit, never, silent, waiting
from placement.core.objective import Objective
from placement.core.verb_options import TrainOptions, made
from placement.remote.calls import in_confinement
from placement.schedule.simulated import Simulated, simulate

if TYPE_CHECKING:
    from placement.advice.replacing import Policy
    from placement.core.graph import Graph
    from placement.core.model import Model
    from placement.core.placement import Placement
    from placement.core.problem import Problem
    from profiling.training.loop import Trained
    from profiling.training.sites import Site


def is_training(graph: Graph) -> bool:
    """Whether a graph is a training step: it computes gradients or updates."""
    return any(op.phase in ("backward", "update") for op in graph.ops)


def require_training(graph: Graph) -> None:
    """ValueError unless the graph is a training step."""
    if not is_training(graph):
        raise ValueError(
            f"{graph.name!r} is for inference, it has no gradients and no updates to train with;"
            " open a training step, such as the sample resnet50:training."
        )


def train(
    model: Model,
    problem: Problem,
    placement: Placement,
    options: TrainOptions | None = None,
    *,
    inputs: Mapping[str, Any] | None = None,
    emit: Emit = silent,
    stop: Callable[[], bool] = never,
    **named: Any,
) -> tuple[Simulated, Trained]:
    """Train a placed model for some steps; the prediction for its start, and what happened.

    With `adjust` another placement takes over between two steps when the speed of a device has
    changed and `placer`, or a search from the current placement, finds one that is faster by more
    than `margin`. With `resume` the state is kept on two hosts of a cluster; where one leaves, the
    training goes on from its last step on the devices that are left. On a machine of the null
    backend the steps follow a virtual clock. One measuring job at a time on a computer: others
    wait, and `emit` hears who has it. The options may be named instead: `train(model, problem,
    placement, steps=30)`.
    """
    require_training(model.graph)
    options = made(TrainOptions, options, named)
    if problem.objective is not Objective.LATENCY:
        raise ValueError("Training runs step after step; use --objective latency.")
    from placement.advice.replacing import Policy

    require_runnable(model, problem, inputs)
    predicted = simulate(problem, placement)
    trained = _trained(
        model,
        problem,
        placement,
        options,
        policy=Policy(placer=options.placer, margin=options.margin) if options.adjust else None,
        inputs=inputs,
        emit=emit,
        stop=stop,
    )
    return predicted, trained


@in_confinement("profiling.training.loop:Trained", on_hosts=True)
def _trained(
    model: Model,
    problem: Problem,
    placement: Placement,
    options: TrainOptions,
    *,
    policy: Policy | None,
    inputs: Mapping[str, Any] | None,
    emit: Emit,
    stop: Callable[[], bool],
) -> Trained:
    from placement.advice.replacing import prepare
    from placement.api.place import place
    from profiling import backends
    from profiling.measuring.lock import measuring
    from profiling.training import loop
    from profiling.training.sites import LiveSite, VirtualSite

    with measuring(f"training of {model.graph.name}", waiting(emit)):
        emit({"event": "progress", "what": "preparing to train", "step": 0, "of": options.steps})
        adjust = None
        if policy is not None:
            prepare(problem, policy)
            adjust = loop.Adjust(policy=policy)
        virtual = backends.emulated(problem.machine.devices)
        site: Site = VirtualSite(problem) if virtual else LiveSite(problem, model, options, inputs)

        def anew(left: Problem) -> Placement:
            return place(left, options.placer).placement

        try:
            return loop.train(
                problem,
                placement,
                site,
                steps=options.steps,
                adjust=adjust,
                place=anew if options.resume else None,
                emit=emit,
                stop=stop,
            )
        finally:
            site.close()


def has_diverged(losses: tuple[float, ...]) -> bool:
    """Whether the loss is no number any more."""
    return any(not math.isfinite(loss) for loss in losses)
