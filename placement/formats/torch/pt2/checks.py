"""What the CPU kernels of some operators trust, checked before they are called.

Most operators check their arguments themselves. Those here compute addresses from sizes of
several tensors, or from numbers, that nothing compares: a normalisation reads as many weights as
its input has channels, wherever the weights end. Each check is stated from the operator's
definition. What only the content of tensors decides (indices) is checked by the kernels;
operators whose kernels do not are not in the list at all (`allowed.py`).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from placement.formats.torch.pt2.archive import bad

Arguments = Mapping[str, Any]
MAX_INT = 2**40
# Convolutions of steps beyond crash: transposed ones from about 10 000 on.
MAX_STEP = 1024
MAX_WINDOW = 2**31 - 1
# Smoothing takes as many numbers for each that it makes as a factor makes one of.
LEAST_FACTOR = 1e-3
# The multivariate gamma function of an order takes as many numbers for each that it makes.
MAX_ORDER = 1000
# Normalisations over batches that give their statistics too.
BATCH_NORMS = (
    "native_batch_norm",
    "_native_batch_norm_legit",
    "_native_batch_norm_legit_functional",
    "_native_batch_norm_legit_no_training",
    "_batch_norm_with_update",
)
# They take the end of a range, where the largest number means "to the last".
_RANGES = frozenset(["slice", "slice_scatter", "narrow"])


def require_safe(
    target: Any, args: Sequence[Any], kwargs: Mapping[str, Any], *, inside: bool = False
) -> None:
    """`Refused` where a kernel would trust what of these arguments is not so.

    Tensors are fake ones or real. `inside` another operator, the library makes the call.
    """
    name = packet_of(target)
    bound = arguments_of(target, args, kwargs)
    if not inside:
        _require_plain(name, bound, target)
    check = _CHECKS.get(name)
    try:
        fault = "" if check is None else check(bound)
    except (TypeError, AttributeError, IndexError, ValueError):
        fault = "arguments of other kinds than it takes"
    if fault:
        raise bad(f"{target} is given {fault}")


def packet_of(target: Any) -> str:
    """An operator's name without overload; the twin that writes is checked like it."""
    name = str(target.overloadpacket.__name__)
    return name if name.startswith("__") else name.removesuffix("_")


