"""Which operators a file may call: those that compute tensors from tensors within their bounds.

The library has operators that trust their arguments (sparse tensors with unchecked indices), open
files or change memory that others share. A file is not to be trusted, so it may call the core
operators, those that the library itself writes in terms of others, and the ones listed here.
"""

import re
from operator import getitem
from typing import Any

import torch
from torch import fx

# What exports emit besides; each checks its arguments.
_LISTED = frozenset(
    [
        "_assert_tensor_metadata",
        "_batch_norm_with_update",
        "_cdist_forward",
        "_log_softmax",
        "_native_batch_norm_legit",
        "_native_batch_norm_legit_functional",
        "_native_batch_norm_legit_no_training",
        "_safe_softmax",
        "_scaled_dot_product_attention_math",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_softmax",
        "_thnn_fused_lstm_cell",
        "_thnn_fused_gru_cell",
        "_to_copy",
        "_unsafe_view",
        "_weight_norm_interface",
        "adaptive_avg_pool2d",
        "adaptive_max_pool2d",
        "addmv",
        "addr",
        "arange",
        "baddbmm",
        "bernoulli",
        "bucketize",
        "channel_shuffle",
        "cummax",
        "cummin",
        "cumprod",
        "detach",
        "dot",
        "dropout",
        "exponential",
        "eye",
        "flip",
        "full_like",
        "gelu",
        "glu",
        "gru",
        "hann_window",
        "index_add",
        "index_copy",
        "index_fill",
        "isin",
        "kthvalue",
        "lerp",
        "lift_fresh_copy",
        "linspace",
        "logspace",
        "lstm",
        "masked_fill",
        "masked_scatter",
        "max_unpool2d",
        "median",
        "mkldnn_rnn_layer",
        "mode",
        "mse_loss",
        "multinomial",
        "mv",
        "nan_to_num",
        "native_batch_norm",
        "new_empty",
        "new_full",
        "new_ones",
        "new_zeros",
        "nll_loss2d_forward",
        "nll_loss_forward",
        "normal",
        "ones",
        "ones_like",
        "pixel_shuffle",
        "pixel_unshuffle",
        "polar",
        "put",
        "rand",
        "rand_like",
        "randint",
        "randint_like",
        "randn",
        "randn_like",
        "randperm",
        "repeat_interleave",
        "renorm",
        "roll",
        "rot90",
        "rrelu_with_noise",
        "rsub",
        "scalar_tensor",
        "searchsorted",
        "softplus",
        "split",
        "stack",
        "std",
        "std_mean",
        "take",
        "trace",
        "tril",
        "tril_indices",
        "triu",
        "triu_indices",
        "unbind",
        "unfold",
        "unsafe_chunk",
        "unsafe_split",
        "unsafe_split_with_sizes",
        "upsample_bicubic2d",
        "upsample_bilinear2d",
        "upsample_linear1d",
        "upsample_nearest1d",
        "upsample_nearest2d",
        "upsample_nearest3d",
        "var",
        "var_mean",
        "zeros",
        "zeros_like",
    ]
)
_REFUSED = re.compile(
    r"sparse|dense|quant|storage|from_file|from_blob|set_data|resize|manual_seed|record_stream"
    r"|^_?unsafe_(?!view|split)|_unsafe$|^_nested|^_cudnn|^_foreach|^_fused(?!_sdp)|^_linalg_check"
    r"|^set_$|^_make_|^_pack|^_validate"
)


def foreign_call(graph: fx.Graph) -> str:
    """The first function of a graph that a file may not call, empty if there is none."""
    called = (node.target for node in graph.nodes if node.op == "call_function")
    return next((str(t) for t in called if t is not getitem and not is_allowed(t)), "")


def is_allowed(target: Any) -> bool:
    """Whether a file may call this function."""
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
        return False
    name = str(target.overloadpacket.__name__)
    if _REFUSED.search(name):
        return False
    if name in _LISTED or name.removesuffix("_") in _LISTED:
        return True
    if torch.Tag.core in target.tags or torch.Tag.pointwise in target.tags:
        return True
    composite = torch._C._dispatch_has_kernel_for_dispatch_key(
        str(target._name), "CompositeImplicitAutograd"
    )
    return bool(composite) or _core_twin(name)


def _core_twin(name: str) -> bool:
    """Whether this writes in place what a core operator makes anew."""
    packet = getattr(torch.ops.aten, name.removesuffix("_"), None) if name.endswith("_") else None
    overloads = () if packet is None else packet.overloads()
    return any(torch.Tag.core in getattr(packet, overload).tags for overload in overloads)
