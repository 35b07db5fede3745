"""Symbolic dimensions of ONNX model inputs: what they are called, and which size stands for them.

A dimension with a name keeps it ("batch"), one without is called after its place ("x.0"). A name
like "past + seq" is computed from the others. Sizes nobody gave are 1, but for the height and width
of image inputs (224, or what fits the network: `fitting.py`) and the length of token sequences
(16), with which a network still computes something.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import onnx

from placement.core.model import SymbolicDim
from placement.formats.onnx.checks.walk import refill
from placement.formats.onnx.read import read_onnx

IMAGE_SIZE = 224
SEQUENCE_LENGTH = 16
MAX_SIZE = 2**31 - 1
NO_SIZES: Mapping[str, int] = MappingProxyType({})
_TOKENS = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)
_IMAGE_NAMES = {"height", "width", "h", "w", "image_height", "image_width"}
# What exporters write where a dimension has no name, and names that they make up for one: Paddle's,
# TensorFlow's and PyTorch's.
_NOT_NAMES = {"", "?", "-1", "None"}
_MADE_UP = re.compile(r"unk__\d+|(p2o\.)?DynamicDimension\.\d+|.*_dynamic_axes_\d+|dim_?\d+|s\d+")
_SEQUENCE_NAMES = {"sequence", "seq", "sequence_length", "seq_length", "seq_len", "tokens"}


def image_axes(
    model: onnx.ModelProto, given: Mapping[str, int]
) -> dict[str, list[tuple[str, int]]]:
    """Axes (input, number) by dimension, where it is `IMAGE_SIZE` because nobody said more.

    Dimensions that others are computed from are left out.
    """
    sizes = {dim.name: dim.size for dim in dims_of(model)}
    found: dict[str, list[tuple[str, int]]] = {}
    computed: set[str] = set()
    for value, axis, name in _open_dims(model):
        computed |= _terms(name) or set()
        if name not in given and sizes.get(name) == IMAGE_SIZE:
            found.setdefault(name, []).append((value.name, axis))
    return {name: axes for name, axes in found.items() if name not in computed}


def symbolic_dims(path: Path) -> tuple[SymbolicDim, ...]:
    """The symbolic dimensions of the model in a file, in the order of its inputs.

    Pictures have their usual size here; opening the file may find another one (`fitting.py`).
    """
    model = read_onnx(path)
    drop_constant_inputs(model)
    return dims_of(model)


def drop_constant_inputs(model: onnx.ModelProto) -> set[str]:
    """Remove initializers from the list of inputs, in place; returns the initializers' names."""
    graph = model.graph
    constants = {tensor.name for tensor in graph.initializer}
    constants |= {sparse.values.name for sparse in graph.sparse_initializer}
    inputs = [value for value in graph.input if value.name not in constants]
    if len(inputs) != len(graph.input):
        refill(graph.input, inputs)
    return constants


def dims_of(model: onnx.ModelProto) -> tuple[SymbolicDim, ...]:
    """The symbolic dimensions of a model whose inputs no longer list initializers."""
    found: dict[str, SymbolicDim] = {}
    computed = []
    for value, axis, name in _open_dims(model):
        if _terms(name) is not None:
            computed.append((value, axis, name))
        elif name not in found:
            size = _default_size(value, axis, name)
            found[name] = SymbolicDim(name, size, f"input {value.name!r}, axis {axis}")
    for value, axis, name in computed:
        # An expression over names that no other dimension has is itself a free dimension.
        if name not in found and not (_terms(name) or set()) <= set(found):
            found[name] = SymbolicDim(name, 1, f"input {value.name!r}, axis {axis}")
    return tuple(found.values())


