"""Inputs of a PyTorch program: seeded by type, or checked as given."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from placement.formats.torch.program import TorchProgram
from placement.formats.torch.rows import row_limits


def all_feeds(program: TorchProgram, seed: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """Every input by the label that people know: given ones checked, the rest seeded in order."""
    names = {program.labels.get(name, name): name for name in program.inputs}
    unknown = next((label for label in given if label not in names), None)
    if unknown is not None:
        raise ValueError(
            f"The model has no input {unknown!r}; it takes {', '.join(names) or 'none'}."
        )
    limits, rng = row_limits(program), np.random.default_rng(seed)
    feeds: dict[str, Any] = {}
    for label, name in names.items():
        value = program.nodes[name].meta["val"]
        made = None if label in given else _seeded(label, value, limits.get(name), rng)
        feeds[label] = _checked(label, value, given[label]) if label in given else made
    return feeds


def _seeded(label: str, value: Any, limit: int | None, rng: np.random.Generator) -> Any:
    """One input: images and batches of them in [0, 1), other floats normal, valid token ids."""
    if not isinstance(value, torch.Tensor):
        return value
    shape = tuple(value.shape)
    if value.dtype == torch.bool:
        return torch.from_numpy(rng.integers(0, 2, size=shape).astype(np.bool_))
    if not value.dtype.is_floating_point:
        if "mask" in label.lower():
            return torch.ones(shape, dtype=value.dtype)
        return torch.from_numpy(np.asarray(rng.integers(0, limit or 2, size=shape))).to(value.dtype)
    made = rng.random(size=shape) if len(shape) >= 4 else rng.standard_normal(size=shape)
    return torch.from_numpy(np.asarray(made)).to(value.dtype)


def _checked(label: str, value: Any, given: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return given
    if not isinstance(given, torch.Tensor):
        given = np.asarray(given)
        if given.dtype.kind not in "biufc":
            raise ValueError(f"Input {label!r} is {given.dtype}, the model takes {value.dtype}.")
        given = torch.from_numpy(given)
    found = given
    if tuple(found.shape) != tuple(value.shape):
        raise ValueError(
            f"Input {label!r} has shape {tuple(found.shape)}, the model was exported with"
            f" {tuple(value.shape)}; give that shape, or export it again."
        )
    if not torch.can_cast(found.dtype, value.dtype):
        raise ValueError(f"Input {label!r} is {found.dtype}, the model takes {value.dtype}.")
    return found.to(value.dtype).contiguous()
