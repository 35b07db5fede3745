"""What a person reads about an ONNX node: name, attributes, inputs and outputs as short text.

ONNX leaves node names optional and does not ask that they differ. The first node with a name keeps
it; a repeated name gets a number, a missing one becomes "Conv_y" from kind and first output.
"""

import hashlib
from collections.abc import Mapping, Sequence

import onnx

from placement.formats.onnx.values import UNKNOWN, Value, tensor_value

MAX_NAME = 160


def unique_names(nodes: Sequence[onnx.NodeProto]) -> list[str]:
    """One name per node, in the order of the nodes."""
    wanted = [readable(node.name) or _derived(node) for node in nodes]
    taken = {name for name, node in zip(wanted, nodes, strict=True) if node.name}
    names, used = [], set()
    numbers: dict[str, int] = {}
    for name, node in zip(wanted, nodes, strict=True):
        unique = name
        if name in used or (name in taken and not node.name):
            number = numbers.get(name, 1)
            while unique in used or unique in taken:
                number += 1
                unique = f"{name}_{number}"
            numbers[name] = number
        used.add(unique)
        names.append(unique)
    return names


def readable(name: str) -> str:
    """The name without control characters; a very long one is cut and closed with its hash."""
    if len(name) <= MAX_NAME and name.isprintable():
        return name
    clean = "".join(c if c.isprintable() else "\ufffd" for c in name[: MAX_NAME * 4])
    if len(clean) <= MAX_NAME and len(name) == len(clean):
        return clean
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return f"{clean[: MAX_NAME - 13]}~{digest}"


def _derived(node: onnx.NodeProto) -> str:
    kind = readable(node.op_type) or "op"
    first = next((output for output in node.output if output), "")
    return f"{kind}_{readable(first)}" if first else kind


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
