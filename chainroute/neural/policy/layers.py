"""The parts that every block of the network is made of."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Kernels(Protocol):
    """Faster versions of what is below; each is None for inputs that it does not serve."""

    def gate(self, x: Tensor) -> Tensor | None: ...

    def linear(
        self, x: Tensor, weight: Tensor, bias: Tensor | None, scale: Tensor | None
    ) -> Tensor | None: ...

    def mlp(
        self, a: Tensor, delta: Tensor, w12: Tensor, w3: Tensor, scale: Tensor | None
    ) -> Tensor | None: ...

    def attention(
        self, query: Tensor, key: Tensor, value: Tensor, heads: int, bias: Tensor | None,
        keep: Tensor | int | None,
    ) -> Tensor | None: ...  # fmt: skip


_kernels: ContextVar[Kernels | None] = ContextVar("kernels", default=None)


@contextmanager
def accelerated(kernels: Kernels | None) -> Iterator[None]:
    """While it lasts, layers run by these kernels wherever they serve; otherwise they run plainly."""
    before = _kernels.set(kernels)
    try:
        yield
    finally:
        _kernels.reset(before)


def _active() -> Kernels | None:
    """The kernels to use; the compiler makes its own."""
    return None if torch.compiler.is_compiling() else _kernels.get()


class RMSNorm(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return normalised(x, self.weight)


class Linear(nn.Linear):
    """A linear map of x, or of norm(x)."""

    def forward(self, x: Tensor, norm: RMSNorm | None = None) -> Tensor:
        kernels, scale = _active(), None if norm is None else norm.weight
        if kernels is not None and (fused := kernels.linear(x, self.weight, self.bias, scale)) is not None:
            return fused
        return super().forward(x if norm is None else norm(x))


class StackedLinear(Linear):
    """Several maps of one input as one product: `count` matrices, one below the other."""

    def __init__(self, inner: int, outer: int, count: int, bias: bool = True):
        super().__init__(inner, count * outer, bias)
        self.count = count  # by which an optimiser tells the matrices apart


class GatedMLP(nn.Module):
    """W3 (silu(W1 x) * W2 x), without biases; W1 and W2 are one product."""

    def __init__(self, dim: int, hidden: int):
        super().__init__()
        self.w12 = StackedLinear(dim, hidden, 2, bias=False)
        self.w3 = nn.Linear(hidden, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w3(gate(self.w12(x)))  # type: ignore[no-any-return]

    def residual(self, a: Tensor, delta: Tensor, norm: RMSNorm) -> Tensor:
        """x + MLP(norm(x)) for x = a + delta."""
        return add_mlp(a, delta, self.w12.weight, self.w3.weight, norm.weight)


def gate(x: Tensor) -> Tensor:
    """silu(a) * b for rows (a, b) of x."""
    kernels = _active()
    if kernels is not None and (fused := kernels.gate(x)) is not None:
        return fused
    a, b = x.chunk(2, -1)
    return F.silu(a) * b if torch.is_grad_enabled() else F.silu(a).mul_(b)


def add_mlp(a: Tensor, delta: Tensor, w12: Tensor, w3: Tensor, scale: Tensor | None = None) -> Tensor:
    """x + W3 gate(W12 y) for x = a + delta and y, the same normalised; products are of delta's type."""
    kernels = _active()
    if kernels is not None and (fused := kernels.mlp(a, delta, w12, w3, scale)) is not None:
        return fused
    x = a + delta
    return x + F.linear(gate(F.linear(normalised(x, scale).to(delta.dtype), w12)), w3)


def normalised(x: Tensor, scale: Tensor | None = None) -> Tensor:
    """Rows divided by their root mean square, times the weight of a norm, if that is not folded elsewhere."""
    return F.rms_norm(x, x.shape[-1:], None if scale is None else scale.to(x.dtype), eps=1e-5)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(B, n, D) to (B, heads, n, D / heads)."""
    return x.view(*x.shape[:-1], heads, -1).transpose(1, 2)


def attention(query: Tensor, key: Tensor, value: Tensor, heads: int, bias: Tensor | None = None) -> Tensor:
    """Multi-head attention of (B, q, D) over (B, k, D), with a bias (B, q, k) shared by the heads.

    A bias of truth values says which keys are seen.
    """
    if (fused := _fused_attention(query, key, value, heads, bias)) is not None:
        return fused
    q, k, v = (split_heads(x, heads) for x in (query, key, value))
    mask = None if bias is None else bias[:, None]
    if mask is not None and mask.dtype != torch.bool:
        mask = mask.to(q.dtype)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)


def _fused_attention(
    query: Tensor, key: Tensor, value: Tensor, heads: int, bias: Tensor | None,
    keep: Tensor | int | None = None,
) -> Tensor | None:  # fmt: skip
    kernels = _active()
    return None if kernels is None else kernels.attention(query, key, value, heads, bias, keep)


def sparse_attention(
    query: Tensor, key: Tensor, value: Tensor, heads: int, keep: Tensor | int, bias: Tensor | None = None
) -> Tensor:
    """Attention in which each query sees only its `keep` best keys, (B, 1, 1, 1) or one number for all."""
    if (fused := _fused_attention(query, key, value, heads, bias, keep)) is not None:
        return fused
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
