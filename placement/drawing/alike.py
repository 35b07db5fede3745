"""Which ops are alike: of one type, one arithmetic, and one shape of what they read and make."""

from placement.core.graph import Graph, Tensor
from placement.drawing.memo import remembered

# Attributes that give the shape of a window: 1x7 and 7x1 read, make and compute as much.
WINDOW = frozenset(
    ("kernel_shape", "kernel_size", "strides", "stride", "pads", "padding", "dilations", "dilation")
)
# Of less than this are the scalars and axes that many ops share and the first of them counts.
LEAST_WEIGHTS_BYTES = 65
Sizes = tuple[tuple[str, tuple[int, ...]], ...]


@remembered(16, key=lambda graph: graph.fingerprint)
def classes_of(graph: Graph) -> tuple[str, ...]:
    """Per op the name of its class: ops are alike whose names are equal.

    What a file does not say, such as the shape of a tensor, tells no ops apart.
    """
    made: dict[str, list[Tensor]] = {op.name: [] for op in graph.ops}
    read: dict[str, list[Tensor]] = {op.name: [] for op in graph.ops}
    for tensor in graph.tensors:
        if tensor.producer is not None:
            made[tensor.producer].append(tensor)
        for name in tensor.consumers:
            read[name].append(tensor)
    known: dict[tuple[object, ...], int] = {}
    found = []
    for op in graph.ops:
        weights = op.param_bytes if op.param_bytes >= LEAST_WEIGHTS_BYTES else 0
        window = tuple(pair for pair in op.attributes if pair[0] in WINDOW)
        sizes = _sizes(read[op.name]), _sizes(made[op.name])
        about = (op.kind, op.flops, weights, op.state_bytes, window, *sizes)
        found.append(f"{op.kind} {known.setdefault(about, len(known))}")
    return tuple(found)


def _sizes(tensors: list[Tensor]) -> Sizes:
    """Types and shapes in an order that does not depend on the tensors' names."""
    return tuple(sorted((t.dtype, t.shape) for t in tensors if t.shape is not None))
