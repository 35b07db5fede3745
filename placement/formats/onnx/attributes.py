"""What a person reads about an ONNX node: attributes, inputs and outputs as short text."""

from collections.abc import Mapping

import onnx

from placement.formats.onnx.names import readable
from placement.formats.onnx.values import UNKNOWN, Value, tensor_value

_KINDS = {number: name for name, number in onnx.AttributeProto.AttributeType.items()}
MAX_TEXT = 200
MAX_ITEMS = 12


def node_attributes(
    node: onnx.NodeProto, values: Mapping[str, Value], extra: tuple[tuple[str, str], ...]
) -> tuple[tuple[str, str], ...]:
    """(key, text) pairs: the node's own attributes by name, then types of inputs and outputs."""
    pairs = [
        (readable(a.name), _short(_text(a))) for a in sorted(node.attribute, key=lambda a: a.name)
    ]
    if node.domain not in ("", "ai.onnx"):
        pairs.append(("domain", _short(readable(node.domain))))
    pairs += extra
    for key, names in (("inputs", node.input), ("outputs", node.output)):
        if names:
            shown = [f"{readable(n)} {values.get(n, UNKNOWN).text()}" if n else "-" for n in names]
            pairs.append((key, _short(_items(shown))))
    return tuple(pairs)


def _text(attribute: onnx.AttributeProto) -> str:
    kind = _KINDS.get(attribute.type, "UNDEFINED")
    if attribute.ref_attr_name:
        return f"from {readable(attribute.ref_attr_name)}"
    if kind == "FLOAT":
        return f"{float(attribute.f):.7g}"
    if kind == "INT":
        return str(attribute.i)
    if kind == "STRING":
        return _string(attribute.s)
    if kind == "FLOATS":
        return _items([f"{f:.7g}" for f in attribute.floats])
    if kind == "INTS":
        return _items([str(i) for i in attribute.ints])
    if kind == "STRINGS":
        return _items([_string(s) for s in attribute.strings[: MAX_ITEMS + 1]])
    if kind == "TENSOR":
        return tensor_value(attribute.t).text()
    if kind in ("GRAPH", "GRAPHS"):
        graphs = [attribute.g] if kind == "GRAPH" else list(attribute.graphs)
        return f"graph of {sum(len(graph.node) for graph in graphs)} nodes"
    return str(kind).lower().replace("_", " ")


def _items(texts: list[str]) -> str:
    shown = ", ".join(texts[:MAX_ITEMS])
    return shown if len(texts) <= MAX_ITEMS else f"{shown}, ... ({len(texts)} in all)"


def _string(data: bytes) -> str:
    return readable(data[: 2 * MAX_TEXT].decode("utf-8", "replace"))


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 3] + "..."
