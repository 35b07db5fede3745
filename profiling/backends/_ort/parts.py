"""Cut an optimised model: one part per segment, with the values that cross its borders."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placement.formats.onnx.checks.external import SMALL_BYTES
from placement.formats.onnx.prepare import reads
from profiling.backends._ort.optimise import Optimised
from profiling.backends._ort.types import numpy_type, type_proto
from profiling.backends._ort.values import Value


@dataclass(frozen=True)
class Part:
    """Nodes that run in one call, the values it takes and gives, and the weights it reads.

    A part without nodes is another runtime's; its values are what the other parts share with it.
    """

    nodes: tuple[int, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weights: tuple[str, ...]


def cut(optimised: Optimised, groups: Sequence[Iterable[int]]) -> tuple[Part, ...]:
    """Parts from groups of node indices that together are all nodes, each part in node order."""
    graph = optimised.model.graph
    weights = {t.name for t in graph.initializer} | {
        t.values.name for t in graph.sparse_initializer
    }
    members = [tuple(sorted(group)) for group in groups]
    owner = {i: g for g, nodes in enumerate(members) for i in nodes}
    read = {i: reads(graph.node[i]) for i in owner}
    maker = {name: owner[i] for i in owner for name in graph.node[i].output if name}
    wanted = {value.name for value in graph.output}
    for i, names in read.items():
        wanted.update(name for name in names if maker.get(name, owner[i]) != owner[i])
    parts = []
    for g, nodes in enumerate(members):
        used = dict.fromkeys(name for i in nodes for name in read[i])
        parts.append(
            Part(
                nodes,
                tuple(n for n in used if n not in weights and maker.get(n) != g),
                tuple(n for i in nodes for n in graph.node[i].output if n in wanted),
                tuple(n for n in used if n in weights),
            )
        )
    return tuple(parts)


def only_borders(
    optimised: Optimised, parts: Sequence[Part], own: Sequence[bool]
) -> tuple[Part, ...]:
    """The parts; those that are not our own have only what ours share with them, or outputs."""
    ours = [part for part, is_own in zip(parts, own, strict=True) if is_own]
    read = {name for part in ours for name in part.inputs}
    made = {name for part in ours for name in part.outputs}
    read.update(value.name for value in optimised.model.graph.output)
    return tuple(
        part
        if is_own
        else Part(
            (),
            tuple(name for name in part.inputs if name in made),
            tuple(name for name in part.outputs if name in read),
            (),
        )
        for part, is_own in zip(parts, own, strict=True)
    )


def part_proto(
    optimised: Optimised, part: Part, values: Mapping[str, Value], shared: Mapping[str, Any]
) -> Any:
    """The part as a model; weights in `shared` are declared, to be handed to the session."""
    import onnx

    source = optimised.model
    model = onnx.ModelProto()
    model.ir_version = max(source.ir_version, 8)
    model.opset_import.extend(source.opset_import)
    model.functions.extend(source.functions)
    graph = model.graph
    graph.name = "part"
    graph.node.extend(source.graph.node[i] for i in part.nodes)
    graph.input.extend(_info(name, values[name]) for name in part.inputs)
    graph.output.extend(_info(name, values.get(name)) for name in part.outputs)
    weights = set(part.weights)
    for tensor in source.graph.initializer:
        if tensor.name in shared and tensor.name in weights:
            graph.initializer.append(_declared(tensor))
        elif tensor.name in weights:
            graph.initializer.append(optimised.with_data(tensor))
    graph.sparse_initializer.extend(
        t for t in source.graph.sparse_initializer if t.values.name in weights
    )
    return model


def shared_weights(optimised: Optimised, parts: Sequence[Part]) -> dict[str, Any]:
    """Weights that several parts read, as OrtValues that their sessions share; and mapped ones."""
    import onnxruntime as ort

    return {
        tensor.name: ort.OrtValue.ortvalue_from_numpy_with_onnx_type(
            shared_array(optimised, tensor), tensor.data_type
        )
        for tensor in shared_tensors(optimised, parts)
    }


def shared_array(optimised: Optimised, tensor: Any) -> Any:
    """A weight that outlives the file it is read from; a mapped one is not read before its use."""
    from onnx import numpy_helper

    if _is_mapped(optimised, tensor):
        return optimised.mapped(tensor)
    return np.require(numpy_helper.to_array(optimised.with_data(tensor)), requirements="C")


def shared_tensors(optimised: Optimised, parts: Sequence[Part]) -> list[Any]:
    """The initializers that several parts read, but for small ones, and those that are mapped."""
    from onnx import TensorProto

    uses = Counter(name for part in parts for name in part.weights)
    return [
        tensor
        for tensor in optimised.model.graph.initializer
        if tensor.data_location == TensorProto.EXTERNAL
        and (uses[tensor.name] > 1 or (uses[tensor.name] and _is_mapped(optimised, tensor)))
    ]


def _is_mapped(optimised: Optimised, tensor: Any) -> bool:
    """Whether a weight is one of many large ones, which sessions get as arrays on their file."""
    large = optimised.is_large and optimised.num_bytes(tensor) > SMALL_BYTES
    return large and bool(numpy_type(tensor.data_type))


def _declared(tensor: Any) -> Any:
    """The initializer without data, as onnxruntime wants those it is handed from outside."""
    from onnx import StringStringEntryProto, TensorProto

    made = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    made.data_location = TensorProto.EXTERNAL
    made.external_data.append(StringStringEntryProto(key="location", value="shared"))
    return made


def _info(name: str, value: Value | None) -> Any:
    import onnx

    if value is None:
        return onnx.ValueInfoProto(name=name)
    return onnx.ValueInfoProto(name=name, type=type_proto(value.type, value.shape))
