"""Which ops are alike: of one type, one arithmetic, and one shape of what they read and make."""

from collections.abc import Iterator

from placement.core.graph import Graph, Tensor
from placement.drawing.memo import remembered

# Attributes that give the shape of a window: 1x7 and 7x1 read, make and compute as much.
WINDOW = frozenset(
    ("kernel_shape", "kernel_size", "strides", "stride", "pads", "padding", "dilations", "dilation")
)


@remembered(16, key=lambda graph: graph.fingerprint)
def classes_of(graph: Graph) -> tuple[str, ...]:
    """Per op the name of its class: ops are alike whose names are equal.

    What a file does not say, such as the shape of a tensor, tells no ops apart. Weights that
    several ops read are counted at the first of them: where those with weights all have as many,
    the others, alike in all else, read the same ones.
    """
    shapes = list(_shapes(graph))
    weights: dict[object, set[int]] = {}
    for op, shape in zip(graph.ops, shapes, strict=True):
        weights.setdefault(shape, set()).add(op.param_bytes)
    known: dict[object, int] = {}
    found = []
    for op, shape in zip(graph.ops, shapes, strict=True):
        others = weights[shape] - {0}
        own = max(others) if len(others) == 1 else op.param_bytes
        found.append(f"{op.kind} {known.setdefault((shape, own), len(known))}")
    return tuple(found)


def _shapes(graph: Graph) -> Iterator[tuple[object, ...]]:
    """Of every op all but its weights; tensors in an order that does not depend on their names."""
    made: dict[str, list[Tensor]] = {op.name: [] for op in graph.ops}
    read: dict[str, list[Tensor]] = {op.name: [] for op in graph.ops}
    for tensor in graph.tensors:
        if tensor.producer is not None:
            made[tensor.producer].append(tensor)
        for name in tensor.consumers:
            read[name].append(tensor)
    for op in graph.ops:
        window = tuple(pair for pair in op.attributes if pair[0] in WINDOW)
        sizes = (
            tuple(sorted((t.dtype, t.shape) for t in tensors if t.shape is not None))
            for tensors in (read[op.name], made[op.name])
        )
        yield (op.kind, op.flops, op.state_bytes, window, *sizes)
