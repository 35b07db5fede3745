"""Python values as OrtValues, also those that onnxruntime offers no direct way to make.

Strings, sequences and optionals come out of a session of one op.
"""

from typing import Any

import numpy as np
import onnxruntime as ort
from onnx import NodeProto, ValueInfoProto, helper, numpy_helper

from profiling.backends import _ort_sessions as sessions
from profiling.backends._ort_types import numpy_dtype, type_proto


def ort_value(item: Any, type_text: str) -> Any:
    """An array, list of arrays or None as an OrtValue of onnxruntime's type `type_text`."""
    if type_text.startswith("tensor("):
        return _tensor(np.asarray(item), type_text)
    optional = type_text.startswith("optional(")
    inner = type_text[9:-1] if optional else type_text
    if item is None:
        return _result(
            [helper.make_node("Optional", [], ["out"], type=type_proto(inner))], {}, type_text
        )
    nodes, feeds, last = _element(item, inner)
    if optional:
        nodes.append(helper.make_node("Optional", [last], ["optional"]))
        last = "optional"
    nodes.append(helper.make_node("Identity", [last], ["out"]))
    return _result(nodes, feeds, type_text)


def _tensor(array: np.ndarray[Any, Any], type_text: str) -> Any:
    if type_text == "tensor(string)":
        text = numpy_helper.from_array(array.astype(object), "text")
        return _result([helper.make_node("Constant", [], ["out"], value=text)], {}, type_text)
    if numpy_dtype(type_text) is not None:
        return ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array).reshape(array.shape))
    number = type_proto(type_text).tensor_type.elem_type
    plain = np.dtype(f"u{array.dtype.itemsize}")
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(plain), number)


def _element(item: Any, inner: str) -> tuple[list[NodeProto], dict[str, tuple[str, Any]], str]:
    """Nodes and feeds (type and value) that make what an optional or a sequence holds."""
    if not inner.startswith("seq("):
        return [], {"x0": (inner, _tensor(np.asarray(item), inner))}, "x0"
    element = inner[4:-1]
    feeds = {f"x{i}": (element, _tensor(np.asarray(one), element)) for i, one in enumerate(item)}
    if feeds:
        return [helper.make_node("SequenceConstruct", list(feeds), ["sequence"])], feeds, "sequence"
    number = type_proto(element).tensor_type.elem_type
    return [helper.make_node("SequenceEmpty", [], ["sequence"], dtype=number)], {}, "sequence"


def _result(nodes: list[NodeProto], feeds: dict[str, tuple[str, Any]], type_text: str) -> Any:
    inputs = [ValueInfoProto(name=n, type=type_proto(kind)) for n, (kind, _) in feeds.items()]
    output = ValueInfoProto(name="out", type=type_proto(type_text))
    graph = helper.make_graph(nodes, "value", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)
    made = sessions.session(model.SerializeToString(), sessions.options(1), [sessions.CPU])
    return made.run_with_ort_values(None, {n: value for n, (_, value) in feeds.items()})[0]
