"""The one form of an ONNX model that graph and execution share.

`prepare` changes a model in place so that both sides speak of the same nodes: functions of the
model itself are inlined, initializers are no longer listed as inputs (which would make them
replaceable and forbid a runtime to fold them), symbolic dimensions have sizes, nodes stand in
topological order and have unique names. Value names and operator sets stay as they are.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import onnx

from placement.core.graph import topological_order
from placement.formats.onnx.attributes import unique_names
from placement.formats.onnx.checks.calls import give_defaults
from placement.formats.onnx.checks.claims import check_limits
from placement.formats.onnx.checks.external import check_external
from placement.formats.onnx.checks.schema import check_arguments
from placement.formats.onnx.checks.walk import bodies, refill
from placement.formats.onnx.dims import NO_SIZES, drop_constant_inputs, fix_dims

MAX_IR_VERSION = 13  # the newest that onnxruntime 1.31 reads


def prepare(
    model: onnx.ModelProto,
    dims: Mapping[str, int],
    name: str,
    path: Path,
    found: Mapping[str, int] = NO_SIZES,
) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    """The prepared model and notes for people; ValueError where the graph is not valid.

    Sizes are those of `dims`, or `found`, or the usual ones (`fix_dims`). What inlining has put
    together is checked as the file at `path` was.
    """
    notes: list[str] = []
    if model.functions:
        model, note = _inlined(model)
        notes += note
        check_limits(model, name)
        check_external(model, path)
    check_arguments(model, name)
    graph = model.graph
    constants = drop_constant_inputs(model)
    # Before IR version 4 every initializer had to be an input as well.
    model.ir_version = min(max(model.ir_version, 4), MAX_IR_VERSION)
    notes += fix_dims(model, dims, name, found)
    _sort(graph, constants, name)
    for node, unique in zip(graph.node, unique_names(graph.node), strict=True):
        node.name = unique
    return model, tuple(notes)


def reads(node: onnx.NodeProto) -> list[str]:
    """Values that a node reads, each once, in order; captures of its bodies come last."""
    found = dict.fromkeys(filter(None, node.input))
    for attribute in node.attribute:
        for body in bodies(attribute):
            found.update(dict.fromkeys(captured(body)))
    return list(found)


def captured(body: onnx.GraphProto) -> Iterator[str]:
    """Values of the surrounding graphs that a body reads."""
    own = {value.name for value in body.input}
    own |= {tensor.name for tensor in body.initializer}
    own |= {sparse.values.name for sparse in body.sparse_initializer}
    own |= {value for node in body.node for value in node.output}
    for node in body.node:
        yield from (value for value in reads(node) if value not in own)
    yield from (value.name for value in body.output if value.name not in own)


def _inlined(model: onnx.ModelProto) -> tuple[onnx.ModelProto, list[str]]:
    import onnx.inliner

    give_defaults(model)
    try:
        return onnx.inliner.inline_local_functions(model), []
    except Exception as error:  # the C++ side raises several kinds, RuntimeError among them
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        return model, [f"Functions of the model stay whole, inlining failed: {first[:200]}"]


def _sort(graph: onnx.GraphProto, constants: set[str], name: str) -> None:
    writer: dict[str, int] = {}
    sources = constants | {value.name for value in graph.input}
    for i, node in enumerate(graph.node):
        for value in filter(None, node.output):
            if value in writer or value in sources:
                raise ValueError(
                    f"Value {value[:80]!r} of {name!r} is written twice (by node"
                    f" {_shown(node, i)} again); every value needs one writer."
                )
            writer[value] = i
    successors: list[list[int]] = [[] for _ in graph.node]
    for i, node in enumerate(graph.node):
        for value in reads(node):
            if value in writer:
                successors[writer[value]].append(i)
            elif value not in sources:
                raise ValueError(
                    f"Node {_shown(node, i)} of {name!r} reads value {value[:80]!r}, which nothing"
                    " writes; the file is incomplete, export or download it again."
                )
    for value in graph.output:
        if value.name not in writer and value.name not in sources:
            raise ValueError(
                f"Output {value.name[:80]!r} of {name!r} is written by no node;"
                " the file is incomplete, export or download it again."
            )
    order = topological_order(len(graph.node), successors)
    if order is None:
        i = _on_cycle(successors)
        raise ValueError(
            f"Node {_shown(graph.node[i], i)} of {name!r} lies on a cycle (it waits for its own"
            " output); express loops with Loop or Scan."
        )
    if order != list(range(len(order))):
        refill(graph.node, [graph.node[i] for i in order])


def _on_cycle(successors: list[list[int]]) -> int:
    """Index of a node on a cycle of a graph that has one."""
    waiting = [0] * len(successors)
    for after in successors:
        for j in after:
            waiting[j] += 1
    ready = [i for i, count in enumerate(waiting) if count == 0]
    while ready:
        for j in successors[ready.pop()]:
            waiting[j] -= 1
            if waiting[j] == 0:
                ready.append(j)
    # What remains lies on cycles or behind them; walking backwards inside it ends on a cycle.
    left = {i for i, count in enumerate(waiting) if count}
    before = {j: i for i in sorted(left, reverse=True) for j in successors[i] if j in left}
    i, seen = min(left), set()
    while i not in seen:
        seen.add(i)
        i = before[i]
    return i


def _shown(node: onnx.NodeProto, i: int) -> str:
    return f"{(node.name or f'{node.op_type} number {i}')[:80]!r}"