def fix_dims(
    model: onnx.ModelProto, dims: Mapping[str, int], name: str, found: Mapping[str, int] = NO_SIZES
) -> tuple[str, ...]:
    """Give every symbolic dimension of the inputs its size, in place; returns notes for people.

    A name in `dims` that the model does not have is refused with the names that it has. Of those
    that are not in it `found` has sizes that fit this network better than the usual ones.
    """
    known = {dim.name: dim for dim in dims_of(model)}
    for key, size in dims.items():
        if key not in known:
            have = f"it has {', '.join(known)}" if known else "it has none"
            raise ValueError(f"{name!r} has no symbolic dimension {key!r}; {have}.")
        if not 1 <= size <= MAX_SIZE:
            raise ValueError(f"Dimension {key!r} cannot be {size}; give a whole number from 1 on.")
    usual = {key: dim.size for key, dim in known.items()}
    sizes = {key: int({**found, **dims}.get(key, size)) for key, size in usual.items()}
    for value, axis, symbol in list(_open_dims(model)):
        dim = value.type.tensor_type.shape.dim[axis]
        dim.dim_value = sizes[symbol] if symbol in sizes else _computed(symbol, sizes)
    for value in (*model.graph.output, *model.graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in sizes:
                dim.dim_value = sizes[dim.dim_param]
            elif (terms := _terms(dim.dim_param)) and terms <= set(sizes):
                dim.dim_value = _computed(dim.dim_param, sizes)
    told = {key: "" if key in dims else f" by default (--dim {key}={sizes[key]})" for key in sizes}
    return tuple(f"Dimension {key!r} is {size}{told[key]}" for key, size in sizes.items())


def _open_dims(model: onnx.ModelProto) -> Iterator[tuple[onnx.ValueInfoProto, int, str]]:
    for value in model.graph.input:
        if value.type.HasField("tensor_type"):
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                if not dim.HasField("dim_value") or dim.dim_value < 0:
                    named = dim.dim_param not in _NOT_NAMES
                    yield value, axis, dim.dim_param if named else f"{value.name}.{axis}"


def _default_size(value: onnx.ValueInfoProto, axis: int, name: str) -> int:
    if name.lower() in _SEQUENCE_NAMES:
        return SEQUENCE_LENGTH
    if name.lower() in _IMAGE_NAMES:
        return IMAGE_SIZE
    tensor = value.type.tensor_type
    dims = tensor.shape.dim
    if name == f"{value.name}.{axis}" or _MADE_UP.fullmatch(name):
        if len(dims) == 4:
            channels_first = dims[1].dim_value in (1, 3, 4) and axis in (2, 3)
            channels_last = dims[3].dim_value in (1, 3, 4) and axis in (1, 2)
            if channels_first or channels_last:
                return IMAGE_SIZE
        if len(dims) == 2 and axis == 1 and tensor.elem_type in _TOKENS:
            return SEQUENCE_LENGTH
    return 1


def _terms(symbol: str) -> set[str] | None:
    """The names in a sum, difference or product of names and numbers; None for anything else."""
    if len(symbol) > 200 or not any(sign in symbol for sign in "+-*"):
        return None
    try:
        tree = ast.parse(symbol, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Constant):
            if type(node.value) is not int:
                return None
        elif not isinstance(
            node, (ast.Expression, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Load)
        ):
            return None
    return names or None


def _computed(symbol: str, sizes: Mapping[str, int]) -> int:
    def value(node: ast.AST) -> int:
        if isinstance(node, ast.Name):
            return sizes[node.id]
        if isinstance(node, ast.Constant):
            return int(node.value)  # type: ignore[arg-type]
        assert isinstance(node, ast.BinOp)
        left, right = value(node.left), value(node.right)
        if isinstance(node.op, ast.Add):
            return left + right
        return left - right if isinstance(node.op, ast.Sub) else left * right

    size = value(ast.parse(symbol, mode="eval").body)
    if not 0 <= size <= MAX_SIZE:
        raise ValueError(
            f"Dimension {symbol!r} would be {size} with the given sizes; change one of them."
        )
    return size
