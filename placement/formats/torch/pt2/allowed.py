"""Which operators a file may call, each named: those that real exports contain and that are safe.

The library has operators that trust their arguments, open files or change memory that others
share. A file is not to be trusted, so nothing is allowed by kind. The names come from exports of
some four hundred architectures and of the modules, functions and methods of the library, in the
forms in which exports are saved (as exported, functional, core operators), so that many an
operation is there under each of its names. Left out although exports have them: what trusts indices
or sizes that only the content of tensors tells. `checks.py` checks what kernels do not.
"""

import re
from typing import Any

import torch

from placement.formats.torch.pt2.archive import bad

_TARGET = re.compile(r"torch\.ops\.aten\.([A-Za-z0-9_]{1,80})\.([A-Za-z0-9_]{1,40})")

# "name" is the overload without a name of its own.
_LISTED = """
abs absolute acos acosh adaptive_avg_pool1d _adaptive_avg_pool2d adaptive_avg_pool2d
_adaptive_avg_pool3d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
adaptive_max_pool3d add.Scalar add.Tensor addbmm addcdiv addcmul addmm addmv addr adjoint
affine_grid_generator alias all all.dim all.dims alpha_dropout amax amin aminmax __and__.Scalar
__and__.Tensor angle any any.dim any.dims arange arange.start arange.start_step arccos arccosh
arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort as_strided as_strided_scatter asin
asinh _assert_tensor_metadata atan atan2 atanh atleast_1d atleast_2d atleast_3d avg_pool1d
avg_pool2d avg_pool3d baddbmm bartlett_window batch_norm bernoulli bernoulli.p bernoulli_.float
bilinear binary_cross_entropy binary_cross_entropy_with_logits bitwise_and.Scalar
bitwise_and.Tensor bitwise_left_shift.Tensor bitwise_not bitwise_or.Scalar bitwise_or.Tensor
bitwise_right_shift.Tensor bitwise_xor.Scalar bitwise_xor.Tensor blackman_window block_diag bmm
broadcast_tensors broadcast_to bucketize.Tensor cartesian_prod cat cauchy cdist _cdist_forward
ceil celu chain_matmul channel_shuffle cholesky cholesky_solve chunk clamp clamp.Tensor
clamp_max clamp_max.Tensor clamp_min clamp_min.Tensor clip clip.Tensor clone col2im column_stack
complex concat concatenate _conj conj _conj_physical conj_physical constant_pad_nd contiguous
conv1d conv2d conv2d.padding conv3d conv_transpose1d conv_transpose2d.input
conv_transpose3d.input convolution copy copysign.Tensor cos cosh cosine_embedding_loss
cosine_similarity count_nonzero cross cross_entropy_loss cummax cummin cumprod cumsum
cumulative_trapezoid.dx cumulative_trapezoid.x deg2rad det detach diag diag_embed diagflat
diagonal diagonal_scatter diff digamma dist div.Scalar div.Scalar_mode div.Tensor
div.Tensor_mode divide.Scalar divide.Scalar_mode divide.Tensor divide.Tensor_mode dot dropout
dsplit.array dsplit.int dstack einsum elu elu_backward embedding empty.memory_format empty_like
empty_permuted empty_strided eq.Scalar eq.Tensor erf erfc erfinv exp exp2 expand expand_as
expand_copy expm1 exponential eye eye.m feature_alpha_dropout feature_dropout _fft_c2c _fft_c2r
fft_fft fft_fft2 fft_fftfreq fft_fftn fft_fftshift fft_hfft fft_hfft2 fft_hfftn fft_ifft
fft_ifft2 fft_ifftn fft_ifftshift fft_ihfft fft_ihfft2 fft_ihfftn fft_irfft fft_irfft2
fft_irfftn _fft_r2c fft_rfft fft_rfft2 fft_rfftfreq fft_rfftn fill.Scalar fill.Tensor fix
flatten.using_ints flip fliplr flipud float_power.Tensor_Scalar floor floor_divide fmax fmin
fmod.Scalar fmod.Tensor frac frexp.Tensor full full_like gather gcd ge.Scalar ge.Tensor gelu
gelu_backward geometric ger glu greater.Scalar greater.Tensor greater_equal.Scalar
greater_equal.Tensor grid_sampler grid_sampler_2d grid_sampler_3d group_norm gru.input gru_cell
gt.Scalar gt.Tensor hamming_window hann_window hardshrink hardsigmoid hardsigmoid_backward
hardswish hardswish_backward hardtanh hardtanh_backward heaviside hinge_embedding_loss histc
hsplit.array hsplit.int hstack huber_loss hypot i0 igamma igammac im2col imag index.Tensor
index_add index_copy index_fill.int_Scalar index_fill.int_Tensor index_put index_reduce
index_select inner instance_norm inverse isclose isfinite isin.Tensor_Scalar isin.Tensor_Tensor
isinf isnan isneginf isposinf isreal kaiser_window kl_div kron kthvalue l1_loss layer_norm
lcm ldexp.Tensor le.Scalar le.Tensor leaky_relu leaky_relu_backward lerp.Scalar lerp.Tensor
less.Scalar less.Tensor less_equal.Scalar less_equal.Tensor lgamma lift_fresh_copy
linalg_cholesky linalg_cholesky_ex linalg_cond linalg_cross _linalg_det linalg_det
linalg_diagonal _linalg_eigh linalg_eigh linalg_eigvalsh linalg_inv linalg_inv_ex linalg_lu
linalg_lu_factor linalg_lu_factor_ex linalg_matmul linalg_matrix_exp linalg_matrix_norm
linalg_matrix_norm.str_ord linalg_matrix_power linalg_matrix_rank.atol_rtol_tensor
linalg_multi_dot linalg_norm linalg_norm.ord_str linalg_pinv.atol_rtol_tensor linalg_qr
_linalg_slogdet linalg_slogdet linalg_solve _linalg_solve_ex linalg_solve_triangular _linalg_svd
linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve linalg_vander linalg_vecdot
linalg_vector_norm linear linspace log log10 log1p log2 log_normal log_sigmoid _log_softmax
log_softmax.int logaddexp logaddexp2 logcumsumexp logdet logical_and logical_not logical_or
logical_xor logit logspace logsumexp __lshift__.Scalar lstm.input lstm_cell lt.Scalar lt.Tensor
margin_ranking_loss masked_fill.Scalar masked_fill.Tensor masked_scatter matmul matrix_exp
matrix_H matrix_power max max.dim max.other max_pool1d max_pool2d max_pool2d_with_indices
max_pool3d max_pool3d_with_indices maximum mean mean.dim median median.dim meshgrid
meshgrid.indexing mH min min.dim min.other minimum mish mm mode moveaxis.int moveaxis.intlist
movedim.int movedim.intlist mse_loss msort mT mul.Scalar mul.Tensor multi_margin_loss
multilabel_margin_loss multinomial multiply.Scalar multiply.Tensor mv mvlgamma nan_to_num
nanmean nanmedian nanquantile nanquantile.scalar nansum narrow native_batch_norm
_native_batch_norm_legit _native_batch_norm_legit.no_stats _native_batch_norm_legit_functional
_native_batch_norm_legit_no_training native_dropout native_group_norm native_layer_norm
ne.Scalar ne.Tensor neg negative new_empty new_full new_ones new_zeros nextafter nll_loss
nll_loss2d nll_loss2d_forward nll_loss_forward nll_loss_nd normal.float_Tensor
normal.Tensor_float normal.Tensor_Tensor normal_ normal_functional not_equal.Scalar
not_equal.Tensor numpy_T one_hot ones ones_like __or__.Scalar __or__.Tensor outer pad
pairwise_distance pdist _pdist_forward permute pinverse pixel_shuffle pixel_unshuffle poisson
poisson_nll_loss polar polygamma positive pow.Scalar pow.Tensor_Scalar pow.Tensor_Tensor prelu
prod prod.dim_int put qr quantile quantile.scalar rad2deg rand rand_like randint randint.low
randint_like randn randn_like random randperm ravel real reciprocal reflection_pad1d
reflection_pad2d reflection_pad3d relu relu6 remainder.Scalar remainder.Tensor renorm repeat
repeat_interleave.self_int replication_pad1d replication_pad2d replication_pad3d reshape
reshape_as resolve_conj resolve_neg rms_norm rnn_relu.input rnn_relu_cell rnn_tanh.input
rnn_tanh_cell roll rot90 round round.decimals row_stack rrelu rrelu_with_noise_functional
__rshift__.Scalar rsqrt rsub.Scalar rsub.Tensor _safe_softmax scalar_tensor
scaled_dot_product_attention _scaled_dot_product_attention_math
_scaled_dot_product_flash_attention_for_cpu scatter.reduce scatter.src scatter.value
scatter.value_reduce scatter_add scatter_reduce.two searchsorted.Tensor select.int
select_scatter selu sgn sigmoid sigmoid_backward sign signbit silu silu_backward sin sinc sinh
slice.Tensor slice_scatter slogdet smooth_l1_loss soft_margin_loss _softmax softmax.int softplus
softshrink sort sort.stable special_bessel_j0 special_bessel_j1 special_digamma special_entr
special_erf special_erfc special_erfcx special_erfinv special_exp2 special_expit special_expm1
special_gammainc special_gammaincc special_gammaln special_i0e special_i1 special_i1e
special_log1p special_log_ndtr special_log_softmax special_logit special_logsumexp
special_multigammaln special_ndtr special_ndtri special_polygamma special_psi special_round
special_sinc special_softmax special_xlog1py special_xlogy split.sizes split.Tensor
split_copy.Tensor split_with_sizes split_with_sizes_copy sqrt square squeeze squeeze.dim
squeeze.dims stack std.correction std.dim std_mean.dim stft sub.Scalar sub.Tensor
subtract.Scalar subtract.Tensor sum sum.dim_IntList sum_to_size svd swapaxes swapdims t take
take_along_dim tan tanh tanh_backward tensor_split.indices tensor_split.sections tensordot
threshold threshold_backward tile to.device to.dtype to.dtype_layout to.other _to_copy topk
trace transpose.int trapezoid.dx trapezoid.x trapz.dx trapz.x triangular_solve tril tril_indices
_trilinear triplet_margin_loss triu triu_indices true_divide.Tensor trunc type_as unbind.int
unflatten.int unfold uniform unsafe_chunk _unsafe_index.Tensor unsafe_split.Tensor _unsafe_view
unsqueeze upsample_bicubic2d upsample_bicubic2d.vec _upsample_bicubic2d_aa
_upsample_bicubic2d_aa.vec upsample_bilinear2d upsample_bilinear2d.vec _upsample_bilinear2d_aa
_upsample_bilinear2d_aa.vec upsample_linear1d upsample_linear1d.vec upsample_nearest1d
upsample_nearest1d.vec upsample_nearest2d upsample_nearest2d.vec upsample_nearest3d
upsample_nearest3d.vec _upsample_nearest_exact1d.vec _upsample_nearest_exact2d.vec
_upsample_nearest_exact3d.vec upsample_trilinear3d upsample_trilinear3d.vec vander
var.correction var.dim var_mean.correction var_mean.dim vdot view view.dtype view_as
view_as_complex view_as_real vsplit.array vsplit.int vstack _weight_norm _weight_norm_interface
where.Scalar where.ScalarOther where.ScalarSelf where.self xlogy.Tensor __xor__.Scalar
__xor__.Tensor zero zeros zeros_like
"""
NAMES = frozenset(n if "." in n else f"{n}.default" for n in _LISTED.split())


def operator(target: Any) -> Any:
    """The operator that a file names, looked up in the list; `Refused` where it is not there."""
    found = _TARGET.fullmatch(target) if isinstance(target, str) else None
    if found is None or not is_allowed(found[1], found[2]):
        raise bad(
            f"it calls {str(target)[:80]!r}, which is not among the operators that a file may call",
            "a module that uses others",
        )
    return getattr(getattr(torch.ops.aten, found[1]), found[2])


def is_allowed(packet: str, overload: str) -> bool:
    """Whether a file may call this operator, or its twin that writes into what it reads."""
    pure = packet if packet.startswith("__") else packet.removesuffix("_")
    if f"{packet}.{overload}" in NAMES:
        return True
    return f"{pure}.{overload}" in NAMES and hasattr(
        getattr(torch.ops.aten, packet, None), overload
    )
