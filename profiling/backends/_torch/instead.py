"""Functions for ops of the CPU's own that a program captured there may hold.

A value made on another device, or copied from it, may lie in memory in another order than where the
program was captured: `reshape` for `view` copies where it must, and is the same where it need not.
"""

from types import MappingProxyType

import torch
from torch import Tensor

aten = torch.ops.aten


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """The values that attention takes, (B, H, L, E), and the logarithms of its sums, (B, H, L)."""
    scores = _scores(query, key, is_causal, attn_mask, scale)
    return torch.softmax(scores, -1).to(value.dtype) @ value, torch.logsumexp(scores, -1)


def attention_backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of query, key and value (Dao et al., FlashAttention, 2022, appendix B.2)."""
    weights = torch.exp(_scores(query, key, is_causal, attn_mask, scale) - logsumexp[..., None])
    grad_out, factor = grad_out.float(), _factor(query, scale)
    grad_weights = grad_out @ value.float().mT
    inner = (grad_out * out.float()).sum(-1, keepdim=True)
    grad_scores = weights * (grad_weights - inner) * factor
    return (
        (grad_scores @ key.float()).to(query.dtype),
        (grad_scores.mT @ query.float()).to(key.dtype),
        (weights.mT @ grad_out).to(value.dtype),
    )


def _scores(
    query: Tensor, key: Tensor, is_causal: bool, attn_mask: Tensor | None, scale: float | None
) -> Tensor:
    scores = query.float() @ key.float().mT * _factor(query, scale)
    if is_causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~seen, float("-inf"))
    return scores if attn_mask is None else scores + attn_mask


def _factor(query: Tensor, scale: float | None) -> float:
    return float(query.shape[-1] ** -0.5) if scale is None else scale


# Where a program spans several memories: on the host, and elsewhere.
ON_HOST = MappingProxyType({aten.view.default: aten.reshape.default})
ELSEWHERE = MappingProxyType(
    {
        **ON_HOST,
        aten._scaled_dot_product_flash_attention_for_cpu.default: attention,
        aten._scaled_dot_product_flash_attention_for_cpu_backward.default: attention_backward,
    }
)
