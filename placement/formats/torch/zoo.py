"""Building the networks of the zoo."""

import importlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from placement.core.model import Model, SymbolicDim
from placement.formats.torch.module import from_torch

MOST = 1_000_000


def sizes_of(sample: str) -> dict[str, int]:
    """What may be set of a sample, with its default."""
    return dict(network_of(sample).SIZES)


def open_sample(
    sample: str, dims: Mapping[str, int], seed: int, open_dims: tuple[SymbolicDim, ...] = ()
) -> Model:
    """The network, or a step of SGD that trains it, which says that its sizes may be set."""
    network = network_of(sample)
    unknown = next((name for name in dims if name not in network.SIZES), None)
    if unknown is not None:
        raise ValueError(f"{sample!r} has no size {unknown!r}; it has {', '.join(network.SIZES)}.")
    for name, size in dims.items():
        if not 1 <= size <= MOST:
            raise ValueError(f"Size {name!r} is {size}; use 1 to {MOST}.")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            module, inputs, targets, loss = network.build({**network.SIZES, **dims})
            how: dict[str, Any] = {}
            if sample.endswith(":training"):
                how = {"training": True, "loss": loss, "targets": targets}
            model = from_torch(module, inputs, name=sample, **how)
        except RuntimeError as error:
            text = " ".join(str(error).split())[:200]
            raise ValueError(f"{sample!r} cannot be built with these sizes: {text}") from None
    program: Any = model.executable
    known = replace(program, symbolic_dims=open_dims, dims=tuple(sorted(dims.items())))
    return replace(model, executable=known)


def network_of(sample: str) -> Any:
    return importlib.import_module(f"placement.zoo.{sample.partition(':')[0]}")
