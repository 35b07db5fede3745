"""Model inputs: seeded by type, or checked as given."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from profiling.backends._ort.types import any_dtype, numpy_dtype
from profiling.backends._ort.values import Value

_THROUGH = ("Cast", "Identity", "Reshape", "Unsqueeze", "Squeeze", "Flatten")


def row_limits(graph: Any) -> dict[str, int]:
    """For inputs that index rows of a weight: the smallest number of rows."""
    rows = {t.name: tuple(t.dims) for t in graph.initializer}
    origin = {value.name: value.name for value in graph.input}
    limits: dict[str, int] = {}
    for node in graph.node:
        if node.op_type in _THROUGH and node.input and node.input[0] in origin:
            origin.update((name, origin[node.input[0]]) for name in node.output)
        if node.op_type == "Gather" and len(node.input) == 2 and node.input[1] in origin:
            axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
            shape = rows.get(node.input[0], ())
            if -len(shape) <= axis < len(shape):
                name, size = origin[node.input[1]], shape[axis]
                limits[name] = min(size, limits.get(name, size))
    return limits


def seeded(name: str, value: Value, limit: int | None, rng: np.random.Generator) -> Any:
    """One input: images and batches of them in [0, 1), other floats normal, valid token ids."""
    if value.type.startswith("optional("):
        return seeded(name, Value(value.type[9:-1], value.shape, 0), limit, rng)
    if value.type.startswith("seq("):
        return [seeded(name, Value(value.type[4:-1], value.shape, 0), limit, rng) for _ in range(2)]
    shape = value.shape if value.shape is not None else ()
    if value.type == "tensor(string)":
        return np.array(rng.choice(["a", "b", "c"], size=shape), dtype=object).reshape(shape)
    dtype = any_dtype(value.type)
    if dtype.kind == "b":
        return rng.integers(0, 2, size=shape).astype(np.bool_)
    if dtype.kind in "iu":
        if "mask" in name.lower():
            return np.ones(shape, dtype=dtype)
        return rng.integers(0, min(limit or 2, np.iinfo(dtype).max), size=shape).astype(dtype)
    made = rng.random(size=shape) if len(shape) >= 4 else rng.standard_normal(size=shape)
    return np.asarray(made, dtype=dtype)


def checked(name: str, value: Value, given: Any) -> Any:
    """A given input, converted where nothing is lost; a ValueError names what does not fit."""
    dtype = numpy_dtype(value.type)
    if dtype is None:
        return given
    array = np.asarray(given)
    if array.dtype != dtype:
        if not np.can_cast(array.dtype, dtype, "same_kind"):
            raise ValueError(
                f"Input {name!r} is {array.dtype}, the model takes {dtype}; convert it."
            )
        array = array.astype(dtype)
    if value.shape is not None and array.shape != value.shape:
        raise ValueError(
            f"Input {name!r} has shape {array.shape}, the model is open with {value.shape};"
            " give that shape, or open the model with other sizes (--dim)."
        )
    return np.ascontiguousarray(array).reshape(array.shape)


def all_feeds(
    inputs: Mapping[str, Value], limits: Mapping[str, int], seed: int, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Every input of the model: given ones checked, the rest seeded in the order of the inputs."""
    unknown = next((name for name in given if name not in inputs), None)
    if unknown is not None:
        raise ValueError(
            f"The model has no input {unknown!r}; it takes {', '.join(inputs) or 'none'}."
        )
    rng = np.random.default_rng(seed)
    feeds = {}
    for name, value in inputs.items():
        made = None if name in given else seeded(name, value, limits.get(name), rng)
        feeds[name] = checked(name, value, given[name]) if name in given else made
    return feeds
