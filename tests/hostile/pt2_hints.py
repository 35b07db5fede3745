"""Valid arguments of operators, by operator and by name, where the usual ones do not fit."""

import torch

from tests.hostile.pt2_tensors import BOOL, INT, Spec

X, X3, X4, X5 = (Spec((3, 4)), Spec((2, 4, 6)), Spec((2, 4, 6, 6)), Spec((1, 4, 5, 5, 5)))
_INDEX = Spec((3, 4), INT, "index")
_SIX = Spec((6,), INT, "index")


def vector(*sizes):
    return Spec(sizes)


_NORM = {
    "weight": vector(4),
    "bias": vector(4),
    "running_mean": vector(4),
    "running_var": vector(4),
}
_ATTENTION = {key: Spec((2, 2, 5, 8)) for key in ("query", "key", "value")}
_POOL1 = {"self": X3, "input": X3, "kernel_size": [2], "stride": [2], "padding": [0]}
_POOL2 = {"self": X4, "input": X4, "kernel_size": [2, 2], "stride": [2, 2], "padding": [0, 0]}
_POOL3 = {"self": X5, "input": X5, "kernel_size": [2] * 3, "stride": [2] * 3, "padding": [0] * 3}


def _conv(n, transposed=False):
    sizes = (4,) * 2 + (3,) * n
    value = (X3, X4, X5)[n - 1]
    return {"input": value, "weight": Spec(sizes), "bias": vector(4), "stride": [1] * n,
            "padding": [1] * n, "dilation": [1] * n, "groups": 1, "output_padding": [0] * n,
            "transposed": transposed}  # fmt: skip


def _recurrent(gates):
    one = [Spec((gates * 5, 4)), Spec((gates * 5, 5)), vector(gates * 5), vector(gates * 5)]
    state = Spec((1, 2, 5))
    return {"input": Spec((3, 2, 4)), "hx": [state, state] if gates == 4 else state,
            "params": one, "has_biases": True, "num_layers": 1, "dropout": 0.0, "train": False,
            "bidirectional": False, "batch_first": False}  # fmt: skip


def _cell(gates):
    return {"input": Spec((3, 4)), "hx": [Spec((3, 5))] * 2 if gates == 4 else Spec((3, 5)),
            "w_ih": Spec((gates * 5, 4)), "w_hh": Spec((gates * 5, 5)), "b_ih": vector(gates * 5),
            "b_hh": vector(gates * 5)}  # fmt: skip


