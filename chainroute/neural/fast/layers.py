"""The policy's layers by fused kernels, where these serve: in half precision, on a GPU with Triton."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from chainroute.neural.fast.ops.products import Affine
from chainroute.neural.policy.layers import accelerated, normalised

TRITON = importlib.util.find_spec("triton") is not None
if TRITON:
    from chainroute.neural.fast.ops import attention_triton, choice_triton, mlp_triton, rows_triton


@contextmanager
def fused() -> Iterator[None]:
    """While it lasts, the policy's attention and MLPs run by kernels wherever these serve."""
    with accelerated(Fused()):
        yield


class Fused:
    """`policy.layers.Kernels` by Triton; each answers None where it does not serve."""

    def gate(self, x: Tensor) -> Tensor | None:
        return rows_triton.Gate.apply(x) if _serve(x) else None  # type: ignore[no-untyped-call]

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None, scale: Tensor | None) -> Tensor | None:
        if not _serve(x) or bias is None:
            return None
        if scale is not None:
            x, weight = normalised(x), weight * scale
        return Affine.apply(x, weight, bias)  # type: ignore[no-any-return,no-untyped-call]

    def mlp(self, a: Tensor, delta: Tensor, w12: Tensor, w3: Tensor, scale: Tensor | None) -> Tensor | None:
        if not _serve(delta) or not mlp_triton.holds(*w3.shape):
            return None
        return mlp_triton.add_mlp(a, delta, w12 if scale is None else w12 * scale, w3)

    def attention(
        self, query: Tensor, key: Tensor, value: Tensor, heads: int, bias: Tensor | None,
        keep: Tensor | int | None,
    ) -> Tensor | None:  # fmt: skip
        if not _serve(query) or not attention_triton.holds(query, key, heads, keep is not None):
            return None
        bias = bias if bias is None or bias.stride(-1) == 1 else bias.contiguous()
        if isinstance(keep, int):
            keep = torch.full((len(query),), keep, dtype=torch.int32, device=query.device)
        elif keep is not None:
            keep = keep.flatten().int()
        seen: Tensor = attention_triton.Attention.apply(query, key, value, heads, bias, keep)  # type: ignore[no-untyped-call]
        return seen


def normalised_rows(contexts: Tensor, nodes: Tensor) -> Tensor:
    """Contexts (B, S, D) and nodes (B, n, D), normalised, one below the other, in the contexts' type."""
    b, rows = len(nodes), contexts.shape[1] + nodes.shape[1]
    x = torch.empty(b, rows, nodes.shape[-1], dtype=contexts.dtype, device=nodes.device)
    rows_triton.normalise(contexts, nodes, x, torch.empty(b, rows, device=nodes.device))
    return x


def attention_by_rows(
    query: Tensor, key: Tensor, value: Tensor, heads: int, bias: Tensor, rows: Tensor
) -> Tensor:
    """Attention of nodes over contexts at nodes `rows` (B, S), and over themselves if there are more keys,
    with the entries of `bias` (B, n, n) from key to query as bias."""
    seen = torch.empty(query.shape, dtype=query.dtype, device=query.device)
    lse = torch.empty(len(query), heads, query.shape[1], device=query.device)
    attention_triton.attend(query, key, value, heads, bias, rows, seen, lse)
    return seen


def likeliest(
    query: Tensor, keys: Tensor, near: Tensor, current: Tensor, mask: Tensor, clip: float
) -> Tensor:
    """The node that each query (B, S, D) finds likeliest of those it may visit, (B, S)."""
    action = torch.empty_like(current)
    choice_triton.choose(query, keys, near, current, mask, None, clip, action)
    return action


def serve_decoding(nodes: Tensor, heads: int) -> bool:
    """Whether the three above can, for nodes (B, n, D) in the type of products."""
    if not _serve(nodes) or nodes.shape[1] > choice_triton.MAX_NODES:
        return False
    return attention_triton.holds(nodes, nodes, heads)


def _serve(x: Tensor) -> bool:
    return TRITON and x.is_cuda and x.dtype in (torch.bfloat16, torch.float16)
