"""Types of values that ONNX's own inference does not know, as onnxruntime finds them out.

It knows the operators of its own domains, which optimised and quantised models are full of.
"""

import re
from collections.abc import Mapping, Sequence

import onnx
import onnxruntime as ort
from onnx import helper

from placement.formats.onnx.checks.external import external_weights
from placement.formats.onnx.checks.walk import refill

# onnxruntime's words for element types, where they are not ONNX's in small letters.
_ELEMENTS = {"float": "FLOAT", "double": "DOUBLE"}


def runtime_types(
    model: onnx.ModelProto, values: Sequence[str], name: str
) -> Mapping[str, onnx.ValueInfoProto]:
    """The types of these values: the model is opened with them as outputs.

    ValueError where onnxruntime cannot open it or names a type that a border cannot have.
    """
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    _without_data(probe.graph)
    declared = {value.name for value in probe.graph.output}
    probe.graph.output.extend(onnx.ValueInfoProto(name=v) for v in values if v not in declared)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = ort.InferenceSession(
            probe.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime raises a dozen kinds without a common base
        first = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise ValueError(
            f"The type of value {values[0][:80]!r} of {name!r} is not known, and onnxruntime cannot"
            f" tell it: {first}"
        ) from None
    return {
        output.name: helper.make_value_info(output.name, _type(output.type, output.name))
        for output in session.get_outputs()
        if output.name in values
    }


def _without_data(graph: onnx.GraphProto) -> None:
    """Let weights whose data lies outside be inputs, in place: their types are all that counts."""
    inside = [t for t in graph.initializer if t.data_location != onnx.TensorProto.EXTERNAL]
    for tensor in external_weights(graph):
        graph.input.append(
            helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        )
    if len(inside) < len(graph.initializer):
        refill(graph.initializer, inside)


def _type(text: str, value: str) -> onnx.TypeProto:
    """`seq(tensor(float))` as a type, of any shape."""
    found = re.fullmatch(r"(tensor|seq|optional)\((.*)\)", text)
    if found is None:
        raise ValueError(f"Value {value[:80]!r} is a {text}, which cannot go from part to part.")
    kind, inner = found.groups()
    if kind == "tensor":
        number = onnx.TensorProto.DataType.Value(_ELEMENTS.get(inner, inner.upper()))
        return helper.make_tensor_type_proto(number, None)
    make = helper.make_sequence_type_proto if kind == "seq" else helper.make_optional_type_proto
    return make(_type(inner, value))
