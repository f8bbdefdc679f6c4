"""Attention over one instance, with the nearness of nodes as bias or a mask. Kernels: `attention_triton`."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from chainroute.neural.fast.ops.rows import rows_of, versions_of
from chainroute.neural.policy.layers import split_heads


def attend(
    q: Tensor, k: Tensor, v: Tensor, heads: int, bias: Tensor | None, rows: Tensor | None,
    out: Tensor, lse: Tensor, keep: Tensor | None = None, least: Tensor | None = None,
) -> None:  # fmt: skip
    """Attention of q (B, Q, D) over k and v (B, K, D) into `out`; `lse` (B, heads, Q) is for the way back.

    The bias is one of: numbers (B, Q, K), shared by the heads; a mask (B, Q, K) bool of the keys each query
    may see; or, with rows (B, S) int, a matrix (B, n, n) of nodes: query i is node i, the first S keys stand
    at the nodes that rows say, the others at the nodes in turn, and the entry of a key's node and the query
    is their bias. Minus infinity hides a key. With keep (B,) int32, each query sees only its `keep` best
    keys, down to the scores written to `least` (B, heads, Q).
    """
    scores = _scores(q, k, heads, bias, rows)
    if keep is not None and least is not None:
        last = (keep.long() - 1)[:, None, None, None].expand(*scores.shape[:-1], 1)
        least.copy_(scores.sort(-1, descending=True).values.gather(-1, last).squeeze(-1))
        scores = scores.masked_fill(scores < least[..., None], -torch.inf)
    lse.copy_(scores.logsumexp(-1))
    seen = (scores - lse[..., None]).exp() @ split_heads(v, heads)
    out.copy_(seen.transpose(1, 2).flatten(2))


def attend_backward(
    dout: Tensor, q: Tensor, k: Tensor, v: Tensor, heads: int, bias: Tensor | None, rows: Tensor | None,
    out: Tensor, lse: Tensor, dq: Tensor, dk: Tensor, dv: Tensor, least: Tensor | None = None,
    version: Tensor | None = None,
) -> None:  # fmt: skip
    """The gradients of `attend` into dq, dk and dv, which may be views of one packed tensor.

    With version (T,) int32, q holds the B instances of T steps, and k and v those of several versions, of
    which step t had seen number version[t]; dk and dv are of each step by itself.
    """
    if version is not None:
        k, v = versions_of(k, version, len(q)), versions_of(v, version, len(q))
    scores = _scores(q, k, heads, bias, rows)
    if least is not None:
        scores = scores.masked_fill(scores < least[..., None], -torch.inf)
    weight = (scores - lse[..., None]).exp()
    grad, seen = split_heads(dout, heads), split_heads(out, heads)
    along = (grad * seen).sum(-1, keepdim=True)
    grad_score = weight * (grad @ split_heads(v, heads).mT - along) / math.sqrt(grad.shape[-1])
    dq.copy_((grad_score @ split_heads(k, heads)).transpose(1, 2).flatten(2))
    dk.copy_((grad_score.mT @ split_heads(q, heads)).transpose(1, 2).flatten(2))
    dv.copy_((weight.mT @ grad).transpose(1, 2).flatten(2))


def _scores(q: Tensor, k: Tensor, heads: int, bias: Tensor | None, rows: Tensor | None) -> Tensor:
    scores = split_heads(q, heads) @ split_heads(k, heads).mT / math.sqrt(q.shape[-1] // heads)
    if bias is None:
        return scores
    if bias.dtype == torch.bool:
        return scores.masked_fill(~bias[:, None], -torch.inf)
    if rows is not None:
        nodes = torch.arange(k.shape[1] - rows.shape[1], device=rows.device).expand(len(rows), -1)
        bias = rows_of(bias, torch.cat([rows, nodes], 1)).mT
    return scores + bias[:, None]
