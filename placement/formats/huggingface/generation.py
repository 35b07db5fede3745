"""The two steps of generating text, prefill and decode, each as a program of one network.

Prefill takes in the tokens of a prompt, fills the cache and gives the logits of the last one;
decode takes one token of each sequence and its position, appends to the cache, attends to all of it
and gives the logits of the next one. Both have the cache as state, by the same names.
"""

import inspect
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from placement.core.graph import TOKEN_TASKS, Tokens
from placement.formats.huggingface import caches, traced_cache
from placement.formats.torch.caches import with_caches
from placement.formats.torch.program import TorchProgram

# Attention over fewer keys than queries then reads the cache as it is, instead of a repetition.
# Transformers asks the environment of the process and nothing else, so that one trace at a time
# may change it.
_GROUPED = "TRANSFORMERS_SDPA_FORCE_GQA"
_environment = threading.Lock()
Trace = Callable[[nn.Module, dict[str, Any]], TorchProgram]


@dataclass(frozen=True)
class Step:
    """A step of generating: prompts of `length` tokens, or one token each, of `batch` sequences.

    `context` is how many tokens of each the cache has room for, `layout` how it lies in memory.
    """

    task: str
    batch: int
    length: int
    context: int
    layout: str = caches.LAYOUTS[0]

    def __post_init__(self) -> None:
        if self.task not in TOKEN_TASKS:
            raise ValueError(f"The task is {self.task!r}; use {' or '.join(TOKEN_TASKS)}.")
        if self.layout not in caches.LAYOUTS:
            raise ValueError(f"The cache is {self.layout!r}; use {' or '.join(caches.LAYOUTS)}.")
        if self.is_prompt and self.length > self.context:
            raise ValueError(
                f"A prompt of {self.length} tokens does not fit into a cache of {self.context};"
                " make length smaller or context larger."
            )

    @property
    def is_prompt(self) -> bool:
        return self.task == "prefill"

    @property
    def tokens(self) -> Tokens:
        return Tokens(self.task, self.batch, self.length if self.is_prompt else 1)


def step_program(
    module: nn.Module, step: Step, trace: Trace, *, rings: bool
) -> tuple[TorchProgram, dict[str, caches.Entry]]:
    """The program that `trace` makes of a step of a network, and what its cache is made of.

    With `rings` a sliding window has no more room than it needs, which is for sizes alone: a mask
    knows tokens by their place.
    """
    layers = caches.kept_by(module, step.batch, step.context, rings=rings)
    try:
        entries = caches.placed_in(module, layers)
        with _stepping(module, layers), _grouped_attention():
            program = trace(module, inputs_of_step(module, step))
    finally:
        caches.removed_from(module)
    sizes = {label: entry.stored_bytes(step.layout) for label, entry in entries.items()}
    return with_caches(program, sizes), entries


def inputs_of_step(module: nn.Module, step: Step) -> dict[str, Tensor]:
    """Tokens on the network's device, and in decode their position: the last one of the cache."""
    device = next(iter(module.parameters())).device
    shape = (step.batch, step.tokens.per_sequence)
    given = {"input_ids": torch.zeros(shape, dtype=torch.long, device=device)}
    if not step.is_prompt:
        last = torch.full((1,), step.context - 1, dtype=torch.long, device=device)
        given["position"] = last
    return given


@contextmanager
def _stepping(module: nn.Module, layers: Sequence[caches.LayerCache]) -> Iterator[None]:
    """While it lasts, the network takes tokens and a position, and keeps its cache in buffers."""
    forward, held = module.forward, caches.cache_argument(module)
    asked = inspect.signature(type(module).forward).parameters
    # A trace takes layers apart: what they hold is looked up before.
    buffers = caches.buffers_of(module)
    last = {"logits_to_keep": 1} if "logits_to_keep" in asked else {}

    def stepped(input_ids: Tensor, position: Tensor | None = None) -> dict[str, Tensor]:
        named: Mapping[str, Any] = {held: traced_cache.kept(buffers, layers, position), **last}
        if position is not None and "position_ids" in asked:
            named = {**named, "position_ids": position[None].expand(input_ids.shape[0], 1)}
        return {"logits": forward(input_ids=input_ids, use_cache=True, **named).logits}

    module.forward = stepped
    try:
        yield
    finally:
        del module.forward


@contextmanager
def _grouped_attention() -> Iterator[None]:
    with _environment:
        before = os.environ.get(_GROUPED)
        os.environ[_GROUPED] = "1"
        try:
            yield
        finally:
            if before is None:
                os.environ.pop(_GROUPED, None)
            else:
                os.environ[_GROUPED] = before
