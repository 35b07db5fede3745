"""What an ONNX node tells about its scope: its own name, its modules, its weights."""

import ast
from collections.abc import Collection, Mapping, Sequence

import onnx

from placement.formats.onnx.values import UNKNOWN, Value
from placement.formats.scopes.paths import Path, module_path, node_path, scopes, weight_path
from placement.formats.scopes.structure import ScopeNode

_MODULES = "pkg.torch.onnx.name_scopes"
_PRODUCTS = {
    "Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "DeformConv", "Gemm", "MatMul",
    "MatMulInteger", "QLinearMatMul", "LSTM", "GRU", "RNN", "Gather", "Attention", "Einsum",
}  # fmt: skip


def node_scopes(
    nodes: Sequence[onnx.NodeProto],
    read: Sequence[Sequence[str]],
    root: Mapping[str, str],
    values: Mapping[str, Value],
    outputs: Collection[str],
) -> list[str]:
    """One scope per node; `read` are the values that each reads, `root` leads from constants to
    stored weights, `outputs` are the model's."""
    writer = {value: i for i, node in enumerate(nodes) for value in node.output if value}
    from_names = [_own_path(node) for node in nodes]
    # A model whose nodes have paths speaks through them alone: mixing two ways of naming gives
    # the same block two names.
    by_name = sum(path is not None for path in from_names) * 2 >= len(nodes)
    labelled: set[str] = set()
    made = []
    for node, inputs, path in zip(nodes, read, from_names, strict=True):
        label = path if by_name else _weight_label(node, root, values, labelled)
        shape = values.get(node.output[0], UNKNOWN).shape if node.output else None
        before = {writer[value] for value in inputs if value in writer}
        made.append(
            ScopeNode(
                node.op_type,
                label,
                node.op_type in _PRODUCTS and any(v in root for v in node.input),
                (shape or ())[2:],
                tuple(sorted(before)),
                tuple(v for v in inputs if v and v not in writer and v not in root),
                tuple(v for v in node.output if v in outputs),
            )
        )
    return scopes(made, by_name=by_name)


def _own_path(node: onnx.NodeProto) -> Path | None:
    for entry in node.metadata_props:
        if entry.key == _MODULES and len(entry.value) < 10_000:
            try:
                modules = ast.literal_eval(entry.value)
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
            if isinstance(modules, (list, tuple)) and all(isinstance(m, str) for m in modules):
                return module_path(modules)
    return node_path(node.name)


def _weight_label(
    node: onnx.NodeProto,
    root: Mapping[str, str],
    values: Mapping[str, Value],
    labelled: set[str],
) -> Path | None:
    """From the largest weight that no earlier node read: a shared one speaks for its first op."""
    roots = [root[value] for value in dict.fromkeys(node.input) if value in root]
    new = [name for name in roots if name not in labelled]
    labelled.update(roots)
    weights = [
        name
        for name in new
        if values.get(name, UNKNOWN).dtype not in ("int64", "int32", "bool", "string")
    ]
    for name in sorted(weights, key=lambda name: -values.get(name, UNKNOWN).num_bytes):
        path = weight_path(name)
        if path is not None:
            return path
    return None
