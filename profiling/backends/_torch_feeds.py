"""Inputs of a PyTorch program: seeded by type, or checked as given."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import fx

from placement.loaders._torch_program import TorchProgram

# Ops that hand their first argument on with every number in it unchanged.
_THROUGH = (
    "view", "_unsafe_view", "reshape", "unsqueeze", "squeeze", "slice", "select", "expand", "clone",
    "alias", "detach", "flatten", "contiguous", "to", "_to_copy", "permute", "transpose",
)  # fmt: skip
# By op: which argument holds numbers of rows, and which argument, along which axis, has the rows.
_ROWS = {
    "embedding": (1, 0, 0),
    "nll_loss": (1, 0, 1),
    "nll_loss_forward": (1, 0, 1),
    "nll_loss_nd": (1, 0, 1),
    "cross_entropy_loss": (1, 0, 1),
    "index_select": (2, 0, None),
    "gather": (2, 0, None),
}


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


def row_limits(program: TorchProgram) -> dict[str, int]:
    """For inputs that number rows of something: the smallest number of rows."""
    origin = {name: name for name in program.inputs}
    limits: dict[str, int] = {}
    for node in program.kernels:
        kind = getattr(getattr(node.target, "overloadpacket", None), "__name__", "")
        first = node.args[0] if node.args else None
        if kind in _THROUGH and isinstance(first, fx.Node) and first.name in origin:
            origin[node.name] = origin[first.name]
        at, of, axis = _ROWS.get(kind, (0, 0, None))
        if kind in _ROWS and len(node.args) > at and isinstance(node.args[at], fx.Node):
            index, rows = node.args[at], node.args[of]
            if index.name in origin and isinstance(rows, fx.Node):
                axis = node.args[1] if axis is None else axis
                size = int(rows.meta["val"].shape[axis])
                name = origin[index.name]
                limits[name] = min(size, limits.get(name, size))
    return limits


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
