"""Names for ONNX nodes: unique, readable and the same on every run.

ONNX leaves node names optional and does not ask that they differ. The first node with a name keeps
it; a repeated name gets a number, a missing one becomes "Conv_y" from kind and first output.
"""

import hashlib
from collections.abc import Sequence

import onnx

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
