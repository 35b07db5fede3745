"""The words on nodes and edges, made from a file's own names without trusting them."""

import re

from placement.core.formatting import counted
from placement.core.formatting import flops as flops_of
from placement.core.formatting import num_bytes as byte_count
from placement.core.graph import Graph, Op, Tensor

UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
MAX_TITLE, MAX_SUBTITLE = 160, 24


def shortened(text: str, most: int) -> str:
    """One line of at most `most` characters; the middle gives way, ends tell names apart."""
    text = UNPRINTABLE.sub(" ", text)
    if len(text) <= most:
        return text
    head = (most - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}"


def untagged(text: str) -> str:
    """Text without angle brackets: harmless even where a library takes titles for HTML."""
    return text.replace("<", "‹").replace(">", "›")


def shape_text(tensor: Tensor) -> str:
    return "×".join(map(str, tensor.shape)) if tensor.shape else ""


def op_subtitle(op: Op, called: str, output: Tensor | None) -> str:
    """The second line of an op: the end of what it is called, and its output's shape where its
    name in the file says nothing and there is room."""
    leaf = called.rstrip("/").rsplit("/", 1)[-1].strip() or called
    shape = shape_text(output) if output is not None else ""
    if not shape or (called == op.name and leaf != op.kind):
        return shortened(leaf, MAX_SUBTITLE)
    said = shape if _bare(leaf) == _bare(op.kind) else f"{leaf}, {shape}"
    return said if len(said) <= MAX_SUBTITLE else shortened(leaf, MAX_SUBTITLE)


def _bare(words: str) -> str:
    """The letters of a type, however it is written: "BatchNormalization", "batch normalization"."""
    return re.sub(r"[\W_]", "", words).casefold()


def op_title(op: Op, called: str, output: Tensor | None) -> str:
    """Lines of a tooltip; plain text."""
    lines = [shortened(called, MAX_TITLE), shortened(op.kind, 60)]
    if called != op.name:
        lines.append(f"{shortened(op.name, MAX_TITLE)} in the file")
    if op.scope:
        lines.append(f"in {shortened(op.scope, MAX_TITLE)}")
    if output is not None:
        lines.append(f"out {shape_text(output) or output.dtype}, {byte_count(output.num_bytes)}")
    work = []
    if op.flops:
        work.append(flops_of(op.flops))
    if op.param_bytes:
        work.append(f"weights {byte_count(op.param_bytes)}")
    if op.state_bytes:
        work.append(f"cache {byte_count(op.state_bytes)}")
    if work:
        lines.append(", ".join(work))
    return untagged("\n".join(lines))


def group_title(path: str, num_ops: int, alike: int, flops: float, param_bytes: int) -> str:
    lines = [shortened(path, MAX_TITLE), counted(num_ops, "op")]
    if alike > 1:
        lines[-1] += f", one of {alike} alike"
    lines.append(f"{flops_of(flops)}, weights {byte_count(param_bytes)}")
    return untagged("\n".join(lines))


def flow_title(num_tensors: int, num_bytes: int, largest: str) -> str:
    if num_tensors == 1:
        return untagged(f"{shortened(largest, 80)}\n{byte_count(num_bytes)}")
    total = f"{counted(num_tensors, 'tensor')}, {byte_count(num_bytes)}"
    return untagged(f"{total}\nlargest {shortened(largest, 80)}")


def largest_outputs(graph: Graph) -> dict[str, Tensor]:
    """Per op the largest tensor it writes, the first of equals."""
    found: dict[str, Tensor] = {}
    for tensor in graph.tensors:
        if tensor.producer is not None:
            known = found.get(tensor.producer)
            if known is None or tensor.num_bytes > known.num_bytes:
                found[tensor.producer] = tensor
    return found
