"""Which inputs of a PyTorch program number the rows of something: tokens, classes, positions."""

from torch import fx

from placement.formats.torch.program import TorchProgram

# Ops that hand their first argument on with every number in it unchanged.
_THROUGH = (
    "view", "_unsafe_view", "reshape", "unsqueeze", "squeeze", "slice", "select", "expand", "clone",
    "alias", "detach", "flatten", "contiguous", "to", "_to_copy", "permute", "transpose",
    "ravel", "reshape_as", "view_as", "unflatten", "swapaxes", "swapdims", "movedim", "moveaxis",
    "atleast_1d", "atleast_2d", "atleast_3d", "t", "mT", "narrow", "flip",
)  # fmt: skip
# By op: which argument holds numbers of rows, and which argument, along which axis, has the rows.
_ROWS = {
    "embedding": (1, 0, 0),
    "nll_loss": (1, 0, 1),
    "nll_loss_forward": (1, 0, 1),
    "nll_loss_nd": (1, 0, 1),
    "cross_entropy_loss": (1, 0, 1),
    "index_select": (2, 0, None),
    "gather": (2, 0, None),
}


def row_limits(program: TorchProgram) -> dict[str, int]:
    """For inputs that number rows of something: the smallest number of rows."""
    origin = {name: name for name in program.inputs}
    limits: dict[str, int] = {}
    for node in program.kernels:
        kind = getattr(getattr(node.target, "overloadpacket", None), "__name__", "")
        first = node.args[0] if node.args else None
        if kind in _THROUGH and isinstance(first, fx.Node) and first.name in origin:
            origin[node.name] = origin[first.name]
        at, of, axis = _ROWS.get(kind, (0, 0, None))
        if kind in _ROWS and len(node.args) > at and isinstance(node.args[at], fx.Node):
            index, rows = node.args[at], node.args[of]
            if index.name in origin and isinstance(rows, fx.Node):
                axis = node.args[1] if axis is None else axis
                size = int(rows.meta["val"].shape[axis])
                name = origin[index.name]
                limits[name] = min(size, limits.get(name, size))
    return limits