_SQUARE = Spec((4, 4))
_COMPLEX = Spec((3, 4), torch.complex64)
# Arguments that the usual ones below do not fit, by operator without overload; last match counts.
HINTS = {
    **{
        key: {"input": X4, "use_input_stats": True, **_NORM}
        for key in [
            "batch_norm",
            "native_batch_norm",
            "_native_batch_norm_legit",
            "_batch_norm_with_update",
            "_native_batch_norm_legit_functional",
            "_native_batch_norm_legit_no_training",
            "instance_norm",
        ]
    },
    "group_norm": {"input": X4, "num_groups": 2, **_NORM},
    "native_group_norm": {"input": X4, "N": 2, "C": 4, "HxW": 36, "group": 2, **_NORM},
    **{
        key: {"input": X, "normalized_shape": [4], **_NORM}
        for key in ["layer_norm", "native_layer_norm", "rms_norm", "_fused_rms_norm"]
    },
    **{
        key: {**_ATTENTION, "attn_mask": None, "dropout_p": 0.0, "dropout_mask": None}
        for key in [
            "scaled_dot_product_attention",
            "_scaled_dot_product_attention_math",
            "_scaled_dot_product_flash_attention_for_cpu",
        ]
    },
    "convolution": _conv(2),
    "conv1d": _conv(1),
    "conv2d": _conv(2),
    "conv3d": _conv(3),
    "conv_transpose1d": _conv(1),
    "conv_transpose2d": _conv(2),
    "conv_transpose3d": _conv(3),
    **{f"{kind}_pool1d{end}": _POOL1 for kind in ("max", "avg") for end in ("", "_with_indices")},
    **{f"{kind}_pool2d{end}": _POOL2 for kind in ("max", "avg") for end in ("", "_with_indices")},
    **{f"{kind}_pool3d{end}": _POOL3 for kind in ("max", "avg") for end in ("", "_with_indices")},
    **{
        f"{start}adaptive_{kind}_pool1d": {"self": X3, "output_size": [3]}
        for kind in ("avg", "max")
        for start in ("", "_")
    },
    **{
        f"{start}adaptive_{kind}_pool2d": {"self": X4, "output_size": [3, 2]}
        for kind in ("avg", "max")
        for start in ("", "_")
    },
    **{
        f"{start}adaptive_{kind}_pool3d": {"self": X5, "output_size": [3, 2, 2]}
        for kind in ("avg", "max")
        for start in ("", "_")
    },
    **{
        key: {"input": X3, "self": X3, "output_size": [12], "scales": 2.0}
        for key in ["upsample_linear1d", "upsample_nearest1d", "_upsample_nearest_exact1d"]
    },
    **{
        key: {"input": X4, "self": X4, "output_size": [12, 12], "scales_h": 2.0, "scales_w": 2.0}
        for key in [
            "upsample_bilinear2d",
            "upsample_nearest2d",
            "upsample_bicubic2d",
            "_upsample_bilinear2d_aa",
            "_upsample_bicubic2d_aa",
            "_upsample_nearest_exact2d",
        ]
    },
    **{
        key: {
            "input": X5,
            "self": X5,
            "output_size": [10] * 3,
            "scales_d": 2.0,
            "scales_h": 2.0,
            "scales_w": 2.0,
        }
        for key in ["upsample_trilinear3d", "upsample_nearest3d", "_upsample_nearest_exact3d"]
    },
    "lstm": _recurrent(4),
    "gru": _recurrent(3),
    "rnn_tanh": _recurrent(1),
    "rnn_relu": _recurrent(1),
    "lstm_cell": _cell(4),
    "gru_cell": _cell(3),
    "rnn_tanh_cell": _cell(1),
    "rnn_relu_cell": _cell(1),
    **{
        key: {"v": X, "g": Spec((3, 1)), "dim": 0}
        for key in ["_weight_norm", "_weight_norm_interface"]
    },
    **{key: {"self": X, "mat2": Spec((4, 5))} for key in ["mm", "_int_mm"]},
    "bmm": {"self": X3, "mat2": Spec((2, 6, 3))},
    "addmm": {"self": Spec((3, 5)), "mat1": X, "mat2": Spec((4, 5))},
    "addbmm": {"self": Spec((4, 3)), "batch1": X3, "batch2": Spec((2, 6, 3))},
    "baddbmm": {"self": Spec((2, 4, 3)), "batch1": X3, "batch2": Spec((2, 6, 3))},
    "addmv": {"self": vector(3), "mat": X, "vec": vector(4)},
    "addr": {"self": X, "vec1": vector(3), "vec2": vector(4)},
    "mv": {"self": X, "vec": vector(4)},
    **{
        key: {"self": vector(4), "tensor": vector(4), "other": vector(4)} for key in ["dot", "vdot"]
    },
    **{key: {"self": vector(3), "vec2": vector(4)} for key in ["outer", "ger"]},
    "matmul": {"self": X, "other": Spec((4, 5))},
    "linear": {"input": X, "weight": Spec((5, 4)), "bias": vector(5)},
    "bilinear": {"input1": X, "input2": X, "weight": Spec((5, 4, 4)), "bias": vector(5)},
    "_trilinear": {
        "i1": X3,
        "i2": X3,
        "i3": X3,
        "expand1": [],
        "expand2": [],
        "expand3": [],
        "sumdim": [0],
    },
    "einsum": {"equation": "ij,jk->ik", "tensors": [X, Spec((4, 5))], "path": None},
    "tensordot": {"self": X, "other": X, "dims_self": [0, 1], "dims_other": [0, 1]},
    "linalg_multi_dot": {"tensors": [X, Spec((4, 5))]},
    "chain_matmul": {"matrices": [X, Spec((4, 5))]},
    **{
        key: {"self": Spec((4, 3)), "other": Spec((4, 3)), "dim": 1}
        for key in ["linalg_cross", "cross"]
    },
    **{
        key: {"x1": X, "x2": Spec((5, 4)), "p": 2.0, "compute_mode": 0}
        for key in ["cdist", "_cdist_forward", "_euclidean_dist"]
    },
    "embedding": {
        "weight": Spec((5, 4)),
        "indices": _INDEX,
        "padding_idx": -1,
        "scale_grad_by_freq": False,
        "sparse": False,
    },
    "index_select": {"index": _SIX},
    **{
        key: {"index": _INDEX, "indices": _INDEX, "sparse_grad": False}
        for key in ["gather", "take_along_dim"]
    },
    **{
        key: {
            "index": Spec((3,), INT, "zero"),
            "source": X,
            "dim": 0,
            "value": Spec(()),
            "reduce": "mean",
        }
        for key in ["index_add", "index_copy", "index_fill", "index_reduce"]
    },
    "index_copy": {"index": Spec((3,), INT, "index"), "source": X, "dim": 0},
    **{
        key: {"index": _INDEX, "src": X, "reduce": "sum"}
        for key in ["scatter", "scatter_add", "scatter_reduce"]
    },
    "index": {"indices": [Spec((3,), INT, "index"), None]},
    **{
        key: {"indices": [_SIX, _SIX], "values": Spec((6,))}
        for key in ["index_put", "_unsafe_index_put"]
    },
    "_unsafe_index": {"indices": [Spec((3,), INT, "index"), None]},
    "take": {"index": _SIX},
    "put": {"index": _SIX, "source": Spec((6,))},
    "masked_scatter": {"mask": Spec((3, 4), BOOL), "source": X},
    "one_hot": {"self": _SIX, "num_classes": 4},
    **{
        name: {
            "input": X4,
            "grid": Spec((2, 3, 3, 2)),
            "interpolation_mode": 0,
            "padding_mode": 0,
            "align_corners": False,
        }
        for name in ("grid_sampler", "grid_sampler_2d")
    },
    "grid_sampler_3d": {
        "input": X5,
        "grid": Spec((1, 3, 3, 3, 3)),
        "interpolation_mode": 0,
        "padding_mode": 0,
        "align_corners": False,
    },
    "affine_grid_generator": {"theta": Spec((2, 2, 3)), "size": [2, 1, 4, 4]},
    "cosine_embedding_loss": {"target": Spec((3,))},
    **{
        key: {
            "target": Spec((3,), INT, "index"),
            "weight": vector(4),
            "reduction": 1,
            "ignore_index": -100,
        }
        for key in ["nll_loss", "nll_loss_nd", "nll_loss_forward", "multi_margin_loss"]
    },
    "cross_entropy_loss": {"target": Spec((3,), INT, "index"), "weight": vector(4)},
    **{
        key: {
            "self": X4,
            "target": Spec((2, 6, 6), INT, "index"),
            "weight": vector(4),
            "reduction": 1,
            "ignore_index": -100,
        }
        for key in ["nll_loss2d", "nll_loss2d_forward"]
    },
    "binary_cross_entropy_with_logits": {"pos_weight": vector(4)},
    "gaussian_nll_loss": {},
    "kthvalue": {"k": 2, "dim": 0},
    "topk": {"k": 2, "dim": 0},
    "im2col": {
        "self": X4,
        "kernel_size": [2, 2],
        "dilation": [1, 1],
        "padding": [0, 0],
        "stride": [1, 1],
    },
    "col2im": {
        "self": Spec((1, 16, 9)),
        "output_size": [6, 6],
        "kernel_size": [2, 2],
        "dilation": [1, 1],
        "padding": [0, 0],
        "stride": [2, 2],
    },
    "pixel_shuffle": {"self": X4, "upscale_factor": 2},
    "pixel_unshuffle": {"self": X4, "downscale_factor": 2},
    "channel_shuffle": {"self": X4, "groups": 2},
    "native_channel_shuffle": {"self": X4, "groups": 2},
    **{
        f"{kind}_pad{n}d": {"self": value, "padding": [1] * 2 * n}
        for kind in ("reflection", "replication")
        for n, value in ((1, X3), (2, X4), (3, X5))
    },
    "pad": {"pad": [1, 1], "mode": "constant"},
    "_pad_circular": {"self": X3, "pad": [1, 1]},
    "constant_pad_nd": {"pad": [1, 1]},
    **{
        key: {"size": [12], "shape": [12], "dtype": torch.int32}
        for key in ["view", "_unsafe_view", "reshape", "view_copy"]
    },
    **{key: {"size": [2, 3, 4]} for key in ["expand", "expand_copy", "broadcast_to"]},
    **{
        key: {"size": [2, 2], "stride": [1, 2], "storage_offset": 1, "src": Spec((2, 2))}
        for key in ["as_strided", "as_strided_copy", "as_strided_scatter"]
    },
    "unflatten": {"dim": 1, "sizes": [2, 2]},
    "permute": {"dims": [1, 0]},
    "numpy_T": {},
    "repeat": {"repeats": [2, 1]},
    "tile": {"dims": [2, 1]},
    "roll": {"shifts": [1], "dims": [0]},
    "flip": {"dims": [0]},
    "rot90": {"k": 1, "dims": [0, 1]},
    **{key: {"split_sizes": [1, 2]} for key in ["split_with_sizes", "split_with_sizes_copy"]},
    "split": {"split_size": 2, "split_sizes": [1, 2]},
    "movedim": {"source": [0], "destination": [1]},
    "select_scatter": {"src": vector(4), "dim": 0, "index": 1},
    "slice_scatter": {"src": Spec((1, 4)), "dim": 0, "start": 0, "end": 1, "step": 1},
    "diagonal_scatter": {"src": vector(3)},
    "narrow": {"start": 1, "length": 2},
    "unfold": {"dimension": 0, "size": 2, "step": 1},
    "squeeze": {"self": Spec((1, 4)), "dim": 0},
    "view_as_complex": {"self": Spec((3, 2))},
    **{
        key: {
            "self": _COMPLEX,
            "dim": [1],
            "last_dim_size": 6,
            "normalization": 0,
            "forward": True,
            "n": 6,
        }
        for key in [
            "view_as_real",
            "real",
            "imag",
            "conj",
            "_conj",
            "resolve_conj",
            "angle",
            "_fft_c2c",
            "fft_ifft",
            "fft_irfft",
            "fft_hfft",
            "_fft_c2r",
        ]
    },
    **{
        key: {"self": X, "dim": 1, "n": 4}
        for key in ["fft_irfft", "fft_ifft", "fft_hfft", "fft_fft", "fft_rfft"]
    },
    "_fft_r2c": {"dim": [1], "normalization": 0, "onesided": True},
    **{
        key: {
            "self": Spec((40,)),
            "n_fft": 8,
            "window": vector(8),
            "hop_length": 2,
            "win_length": 8,
            "return_complex": True,
            "center": True,
        }
        for key in ["stft"]
    },
    **{
        key: {"self": _SQUARE, "A": _SQUARE, "n": 2, "UPLO": "L", "mode": "reduced"}
        for key in [
            "linalg_inv",
            "linalg_det",
            "linalg_slogdet",
            "linalg_eigh",
            "linalg_qr",
            "linalg_cholesky",
            "linalg_cholesky_ex",
            "linalg_inv_ex",
            "inverse",
            "linalg_matrix_exp",
            "linalg_matrix_power",
            "matrix_power",
            "linalg_svd",
            "_linalg_svd",
            "_linalg_eigh",
            "_linalg_det",
            "_linalg_slogdet",
            "linalg_pinv",
            "linalg_svdvals",
            "linalg_lu",
            "cholesky",
        ]
    },
    **{
        key: {"self": _SQUARE, "A": _SQUARE, "B": _SQUARE, "b": _SQUARE, "upper": True}
        for key in ["linalg_solve", "linalg_solve_triangular", "_linalg_solve_ex", "linalg_lstsq"]
    },
    "multinomial": {"num_samples": 2},
    "bernoulli": {"p": 0.5},
    "trace": {},
    "randint": {"low": 0, "high": 5, "size": [3, 4]},
    "randint_like": {"low": 0, "high": 5},
    "randperm": {"n": 5},
    "eye": {"n": 3, "m": 4},
    "linspace": {"start": 0.0, "end": 1.0, "steps": 5},
    "logspace": {"start": 0.0, "end": 1.0, "steps": 5},
    "arange": {"start": 0, "end": 5, "step": 1},
    "empty_strided": {"size": [2, 3], "stride": [3, 1]},
    "new_empty_strided": {"size": [2, 3], "stride": [3, 1]},
    "empty_permuted": {"size": [2, 3], "physical_layout": [0, 1]},
    "tril_indices": {"row": 3, "col": 3},
    "triu_indices": {"row": 3, "col": 3},
    **{key: {"min": 0.1, "max": 0.5} for key in ["clamp", "clip"]},
    "renorm": {"p": 2.0, "dim": 0, "maxnorm": 1.0},
    "polygamma": {"n": 1},
    **{key: {"p": 1} for key in ["mvlgamma", "special_multigammaln"]},
    "histc": {"bins": 4},
    "logit": {"eps": 0.01},
    "meshgrid": {"tensors": [vector(3), vector(4)], "indexing": "ij"},
    "cartesian_prod": {"tensors": [vector(3), vector(4)]},
    "searchsorted": {"sorted_sequence": vector(4), "side": None, "sorter": None},
    "bucketize": {"boundaries": vector(4)},
    "quantile": {"q": 0.5},
    "nanquantile": {"q": 0.5},
    "glu": {"dim": 1},
    "prelu": {"weight": vector(4)},
    "_prelu_kernel": {"weight": Spec((1, 4))},
    "rrelu_with_noise": {"noise": X},
    "rrelu_with_noise_functional": {"noise": X},
    "alpha_dropout": {"p": 0.5},
    "local_response_norm": {"self": X3},
    "triplet_margin_loss": {"anchor": X, "positive": X, "negative": X},
    "vander": {"x": vector(4)},
    "isin": {"elements": X, "test_elements": vector(3)},
    "cosine_similarity": {"x1": X, "x2": X},
    "pairwise_distance": {"x1": X, "x2": X},
    "repeat_interleave": {"repeats": 2, "dim": 0, "output_size": None},
    "block_diag": {"tensors": [X, X]},
    "norm": {"p": 2.0},
    "linalg_norm": {"ord": 2.0, "dim": [0]},
    "linalg_norm.ord_str": {"ord": "fro", "dim": [0, 1]},
    "linalg_matrix_norm": {"ord": "fro"},
    "linalg_matrix_norm.default": {"ord": 1.0},
    "linalg_tensorinv": {"self": Spec((2, 2, 2, 2)), "ind": 2},
    "gumbel": {},
    "lerp": {"end": X, "weight": X},
    "polar": {"abs": X, "angle": X},
    "complex": {"real": X, "imag": X},
    "where": {"condition": Spec((3, 4), BOOL)},
    "pow": {"exponent": 2.0},
    "conv2d.padding": {"padding": "same"},
    **{f"scatter.{kind}reduce": {"reduce": "add"} for kind in ("", "value_")},
    **{
        f"{name}.{kind}_mode": {"rounding_mode": "floor"}
        for name in ("div", "divide")
        for kind in ("Tensor", "Scalar")
    },
    "masked_fill.Tensor": {"value": Spec(())},
    **{
        name: {"self": Spec((1, 1))}
        for name in ("cholesky", "linalg_cholesky", "linalg_cholesky_ex")
    },
    "_native_batch_norm_legit.no_stats": {"training": True},
    **{
        f"{name}.vec": {"output_size": None, "scale_factors": [2.0] * n}
        for n, kinds in (
            (1, ("linear1d", "nearest1d")),
            (2, ("nearest2d", "bilinear2d", "bicubic2d", "bilinear2d_aa", "bicubic2d_aa")),
            (3, ("nearest3d", "trilinear3d")),
        )
        for name in (
            f"_upsample_nearest_exact{n}d",
            *(f"{'_' * kind.endswith('_aa')}upsample_{kind}" for kind in kinds),
        )
    },
    "multilabel_margin_loss": {"target": _INDEX},
}
USUAL = {
    "dim": 0, "dims": [0, 1], "size": [3, 4], "dim0": 0, "dim1": 1, "axis0": 0, "axis1": 1,
    "dimension": 0, "start_dim": 0, "end_dim": 1, "chunks": 2, "sections": 2, "split_size": 2,
    "index": 0, "mask": Spec((3, 4), BOOL), "reduction": 1, "p": 0.5, "value": 1.0, "n": 2,
    "indices": [1], "start": 0, "end": 2, "step": 1, "correction": 1, "diagonal": 0, "length": 2,
    "window_length": 8, "std": 1.0, "mean": 0.0, "offset": 0, "shape": [3, 4], "k": 1,
    "lambd": 0.5, "sizes": [3, 4],
}  # fmt: skip
