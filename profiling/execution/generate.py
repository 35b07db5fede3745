"""Greedy generation of text, live: a prefill, then one decode after another, each placed on lanes.

Both steps are programs of one network with the same cache as their state. What prefill has written
goes to decode by name, and each decode goes on from what the one before has left.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placement.core.events import Emit, silent
from placement.core.graph import Ints
from placement.core.model import Model
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.simulator.executions import lower
from placement.simulator.simulate import simulate
from profiling.devices.memory import check_memory
from profiling.execution.execute import compiled_for, started
from profiling.measuring.reference import release, safe_step

LOGITS = "logits"
# Prefills that are not timed: the first one also finds its weights outside of all caches.
WARMUP = 1


@dataclass(frozen=True)
class Placed:
    """A step of generating with its problem and its schedule."""

    model: Model
    problem: Problem
    schedule: Schedule


@dataclass(frozen=True)
class Generated:
    """Tokens (sequences, number) that follow the prompts, and when they came.

    `first_s` is the seconds of the prefill once it has run before, as predictions are of times
    that were measured so; `step_s` those of each decode.
    """

    tokens: Ints
    first_s: float
    step_s: tuple[float, ...]


class _Open:
    """A placed step with its lanes, ready to run; the next one reads its inputs from `feeds`."""

    def __init__(self, placed: Placed, timeout_s: float) -> None:
        problem, schedule = placed.problem, placed.schedule
        check_memory(simulate(problem, schedule).peak_bytes, problem.machine)
        compiled, self._timeout_s = compiled_for(problem, placed.model), timeout_s
        self.feeds = compiled.feeds(0, {})
        self.program = compiled.open(schedule, self.feeds)
        self._lanes = started(self.program, problem, lower(problem, schedule))
        self.label_of: Mapping[str, str] = placed.model.content().labels

    def step(self, inputs: Mapping[str, Any], *, warmup: int = 0) -> float:
        """Run on these inputs and go on from the state that this leaves; the seconds.

        The step runs `warmup` times before, each time from the same state.
        """
        import torch

        for name, value in inputs.items():
            self.feeds[name] = torch.as_tensor(np.asarray(value))
        self.program.feed(0)
        for _ in range(warmup):
            safe_step(self._lanes, self.program, self._timeout_s)
        step = safe_step(self._lanes, self.program, self._timeout_s)
        self.program.advance()
        return step.seconds

    def next_tokens(self) -> Ints:
        """The likeliest token after the last one of each sequence."""
        logits: NDArray[np.float32] = np.asarray(self.program.output(LOGITS))
        return np.asarray(logits[:, -1].argmax(axis=-1), dtype=np.int64)

    def cache(self) -> dict[str, Any]:
        """The state by the names that the network has for it."""
        return {self.label_of[name]: value for name, value in self.program.state().items()}

    def take(self, cache: Mapping[str, Any]) -> None:
        """Go on from the cache of another step, which becomes this one's own."""
        names = {label: name for name, label in self.label_of.items()}
        self.program.take_state({names[label]: value for label, value in cache.items()})

    def close(self) -> None:
        release([self.program], [self._lanes])


def generate(
    prefill: Placed,
    decode: Placed,
    prompts: Sequence[Sequence[int]] | Ints,
    *,
    new_tokens: int,
    timeout_s: float,
    emit: Emit = silent,
) -> Generated:
    """The likeliest `new_tokens` tokens after each of the prompts, which are of one length."""
    given = np.asarray(prompts, dtype=np.int64)
    first = _Open(prefill, timeout_s)
    try:
        first_s = first.step({"input_ids": given}, warmup=WARMUP)
        found, cache = [first.next_tokens()], first.cache()
    finally:
        first.close()
    step_s: list[float] = []
    later = _Open(decode, timeout_s)
    try:
        later.take(cache)
        cache.clear()  # decode writes into it, or has one of its own
        while len(found) < new_tokens:
            position = np.array([given.shape[1] + len(step_s)], dtype=np.int64)
            step_s.append(later.step({"input_ids": found[-1][:, None], "position": position}))
            found.append(later.next_tokens())
            emit({"event": "step", "index": len(step_s) - 1, "seconds": step_s[-1]})
    finally:
        later.close()
    return Generated(np.stack(found, axis=1), first_s, tuple(step_s))
