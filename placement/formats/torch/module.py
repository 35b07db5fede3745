"""The verb `from_torch`: a module in memory as a model, by export or by tracing a training step."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from placement.core.model import Model
from placement.formats.torch.export import program_of
from placement.formats.torch.exporting import exported
from placement.formats.torch.graph import graph_of
from placement.formats.torch.optimisers import Optimiser, optimiser
from placement.formats.torch.program import TorchProgram
from placement.formats.torch.training import training_program


def from_torch(
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
    """The model of a torch.nn.Module, as a loader would return it.

    `example_inputs` is one tensor, a sequence of them, or a mapping from the names of arguments;
    they may be nested, and what is no tensor stays as it is. For inference the module is exported
    in evaluation mode. For training the graph is one step: `loss(module(*inputs), *targets)`, all
    gradients, and one update per parameter by "sgd", "momentum" or "adam"; without a loss the
    module's output must be or have one.
    """
    if not isinstance(module, nn.Module):
        raise ValueError(f"{type(module).__name__} is no torch.nn.Module; give a module.")
    if isinstance(example_inputs, torch.Tensor):
        example_inputs = (example_inputs,)
    if not isinstance(example_inputs, Mapping | Sequence):
        raise ValueError(
            "Give the example inputs as a tensor, a tuple of tensors in order, or a dict by name."
        )
    named = dict(example_inputs) if isinstance(example_inputs, Mapping) else {}
    args = () if named else tuple(example_inputs)
    if not training and (loss is not None or targets):
        raise ValueError("A loss and targets are for training; say training=True.")
    name = name or type(module).__name__
    modes = [(inner, inner.training) for inner in module.modules()]
    try:
        program = _program(
            module, args, named, training, loss, targets, optimiser(optimizer, lr), name
        )
    finally:
        for inner, mode in modes:
            inner.training = mode
    return Model(graph_of(program), program)


def _program(
    module: nn.Module,
    args: tuple[Any, ...],
    named: dict[str, Any],
    training: bool,
    loss: Callable[..., Any] | None,
    targets: Sequence[Any],
    update: Optimiser,
    name: str,
) -> TorchProgram:
    if training:
        return training_program(module.train(), args, named, targets, loss, update, name)
    with warnings.catch_warnings():
        # Of what the framework's own modules do while they are exported.
        warnings.simplefilter("ignore")
        return program_of(exported(module.eval(), args, named, name), name)
