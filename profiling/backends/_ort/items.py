"""Python values as OrtValues, also those that onnxruntime offers no direct way to make.

Strings, small floats and integers, sequences and optionals come out of a session of one op.
"""

import ctypes
from typing import Any

import numpy as np
import onnxruntime as ort
from onnx import NodeProto, ValueInfoProto, helper, numpy_helper

from profiling.backends._ort import sessions
from profiling.backends._ort.types import numpy_dtype, type_proto


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
    packed = numpy_helper.from_array(array, "packed")
    return _result([helper.make_node("Constant", [], ["out"], value=packed)], {}, type_text)


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
    made = _session(nodes, inputs, [output])
    return made.run_with_ort_values(None, {n: value for n, (_, value) in feeds.items()})[0]


def python_value(value: Any) -> Any:
    """An OrtValue as an array, a list of arrays for a sequence, or None for an absent optional."""
    if not value.has_value():
        return None
    if value.is_tensor():
        return _array(value)
    element = value.data_type().removeprefix("seq(")[:-1]
    inputs = [
        ValueInfoProto(name="sequence", type=type_proto(f"seq({element})")),
        ValueInfoProto(name="at", type=type_proto("tensor(int64)", ())),
    ]
    outputs = [
        ValueInfoProto(name="length", type=type_proto("tensor(int64)", ())),
        ValueInfoProto(name="element", type=type_proto(element)),
    ]
    length = helper.make_node("SequenceLength", ["sequence"], ["length"])
    at = helper.make_node("SequenceAt", ["sequence", "at"], ["element"])
    counter = _session([length], inputs[:1], outputs[:1])
    taker = _session([at], inputs, outputs[1:])
    size = int(counter.run_with_ort_values(None, {"sequence": value})[0].numpy())
    indices = (ort.OrtValue.ortvalue_from_numpy(np.array(i)) for i in range(size))
    taken = (taker.run_with_ort_values(None, {"sequence": value, "at": i})[0] for i in indices)
    return [_array(one) for one in taken]


def python_view(value: Any) -> Any:
    """The same, of numbers in the memory of the OrtValue itself where numpy knows their type."""
    if value.has_value() and value.is_tensor() and numpy_dtype(value.data_type()) is not None:
        return value.numpy()
    return python_value(value)


def _array(value: Any) -> np.ndarray[Any, Any]:
    """A tensor as an array; of types that numpy lacks, the bytes."""
    text = value.data_type()
    if text == "tensor(string)" or numpy_dtype(text) is not None:
        return np.array(value.numpy())
    size = value.tensor_size_in_bytes()
    raw = (ctypes.c_uint8 * size).from_address(value.data_ptr()) if size else b""
    return np.frombuffer(raw, dtype=np.uint8).copy()


def _session(
    nodes: list[NodeProto], inputs: list[ValueInfoProto], outputs: list[ValueInfoProto]
) -> Any:
    graph = helper.make_graph(nodes, "value", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=8)
    return sessions.session(model.SerializeToString(), sessions.options(1), [sessions.CPU])


def python_outputs(
    made: Any, names: list[str], values: list[Any], feeds: dict[str, Any]
) -> dict[str, Any]:
    """Outputs of a session that has run, as Python values.

    Dictionaries have no other way out than an ordinary run, on `feeds` (OrtValues), once more.
    """
    maps = [o.name for o in made.get_outputs() if o.name in names and "map(" in o.type]
    found = {n: None if n in maps else python_value(v) for n, v in zip(names, values, strict=True)}
    if maps:
        given = {name: python_value(value) for name, value in feeds.items()}
        found.update(zip(maps, made.run(maps, given), strict=True))
    return found