def arguments_of(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Arguments:
    """Every argument of the schema by name, with its default where it is not given."""
    found = {}
    for i, argument in enumerate(target._schema.arguments):
        default = argument.default_value if argument.has_default_value() else None
        found[argument.name] = args[i] if i < len(args) else kwargs.get(argument.name, default)
    return found


def _require_plain(name: str, bound: Arguments, target: Any) -> None:
    for key, value in bound.items():
        for each in value if isinstance(value, list | tuple) else [value]:
            if type(each) is int and abs(each) > MAX_INT and name not in _RANGES:
                raise bad(f"{target} is given {key} {each}, more than {MAX_INT}")
    if type(bound.get("reduction")) is int and not 0 <= bound["reduction"] <= 2:
        raise bad(f"{target} is given reduction {bound['reduction']}")
    if bound.get("pin_memory"):
        raise bad(f"{target} asks for pinned memory")


def _shape(value: Any) -> tuple[int, ...] | None:
    return None if value is None else tuple(int(n) for n in value.shape)


def _channels(bound: Arguments) -> str:
    """Weights and statistics have one entry per channel of the input."""
    value = bound["input"]
    if value.dim() < 2 or value.numel() == 0:
        return f"an input of {list(value.shape)}"
    return _per_channel(bound, int(value.shape[1]))


def _per_channel(bound: Arguments, num_channels: int) -> str:
    for key in ("weight", "bias", "running_mean", "running_var", "save_mean", "save_invstd"):
        shape = _shape(bound.get(key))
        if shape is not None and shape != (num_channels,):
            return f"a {key} of {list(shape)} for {num_channels} channels"
        if shape is not None and not bound[key].is_floating_point():
            return f"a {key} of {bound[key].dtype}"
    return ""


def _group_norm(bound: Arguments) -> str:
    value = bound["input"]
    groups = bound.get("num_groups", bound.get("group"))
    if value.dim() < 2 or value.numel() == 0:
        return f"an input of {list(value.shape)}"
    channels = int(value.shape[1])
    if "HxW" in bound:
        sizes = (int(bound["N"]), int(bound["C"]), int(bound["HxW"]))
        inner = math.prod(int(n) for n in value.shape[2:])
        if sizes != (int(value.shape[0]), channels, inner):
            return f"sizes {list(sizes)} for an input of {list(value.shape)}"
    if groups < 1 or channels % groups:
        return f"{groups} groups for {channels} channels"
    return _per_channel(bound, channels)


def _attention(bound: Arguments) -> str:
    """Queries, keys and values whose sizes fit, and a mask for every pair of them."""
    query, key, value = bound["query"], bound["key"], bound["value"]
    shapes = [_shape(each) or () for each in (query, key, value)]
    if min(map(len, shapes)) < 2 or any(0 in shape for shape in shapes):
        return f"tensors of {shapes}"
    if len({each.dtype for each in (query, key, value)}) != 1 or not query.is_floating_point():
        return f"types {query.dtype}, {key.dtype}, {value.dtype}"
    q, k, v = shapes
    heads_fit = k[:-2] == v[:-2] and (
        _broadcast(q[:-2], k[:-2]) is not None
        or (bool(bound.get("enable_gqa")) and len(q) > 2 and q[-3] % k[-3] == 0)
    )
    if len({len(q), len(k), len(v)}) != 1 or q[-1] != k[-1] or k[-2] != v[-2] or not heads_fit:
        return f"tensors of {shapes}"
    mask = bound.get("attn_mask")
    if mask is not None:
        scores = (*(_broadcast(q[:-2], k[:-2]) or q[:-2]), q[-2], k[-2])
        if _broadcast(scores, _shape(mask) or ()) != scores or 0 in mask.shape:
            return f"a mask of {list(mask.shape)} for {list(scores)} scores"
        if mask.dtype not in (torch.bool, query.dtype):
            return f"a mask of {mask.dtype}"
    return ""


def _flash_attention(bound: Arguments) -> str:
    query, key, value = bound["query"], bound["key"], bound["value"]
    q, k, v = (_shape(each) or () for each in (query, key, value))
    if len(q) != 4 or q[:2] != k[:2] or k[:2] != v[:2] or q[-1] != v[-1]:
        return f"tensors of {[q, k, v]}"
    mask = bound.get("attn_mask")
    if mask is not None and (mask.dim() not in (2, 4) or mask.dtype != query.dtype):
        return f"a mask of {list(mask.shape)}, {mask.dtype}"
    return _attention(bound)


def _broadcast(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...] | None:
    try:
        shape = torch.broadcast_shapes(tuple(one), tuple(other))  # type: ignore[no-untyped-call]
        return tuple(shape)
    except RuntimeError:
        return None


def _window(bound: Arguments) -> str:
    """Kernels, steps and holes are positive, borders are not negative."""
    value = bound.get("input", bound.get("self"))
    if value.numel() == 0:
        return f"an input of {list(value.shape)}"
    weight = bound.get("weight")
    if weight is not None and weight.numel() == 0:
        return f"a weight of {list(weight.shape)}"
    for key, least in _LEAST.items():
        given = bound.get(key)
        numbers = given if isinstance(given, list | tuple) else [given]
        most = MAX_STEP if weight is not None else MAX_WINDOW
        if any(type(n) is int and not least <= n <= most for n in numbers):
            return f"{key} {list(numbers)[:8]}"
    return ""


_LEAST = {
    "kernel_size": 1,
    "stride": 1,
    "dilation": 1,
    "groups": 1,
    "padding": 0,
    "output_padding": 0,
    "output_size": 1,
}


def _scaled(bound: Arguments) -> str:
    """A factor that is given must be that between the sizes: positions are computed from it."""
    value = bound.get("input", bound.get("self"))
    if value.numel() == 0:
        return f"an input of {list(value.shape)}"
    sizes = bound.get("output_size")
    given = bound.get("scale_factors")
    if given is not None:
        fine = all(LEAST_FACTOR <= factor <= 1 / LEAST_FACTOR for factor in given) and sizes is None
        return "" if fine and len(given) == value.dim() - 2 else f"factors {list(given)[:4]}"
    factors = [bound[key] for key in _SCALES if bound.get(key) is not None]
    if sizes is None or len(sizes) != value.dim() - 2 or any(n < 1 for n in sizes):
        return f"sizes {None if sizes is None else list(sizes)[:4]}"
    if not factors:
        return ""
    if not all(LEAST_FACTOR <= factor <= 1 / LEAST_FACTOR for factor in factors):
        return f"factors {factors}"
    pairs = zip(factors, value.shape[2:], sizes, strict=False)
    fits = len(factors) == len(sizes) and all(abs(f * n - m) <= 1 for f, n, m in pairs)
    return "" if fits else f"factors {factors} for {list(value.shape)} to {list(sizes)}"


_SCALES = ("scales", "scales_d", "scales_h", "scales_w")


def _weight_norm(bound: Arguments) -> str:
    """One length for each slice of the weight along its first or last dimension."""
    weight, length, dim = bound["v"], bound["g"], bound["dim"]
    if weight.dim() < 1 or dim not in (0, weight.dim() - 1) or weight.numel() == 0:
        return f"dimension {dim} of {list(weight.shape)}"
    expected = [int(n) if i == dim else 1 for i, n in enumerate(weight.shape)]
    if list(length.shape) != expected or length.dtype != weight.dtype:
        return f"lengths of {list(length.shape)} for {list(weight.shape)}"
    return ""


def _recurrent(num_gates: int) -> Callable[[Arguments], str]:
    """States and weights of a recurrent layer: for each layer and direction those it multiplies."""

    def check(bound: Arguments) -> str:
        value, params = bound["input"], list(bound["params"])
        states = bound["hx"] if isinstance(bound["hx"], list | tuple) else [bound["hx"]]
        layers, ways = bound["num_layers"], 2 if bound["bidirectional"] else 1
        biases = bound["has_biases"]
        per_way = 4 if biases else 2
        is_projected = num_gates == 4 and len(params) == layers * ways * (per_way + 1)
        per_way += is_projected
        if value.dim() != 3 or value.numel() == 0 or not 1 <= layers <= 1000:
            return f"an input of {list(value.shape)} for {layers} layers"
        if len(states) != (2 if num_gates == 4 else 1) or len(params) != layers * ways * per_way:
            return f"{len(states)} states and {len(params)} weights for {layers} layers"
        batch = value.shape[0 if bound["batch_first"] else 1]
        out = states[0].shape[-1] if states[0].dim() == 3 else 0
        hidden = states[-1].shape[-1] if states[-1].dim() == 3 else 0
        shapes = [(layers * ways, batch, out), (layers * ways, batch, hidden)]
        expected: list[tuple[int, ...]] = [*shapes[: len(states)]]
        for layer in range(layers):
            wide = value.shape[2] if layer == 0 else out * ways
            gates = num_gates * hidden
            one: list[tuple[int, ...]] = [
                (gates, wide),
                (gates, out),
                *[(gates,)] * (2 if biases else 0),
            ]
            expected += (one + ([(out, hidden)] if is_projected else [])) * ways
        found = [_shape(each) for each in (*states, *params)]
        same = {each.dtype for each in (value, *states, *params)} == {value.dtype}
        if found != expected or hidden < 1 or out < 1 or not same:
            return "states or weights of other sizes than its layers have"
        return ""

    return check


def _modes(**most: int) -> Callable[[Arguments], str]:
    """Numbers that stand for a choice."""

    def check(bound: Arguments) -> str:
        for key, largest in most.items():
            if bound.get(key) is not None and not 0 <= bound[key] <= largest:
                return f"{key} {bound[key]}"
        return ""

    return check


def _none(*keys: str) -> Callable[[Arguments], str]:
    """Arguments that must not be given, for they are trusted."""

    def check(bound: Arguments) -> str:
        return next((f"a {key}" for key in keys if bound.get(key) is not None), "")

    return check


def _transformed(bound: Arguments) -> str:
    """Each dimension once, counted from the front, as those that call it have made sure."""
    value, dims = bound["self"], list(bound["dim"])
    if len(set(dims)) < len(dims) or not set(dims) <= set(range(value.dim())):
        return f"dimensions {dims} of {list(value.shape)}"
    return _modes(normalization=2)(bound)


def _to_real(bound: Arguments) -> str:
    """As many frequencies as the signal's length has."""
    value, dims, length = bound["self"], list(bound["dim"]), bound["last_dim_size"]
    fault = _transformed(bound)
    if fault or not dims or value.numel() == 0:
        return fault or f"dimensions {dims} of {list(value.shape)}"
    if length < 1 or int(value.shape[dims[-1]]) != length // 2 + 1:
        return f"{length} values for {int(value.shape[dims[-1]])} frequencies"
    return ""


def _alike(first: str, second: str) -> Callable[[Arguments], str]:
    """Two tensors of one type."""

    def check(bound: Arguments) -> str:
        a, b = bound[first], bound[second]
        return "" if a.dtype == b.dtype else f"{first} of {a.dtype} for {second} of {b.dtype}"

    return check


def _not_empty(bound: Arguments) -> str:
    """The kernels leave the shape of an empty tensor as it was."""
    return "" if bound["self"].numel() else f"a tensor of {list(bound['self'].shape)}"


_CHECKS: Mapping[str, Callable[[Arguments], str]] = {
    **dict.fromkeys(
        [
            *BATCH_NORMS,
            "batch_norm",
            "_batch_norm_impl_index",
            "instance_norm",
        ],
        _channels,
    ),
    "group_norm": _group_norm,
    "native_group_norm": _group_norm,
    "scaled_dot_product_attention": _attention,
    "_scaled_dot_product_attention_math": _attention,
    "_scaled_dot_product_flash_attention_for_cpu": _flash_attention,
    **dict.fromkeys(
        [
            *(f"conv{n}d" for n in (1, 2, 3)),
            *(f"conv_transpose{n}d" for n in (1, 2, 3)),
            "convolution",
            *(f"{kind}_pool{n}d" for kind in ("max", "avg") for n in (1, 2, 3)),
            *(f"max_pool{n}d_with_indices" for n in (1, 2, 3)),
            *(f"adaptive_{kind}_pool{n}d" for kind in ("max", "avg") for n in (1, 2, 3)),
            "_adaptive_avg_pool2d",
            "_adaptive_avg_pool3d",
            "im2col",
            "col2im",
        ],
        _window,
    ),
    **dict.fromkeys(
        [
            "upsample_nearest1d",
            "upsample_nearest2d",
            "upsample_nearest3d",
            "_upsample_nearest_exact1d",
            "_upsample_nearest_exact2d",
            "_upsample_nearest_exact3d",
            "upsample_linear1d",
            "upsample_bilinear2d",
            "_upsample_bilinear2d_aa",
            "_upsample_bicubic2d_aa",
            "upsample_bicubic2d",
            "upsample_trilinear3d",
        ],
        _scaled,
    ),
    "_weight_norm": _weight_norm,
    "_weight_norm_interface": _weight_norm,
    "lstm": _recurrent(4),
    "gru": _recurrent(3),
    "rnn_tanh": _recurrent(1),
    "rnn_relu": _recurrent(1),
    "grid_sampler": _modes(interpolation_mode=2, padding_mode=2),
    "grid_sampler_2d": _modes(interpolation_mode=2, padding_mode=2),
    "grid_sampler_3d": _modes(interpolation_mode=2, padding_mode=2),
    "mvlgamma": _modes(p=MAX_ORDER),
    "special_multigammaln": _modes(p=MAX_ORDER),
    "searchsorted": _none("sorter"),
    "pixel_shuffle": _not_empty,
    "pixel_unshuffle": _not_empty,
    "threshold_backward": _alike("grad_output", "self"),
    "_fft_r2c": _transformed,
    "_fft_c2c": _transformed,
    "_fft_c2r": _to_real,
}
