"""The verb `from_transformers`: a network of transformers in memory as a model of one task."""

import dataclasses
import warnings
from typing import Any

import torch
from torch import nn

from placement.core.graph import TOKEN_TASKS
from placement.core.model import Model
from placement.formats.huggingface.caches import LAYOUTS
from placement.formats.huggingface.generation import Step, step_program
from placement.formats.torch.export import program_of
from placement.formats.torch.exporting import exported
from placement.formats.torch.graph import graph_of
from placement.formats.torch.module import from_torch
from placement.formats.torch.program import TorchProgram

TASKS = ("inference", *TOKEN_TASKS, "training")


def from_transformers(
    network: nn.Module,
    *,
    task: str = "inference",
    batch: int = 1,
    length: int = 32,
    context: int | None = None,
    cache: str = LAYOUTS[0],
    name: str = "",
) -> Model:
    """The model of a task of a language model, with its weights: see `pl.generate` for running two.

    "prefill" takes in prompts of `length` tokens and fills the cache, which has room for `context`
    tokens of each of `batch` sequences (twice the length where nothing is said); "decode" adds one
    token to each. Their cache is state that stays from step to step. "inference" and "training" are
    steps on `length` tokens without one.
    """
    if task not in TASKS:
        raise ValueError(f"The task is {task!r}; use one of {', '.join(TASKS)}.")
    name = name or type(network).__name__
    if task not in TOKEN_TASKS:
        given = {"input_ids": torch.zeros(batch, length, dtype=torch.long)}
        if task == "training":
            given["labels"] = given["input_ids"]
        return from_torch(network, given, training=task == "training", name=name)
    step = Step(task, batch, length, context or 2 * length, cache)

    def trace(module: nn.Module, named: dict[str, Any]) -> TorchProgram:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return program_of(exported(module, (), named, name), name)

    modes = [(inner, inner.training) for inner in network.modules()]
    try:
        program, _ = step_program(network.eval(), step, trace, rings=False)
    finally:
        for inner, mode in modes:
            inner.training = mode
    return Model(dataclasses.replace(graph_of(program), tokens=step.tokens), program)
