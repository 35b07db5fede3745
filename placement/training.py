"""The verb `train`: training steps of a placement, which may follow the machine's speed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from placement.events import Emit, never, silent, waiting
from placement.predicting import Simulated, simulate
from placement.running import require_present

if TYPE_CHECKING:
    from placement.core.graph import Graph
    from placement.core.model import Model
    from placement.core.placement import Placement
    from placement.core.problem import Problem
    from profiling.training import Trained
    from profiling.training_sites import Site


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
    *,
    steps: int = 200,
    adjust: bool = True,
    placer: str = "ceft_pbqp",
    margin: float = 0.05,
    seed: int = 0,
    inputs: Mapping[str, Any] | None = None,
    timeout_s: float = 60.0,
    emit: Emit = silent,
    stop: Callable[[], bool] = never,
) -> tuple[Simulated, Trained]:
    """Train a placed model for some steps; the prediction for its start, and what happened.

    With `adjust` another placement takes over between two steps when the speed of a device has
    changed and `placer`, or a search from the current placement, finds one that is faster by more
    than `margin`. On a machine of the null backend the steps follow a virtual clock. One measuring
    job at a time on a computer: others wait, and `emit` hears who has it.
    """
    require_training(model.graph)
    if steps < 1:
        raise ValueError(f"Training needs at least 1 step, not {steps}.")
    if problem.objective != "latency":
        raise ValueError("Training runs step after step; use --objective latency.")
    from placement.adjusting import Policy, prepare
    from profiling import training
    from profiling.lock import measuring

    wanted = training.Adjust(policy=Policy(placer=placer, margin=margin)) if adjust else None
    predicted = simulate(problem, placement)
    with measuring(f"training of {model.graph.name}", waiting(emit)):
        emit({"event": "progress", "what": "preparing to train", "step": 0, "of": steps})
        if wanted is not None:
            prepare(problem, wanted.policy)
        site = _site(model, problem, seed, inputs, timeout_s)
        try:
            trained = training.train(
                problem, placement, site, steps=steps, adjust=wanted, emit=emit, stop=stop
            )
        finally:
            site.close()
    return predicted, trained


def _site(
    model: Model,
    problem: Problem,
    seed: int,
    inputs: Mapping[str, Any] | None,
    timeout_s: float,
) -> Site:
    from profiling.training_sites import LiveSite, VirtualSite

    if not problem.machine.emulated:
        require_present(model, problem.machine)
        return LiveSite(problem, model, seed=seed, inputs=inputs, timeout_s=timeout_s)
    if inputs:
        raise ValueError("A machine on a virtual clock computes nothing; leave the inputs out.")
    return VirtualSite(problem)


def has_diverged(losses: tuple[float, ...]) -> bool:
    """Whether the loss is no number any more."""
    return any(not math.isfinite(loss) for loss in losses)
