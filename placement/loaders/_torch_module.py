"""From a module in memory to a model: for inference by export, for training by tracing a step."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from placement.core.model import Model
from placement.loaders._torch_export import program_of
from placement.loaders._torch_graph import graph_of
from placement.loaders._torch_optimisers import optimiser
from placement.loaders._torch_training import training_program


def model_of(
    module: nn.Module,
    example_inputs: Any,
    *,
    training: bool = False,
    loss: Callable[..., Any] | None = None,
    targets: Sequence[Any] = (),
    optimizer: str = "sgd",
    lr: float | None = None,
    name: str = "",
) -> Model:
    """See `placement.pipeline.from_torch`."""
    if not isinstance(module, nn.Module):
        raise ValueError(f"{type(module).__name__} is no torch.nn.Module; give a module.")
    if isinstance(example_inputs, torch.Tensor):
        example_inputs = (example_inputs,)
    name = name or type(module).__name__
    if training:
        program = training_program(
            module.train(), example_inputs, targets, loss, optimiser(optimizer, lr), name
        )
    else:
        if loss is not None or targets:
            raise ValueError("A loss and targets are for training; say training=True.")
        with warnings.catch_warnings():
            # Of what the framework's own modules do while they are exported.
            warnings.simplefilter("ignore")
            exported = torch.export.export(module.eval(), tuple(example_inputs))
        program = program_of(exported, name)
    return Model(graph_of(program), program)
