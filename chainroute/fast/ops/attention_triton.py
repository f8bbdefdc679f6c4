"""Attention over one instance as Triton kernels; `attention` says what they do.

The matrices of one instance are tiny (51 nodes, 8 heads of 16), so general kernels spend their time on
launches and padding. Here one program handles one head of one instance, all keys at once.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

MAX_KEYS = 256  # what one program holds in registers
NONE, NUMBERS, MASK, ROWS = 0, 1, 2, 3  # kinds of bias: see `attend`

# Scores are held with keys down and queries across: the bias of kind ROWS is then read along its rows.


@triton.jit
def _scores(
    q, k, bias, rows, b, d, i, j, Q, K, n, q_row, k_row, q_batch, k_batch, scale, kind: tl.constexpr
):  # fmt: skip
    """Keys (BK, SIZE), queries (BQ, SIZE) and their scores (BK, BQ), minus infinity beyond the last key."""
    query = tl.load(q + b * q_batch + i[:, None] * q_row + d[None, :], mask=(i < Q)[:, None], other=0.0)
    key = tl.load(k + b * k_batch + j[:, None] * k_row + d[None, :], mask=(j < K)[:, None], other=0.0)
    score = tl.dot(key, tl.trans(query)) * scale
    inside = (j < K)[:, None] & (i < Q)[None, :]
    if kind == 1:  # a number for each query and key
        score += tl.load(bias + (b * Q + i[None, :]) * K + j[:, None], mask=inside, other=0.0).to(tl.float32)
    elif kind == 2:  # whether the query may see the key
        seen = tl.load(bias + (b * Q + i[None, :]) * K + j[:, None], mask=inside, other=1)
        score = tl.where(seen != 0, score, float("-inf"))
    elif kind == 3:  # nearness of node i to the node that key j stands at
        row = tl.load(rows + b * K + j, mask=j < K, other=0)
        score += tl.load(bias + (b * n + row[:, None]) * n + i[None, :], mask=inside, other=0.0).to(
            tl.float32
        )
    return query, key, tl.where((j < K)[:, None], score, float("-inf"))


@triton.jit
def _least_kept(score, keep):
    """The keep-th largest score of each query, by bisection over the bits of the scores in their order."""
    bits = score.to(tl.int32, bitcast=True)
    order = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)  # integers that sort as the scores do
    enough = tl.sum((order >= 0).to(tl.int32), 0) >= keep
    level = tl.where(enough, 0, -2147483648)
    for bit in range(31):
        higher = level + (1 << (30 - bit))
        enough = tl.sum((order >= higher[None, :]).to(tl.int32), 0) >= keep
        level = tl.where(enough, higher, level)
    back = tl.where(level < 0, level ^ 0x7FFFFFFF, level)
    return back.to(tl.float32, bitcast=True)


@triton.jit
def _attend(
    q, k, v, bias, rows, out, lse, least, Q, K, n,
    q_row, k_row, v_row, q_batch, k_batch, v_batch, heads, scale, keep,
    kind: tl.constexpr, SPARSE: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    b, h = (tl.program_id(0) // heads).to(tl.int64), tl.program_id(0) % heads
    i = tl.program_id(1) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    j = tl.arange(0, BLOCK_K)
    d = h * SIZE + tl.arange(0, SIZE)
    _, _, score = _scores(q, k, bias, rows, b, d, i, j, Q, K, n, q_row, k_row, q_batch, k_batch, scale, kind)
    line = (b * heads + h) * Q + i
    if SPARSE:
        floor = _least_kept(score, tl.load(keep + b))
        tl.store(least + line, floor, mask=i < Q)
        score = tl.where(score >= floor[None, :], score, float("-inf"))
    value = tl.load(v + b * v_batch + j[:, None] * v_row + d[None, :], mask=(j < K)[:, None], other=0.0)
    top = tl.max(score, 0)
    weight = tl.exp(score - top[None, :])
    total = tl.sum(weight, 0)
    seen = tl.dot(tl.trans((weight / total[None, :]).to(value.dtype)), value)
    spot = (b * Q + i[:, None]) * (heads * SIZE) + d[None, :]
    tl.store(out + spot, seen.to(out.dtype.element_ty), mask=(i < Q)[:, None])
    tl.store(lse + line, top + tl.log(total), mask=i < Q)


@triton.jit
def _attend_backward(
    dout, q, k, v, bias, rows, out, lse, least, dq, dk, dv, Q, K, n,
    dout_row, q_row, k_row, v_row, dout_batch, q_batch, k_batch, v_batch,
    dq_row, dk_row, dv_row, dq_batch, dk_batch, dv_batch, heads, scale,
    kind: tl.constexpr, SPARSE: tl.constexpr,
    BLOCKS: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    b, h = (tl.program_id(0) // heads).to(tl.int64), tl.program_id(0) % heads
    j = tl.arange(0, BLOCK_K)
    d = h * SIZE + tl.arange(0, SIZE)
    column = (j < K)[:, None]
    value = tl.load(v + b * v_batch + j[:, None] * v_row + d[None, :], mask=column, other=0.0)
    grad_key = tl.zeros([BLOCK_K, SIZE], tl.float32)
    grad_value = tl.zeros([BLOCK_K, SIZE], tl.float32)
    for block in range(BLOCKS):
        i = block * BLOCK_Q + tl.arange(0, BLOCK_Q)
        row = (i < Q)[:, None]
        line = (b * heads + h) * Q + i
        query, key, score = _scores(
            q, k, bias, rows, b, d, i, j, Q, K, n, q_row, k_row, q_batch, k_batch, scale, kind
        )
        if SPARSE:
            floor = tl.load(least + line, mask=i < Q, other=0.0)
            score = tl.where(score >= floor[None, :], score, float("-inf"))
        level = tl.load(lse + line, mask=i < Q, other=float("inf"))
        weight = tl.exp(score - level[None, :])  # (BK, BQ)
        spot = (b * Q + i[:, None]) * (heads * SIZE) + d[None, :]
        seen = tl.load(out + spot, mask=row, other=0.0).to(tl.float32)
        grad = tl.load(dout + b * dout_batch + i[:, None] * dout_row + d[None, :], mask=row, other=0.0)
        grad_value += tl.dot(weight.to(grad.dtype), grad)
        along = tl.sum(grad.to(tl.float32) * seen, 1)
        grad_score = (weight * (tl.dot(value, tl.trans(grad)) - along[None, :]) * scale).to(query.dtype)
        grad_key += tl.dot(grad_score, query)
        grad_query = tl.dot(tl.trans(grad_score), key)
        place = dq + b * dq_batch + i[:, None] * dq_row + d[None, :]
        tl.store(place, grad_query.to(dq.dtype.element_ty), mask=row)
    place = dk + b * dk_batch + j[:, None] * dk_row + d[None, :]
    tl.store(place, grad_key.to(dk.dtype.element_ty), mask=column)
    place = dv + b * dv_batch + j[:, None] * dv_row + d[None, :]
    tl.store(place, grad_value.to(dv.dtype.element_ty), mask=column)


def attend(
    q: Tensor, k: Tensor, v: Tensor, heads: int, bias: Tensor | None, rows: Tensor | None,
    out: Tensor, lse: Tensor, keep: Tensor | None = None, least: Tensor | None = None,
) -> None:  # fmt: skip
    size = q.shape[-1] // heads
    block_q, block_k, warps = _plan(q.shape[1], k.shape[1])
    grid = (q.shape[0] * heads, triton.cdiv(q.shape[1], block_q))
    _attend[grid](
        q, k, v, *_table(bias, rows, q), out, lse, lse if least is None else least,
        q.shape[1], k.shape[1], 0 if bias is None else bias.shape[-1],
        q.stride(1), k.stride(1), v.stride(1), q.stride(0), k.stride(0), v.stride(0), heads, size**-0.5,
        lse if keep is None else keep,
        kind=_kind(bias, rows), SPARSE=keep is not None, BLOCK_Q=block_q, BLOCK_K=block_k, SIZE=size,
        num_warps=warps,
    )  # fmt: skip


def attend_backward(
    dout: Tensor, q: Tensor, k: Tensor, v: Tensor, heads: int, bias: Tensor | None, rows: Tensor | None,
    out: Tensor, lse: Tensor, dq: Tensor, dk: Tensor, dv: Tensor, least: Tensor | None = None,
) -> None:  # fmt: skip
    size = q.shape[-1] // heads
    block_q, block_k, warps = _plan_backward(q.shape[1], k.shape[1])
    _attend_backward[(q.shape[0] * heads,)](
        dout, q, k, v, *_table(bias, rows, q), out, lse, lse if least is None else least, dq, dk, dv,
        q.shape[1], k.shape[1], 0 if bias is None else bias.shape[-1],
        dout.stride(1), q.stride(1), k.stride(1), v.stride(1),
        dout.stride(0), q.stride(0), k.stride(0), v.stride(0),
        dq.stride(1), dk.stride(1), dv.stride(1), dq.stride(0), dk.stride(0), dv.stride(0), heads, size**-0.5,
        kind=_kind(bias, rows), SPARSE=least is not None,
        BLOCKS=triton.cdiv(q.shape[1], block_q), BLOCK_Q=block_q, BLOCK_K=block_k, SIZE=size,
        num_warps=warps,
    )  # fmt: skip


def _plan(queries: int, keys: int) -> tuple[int, int, int]:
    """Queries and keys of one program, and its warps: the fastest on an H200 for 50 and 100 customers."""
    block_k = max(16, triton.next_power_of_2(keys))
    if queries > 64:
        return 16, block_k, 2
    return max(16, triton.next_power_of_2(queries)), block_k, 4


def _plan_backward(queries: int, keys: int) -> tuple[int, int, int]:
    block_k = max(16, triton.next_power_of_2(keys))
    block_q = min(32 if block_k > 128 else 64, max(16, triton.next_power_of_2(queries)))
    return block_q, block_k, 4 if block_k > 64 else 2


def _kind(bias: Tensor | None, rows: Tensor | None) -> int:
    if bias is None:
        return NONE
    if rows is not None:
        return ROWS
    return MASK if bias.dtype == torch.bool else NUMBERS


def _table(bias: Tensor | None, rows: Tensor | None, stand_in: Tensor) -> tuple[Tensor, Tensor]:
    if bias is not None and bias.dtype == torch.bool:
        bias = bias.view(torch.uint8)
    return (stand_in if bias is None else bias), (stand_in if rows is None else rows)


def holds(query: Tensor, key: Tensor, heads: int) -> bool:
    """Whether `attend` can: few keys, and heads that matrix units take."""
    return key.shape[1] <= MAX_KEYS and query.shape[-1] // heads in (16, 32, 64, 128)


class Attention(torch.autograd.Function):
    """`attend` for autograd; the bias is a constant."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, heads: int, bias: Tensor | None, keep: Tensor | None = None
    ) -> Tensor:
        out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
        lse = torch.empty(q.shape[0], heads, q.shape[1], dtype=torch.float32, device=q.device)
        least = None if keep is None else torch.empty_like(lse)
        attend(q, k, v, heads, bias, None, out, lse, keep, least)
        ctx.save_for_backward(q, k, v, bias, out, lse, least)
        ctx.heads = heads
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, bias, out, lse, least = ctx.saved_tensors
        dq, dk, dv = (torch.empty(t.shape, dtype=t.dtype, device=t.device) for t in (q, k, v))
        grad = grads[0] if grads[0].stride(-1) == 1 else grads[0].contiguous()
        attend_backward(grad, q, k, v, ctx.heads, bias, None, out, lse, dq, dk, dv, least)
        return dq, dk, dv, None, None, None
