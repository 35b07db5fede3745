"""The verb `generate`: text from a network of transformers, both of its steps placed and run."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from placement.core.events import Emit, silent
from placement.core.verb_options import STEP_TIMEOUT_S, PlaceOptions
from placement.schedule.simulated import Simulated, simulate

if TYPE_CHECKING:
    from placement.core.graph import Ints
    from placement.core.machine import Machine
    from placement.core.placement import Placement
    from placement.core.problem import Problem

CACHE = "cache of "


@dataclass(frozen=True)
class Generation:
    """Tokens (sequences, number) that follow the prompts, measured and predicted times.

    `prefill` and `decode` are the predictions for the placements of the two steps; decode is
    predicted with a full cache.
    """

    tokens: Ints
    first_token_s: float
    step_s: tuple[float, ...]
    prefill: Simulated
    decode: Simulated
    placements: tuple[Placement, Placement]

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens of all sequences per second of decoding, by the median step."""
        if not self.step_s:
            return None
        return len(self.tokens) / statistics.median(self.step_s)


def generate(
    network: Any,
    prompts: Sequence[Sequence[int]] | Ints,
    *,
    new_tokens: int = 32,
    machine: Machine | None = None,
    placer: str = PlaceOptions.placer,
    emit: Emit = silent,
) -> Generation:
    """Greedy text from a network of transformers, live on this computer.

    `prompts` are token numbers, as many for each sequence. Decode is placed by `placer`, and so is
    prefill, whose layers' caches are kept where decode has them. The tokens are those that
    transformers gives by `network.generate(..., do_sample=False, eos_token_id=None)`, the most
    likely one each time: no token ends a sequence, and what a network's generation settings do to
    likelihoods is left out.
    """
    import numpy as np

    from placement.api.machines import machine as machine_named
    from placement.api.machines import machine_for
    from placement.api.place import place
    from placement.api.problems import make_problem
    from placement.api.quiet import quiet
    from placement.api.run import require_present
    from placement.formats.huggingface.module import from_transformers
    from profiling.execution import generate as live

    given = np.asarray(prompts)
    if given.ndim != 2 or given.dtype.kind not in "iu" or not given.size or new_tokens < 1:
        raise ValueError(
            f"Prompts are whole numbers, as many for each sequence, and at least one token follows;"
            f" not {given.dtype} of shape {list(given.shape)} and {new_tokens}."
        )
    batch, length = given.shape
    sizes = {"batch": batch, "length": length, "context": length + new_tokens}
    prefill = from_transformers(network, task="prefill", **sizes)
    decode = from_transformers(network, task="decode", **sizes)
    target = machine_for(decode, machine or machine_named())
    require_present(decode, target)
    problem = make_problem(decode, target)
    placed = place(problem, placer)
    first = beside(make_problem(prefill, target), problem, placed.placement)
    placed_first = place(first, placer)
    taking_in = live.Placed(prefill, first, placed_first.schedule)
    adding = live.Placed(decode, problem, placed.schedule)
    with quiet("generating with", decode, target, emit):
        made = live.generate(
            taking_in,
            adding,
            given,
            new_tokens=new_tokens,
            timeout_s=STEP_TIMEOUT_S,
            emit=emit,
        )
    return Generation(
        made.tokens,
        made.first_s,
        made.step_s,
        simulate(first, placed_first.placement),
        simulate(problem, placed.placement),
        (placed_first.placement, placed.placement),
    )


def beside(problem: Problem, other: Problem, placement: Placement) -> Problem:
    """A problem whose caches are pinned to where a placement of the other step has them."""
    device_of = {
        op.colocation_group: placement.device_of[op.name]
        for op in other.graph.ops
        if (op.colocation_group or "").startswith(CACHE)
    }
    pins = [
        (op.name, device_of[op.colocation_group])
        for op in problem.graph.ops
        if op.colocation_group in device_of
    ]
    return replace(problem, pins=(*problem.pins, *pins))
