"""The parts that every block of the network is made of."""

from __future__ import annotations

import math
from functools import cache
from types import ModuleType

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def fused(x: Tensor) -> ModuleType | None:
    """The fused kernels where they serve: in half precision, on a GPU, with Triton installed."""
    return _kernels() if x.is_cuda and x.dtype in (torch.bfloat16, torch.float16) else None


@cache
def _kernels() -> ModuleType | None:
    try:
        from chainroute.policy import kernels
    except ImportError:
        return None
    return kernels


class RMSNorm(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight.to(x.dtype), eps=1e-5)


class GatedMLP(nn.Module):
    """W3 (silu(W1 x) * W2 x), without biases; W1 and W2 are one product."""

    def __init__(self, dim: int, hidden: int):
        super().__init__()
        self.w12 = nn.Linear(dim, 2 * hidden, bias=False)
        self.w3 = nn.Linear(hidden, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = self.w12(x)
        if kernels := fused(x):
            return self.w3(kernels.Gate.apply(x))  # type: ignore[no-any-return]
        gate, value = x.chunk(2, -1)
        return self.w3(F.silu(gate) * value)  # type: ignore[no-any-return]


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(B, n, D) to (B, heads, n, D / heads)."""
    return x.view(*x.shape[:-1], heads, -1).transpose(1, 2)


def attention(query: Tensor, key: Tensor, value: Tensor, heads: int, bias: Tensor | None = None) -> Tensor:
    """Multi-head attention of (B, q, D) over (B, k, D), with a bias (B, q, k) shared by the heads.

    A bias of truth values says which keys are seen.
    """
    kernels = fused(query)
    if kernels and kernels.holds(query, key, heads):
        bias = None if bias is None else bias.contiguous()
        return kernels.Attention.apply(query, key, value, heads, bias)  # type: ignore[no-any-return]
    q, k, v = (split_heads(x, heads) for x in (query, key, value))
    mask = None if bias is None else bias[:, None]
    if mask is not None and mask.dtype != torch.bool:
        mask = mask.to(q.dtype)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)


def sparse_attention(
    query: Tensor, key: Tensor, value: Tensor, heads: int, keep: Tensor | int, bias: Tensor | None = None
) -> Tensor:
    """Attention in which each query sees only its `keep` best keys, (B, 1, 1, 1) or one number for all."""
    kernels = fused(query)
    if kernels and isinstance(keep, int) and kernels.holds(query, key, heads):
        return kernels.Attention.apply(query, key, value, heads, bias, keep)  # type: ignore[no-any-return]
    q, k, v = (split_heads(x, heads) for x in (query, key, value))
    # Contiguous: BLAS on ARM needs a third of the time then.
    scores = at_least_single(q @ k.mT.contiguous() / math.sqrt(q.shape[-1]))  # (B, heads, q, k)
    if bias is not None:
        scores = scores + bias[:, None]
    if isinstance(keep, int):
        least = scores.topk(keep, -1, sorted=False).values.amin(-1, keepdim=True)
    else:
        ranked = scores.sort(-1, descending=True).values
        least = ranked.gather(-1, (keep - 1).expand(*scores.shape[:-1], 1))
    scores = scores.masked_fill(scores < least, -torch.inf)
    return (scores.softmax(-1).to(v.dtype) @ v).transpose(1, 2).flatten(2)


def at_least_single(x: Tensor) -> Tensor:
    """Half precision as single; single and double as they are."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def nearness(distance: Tensor) -> Tensor:
    """-log of a distance, and 0 where it is 0."""
    return torch.where(distance > 0, -torch.log(distance.clamp(min=1e-12)), 0.0)
