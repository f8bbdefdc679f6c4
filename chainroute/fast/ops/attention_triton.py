"""Kernels of `attention`: each program handles some queries and keys of one instance, head after head.

The matrices of one instance are tiny (51 nodes, 8 heads of 16), so general kernels spend their time on
launches and padding. What costs most is the bias, whose rows have odd lengths and no alignment: a program
reads it once for all its heads. Tiles have keys down and queries across, as the backward pass multiplies
them; the forward pass turns those of few keys round, so that the sums of its softmax stay within a warp.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from chainroute.fast.ops.rows import is_padded, power

HEADS = (16, 32, 64, 128)  # numbers of a head, that matrix units take
MAX_KEYS = 1024  # of the widest tile that fits into the registers of a program
PROGRAMS = 192  # that keep an H200 busy; a bias is read once for all heads of a program, so not more
NONE, NUMBERS, MASK, ROWS = 0, 1, 2, 3  # kinds of bias: see `attend`
LOG2E = tl.constexpr(1.4426950408889634)  # exponentials are of base 2, which is what the hardware has


class Tile(NamedTuple):
    """What one program handles."""

    queries: int
    keys: int
    heads: int
    warps: int
    axis: int = 0  # of its keys


@triton.jit
def _bias(bias, rows, b, i, j, Q, K, bias_row, bias_batch, kind: tl.constexpr, PADDED: tl.constexpr):
    """What is added to the scores of keys j and queries i, (BK, BQ), in units of log 2; beyond the last key
    minus infinity."""
    inside = (j < K)[:, None] & (i < Q)[None, :]
    if kind == 1:  # a number for each query and key
        at = bias + b * bias_batch + i[None, :] * bias_row + j[:, None]
        add = tl.load(at, mask=inside, other=0.0).to(tl.float32)
    elif kind == 2:  # whether the query may see the key
        at = bias + b * bias_batch + i[None, :] * bias_row + j[:, None]
        seen = tl.load(at, mask=(i < Q)[None, :] if PADDED else inside, other=1)
        add = tl.where(seen != 0, 0.0, float("-inf"))
    elif kind == 3:  # nearness of node i to the node that key j stands at
        row = tl.load(rows + b * K + j, mask=j < K, other=0)
        at = bias + b * bias_batch + row[:, None] * bias_row + i[None, :]
        add = (tl.load(at) if PADDED else tl.load(at, mask=inside, other=0.0)).to(tl.float32)
    else:
        add = tl.zeros([j.shape[0], i.shape[0]], tl.float32)
    return tl.where((j < K)[:, None], add * LOG2E, float("-inf"))


@triton.jit
def _least_kept(score, keep, AXIS: tl.constexpr):
    """The keep-th largest score of each query, keys along an axis, by bisection over the bits of the scores
    in their order."""
    bits = score.to(tl.int32, bitcast=True)
    order = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)  # integers that sort as the scores do
    enough = tl.sum((order >= 0).to(tl.int32), AXIS) >= keep
    level = tl.where(enough, 0, -2147483648)
    for bit in range(31):
        higher = level + (1 << (30 - bit))
        enough = tl.sum((order >= tl.expand_dims(higher, AXIS)).to(tl.int32), AXIS) >= keep
        level = tl.where(enough, higher, level)
    back = tl.where(level < 0, level ^ 0x7FFFFFFF, level)
    return back.to(tl.float32, bitcast=True)


@triton.jit
def _attend(
    q, k, v, bias, rows, out, lse, least, Q, K, bias_row, bias_batch,
    q_row, k_row, v_row, q_batch, k_batch, v_batch, heads, scale, keep,
    kind: tl.constexpr, PADDED: tl.constexpr, SPARSE: tl.constexpr, AXIS: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, HEADS: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """AXIS is that of the keys in a tile: 0, or 1 if it is turned round."""
    b = tl.program_id(0).to(tl.int64)
    i, j = tl.program_id(1) * BLOCK_Q + tl.arange(0, BLOCK_Q), tl.arange(0, BLOCK_K)
    row, column = (i < Q)[:, None], (j < K)[:, None]
    add = _bias(bias, rows, b, i, j, Q, K, bias_row, bias_batch, kind, PADDED)
    if AXIS == 1:
        add = tl.trans(add)
    for head in range(HEADS):
        h = tl.program_id(2) * HEADS + head
        d = h * SIZE + tl.arange(0, SIZE)
        query = tl.load(q + b * q_batch + i[:, None] * q_row + d[None, :], mask=row, other=0.0)
        key = tl.load(k + b * k_batch + j[:, None] * k_row + d[None, :], mask=column, other=0.0)
        value = tl.load(v + b * v_batch + j[:, None] * v_row + d[None, :], mask=column, other=0.0)
        if AXIS == 1:
            score = tl.dot(query, tl.trans(key))
        else:
            score = tl.dot(key, tl.trans(query))
        score = score * (scale * LOG2E) + add
        line = (b * heads + h) * Q + i
        if SPARSE:
            floor = _least_kept(score, tl.load(keep + b), AXIS)
            tl.store(least + line, floor / LOG2E, mask=i < Q)
            score = tl.where(score >= tl.expand_dims(floor, AXIS), score, float("-inf"))
        top = tl.max(score, AXIS)
        weight = tl.exp2(score - tl.expand_dims(top, AXIS))
        total = tl.sum(weight, AXIS)
        share = weight.to(value.dtype)
        if AXIS == 0:
            share = tl.trans(share)
        seen = tl.dot(share, value) / total[:, None]
        spot = (b * Q + i[:, None]) * (heads * SIZE) + d[None, :]
        tl.store(out + spot, seen.to(out.dtype.element_ty), mask=row)
        tl.store(lse + line, (top + tl.log2(total)) / LOG2E, mask=i < Q)


@triton.jit
def _attend_backward(
    dout, q, k, v, bias, rows, out, lse, least, version, dq, dk, dv, batch, Q, K, bias_row, bias_batch,
    dout_row, q_row, k_row, v_row, dout_batch, q_batch, k_batch, v_batch,
    dq_row, dk_row, dv_row, dq_batch, dk_batch, dv_batch, heads, scale,
    kind: tl.constexpr, PADDED: tl.constexpr, SPARSE: tl.constexpr, VERSIONS: tl.constexpr,
    OF_QUERIES: tl.constexpr, OF_KEYS: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, HEADS: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """The gradients of queries, which need a tile with all keys, of keys and values, which need one with all
    queries, or of both."""
    b = tl.program_id(0).to(tl.int64)
    at = tl.load(version + b // batch) * batch + b % batch if VERSIONS else b
    i, j = tl.arange(0, BLOCK_Q), tl.arange(0, BLOCK_K)
    if not OF_KEYS:
        i += tl.program_id(1) * BLOCK_Q
    if not OF_QUERIES:
        j += tl.program_id(1) * BLOCK_K
    row, column = (i < Q)[:, None], (j < K)[:, None]
    add = _bias(bias, rows, b, i, j, Q, K, bias_row, bias_batch, kind, PADDED)
    for head in range(HEADS):
        h = tl.program_id(2) * HEADS + head
        d = h * SIZE + tl.arange(0, SIZE)
        query = tl.load(q + b * q_batch + i[:, None] * q_row + d[None, :], mask=row, other=0.0)
        key = tl.load(k + at * k_batch + j[:, None] * k_row + d[None, :], mask=column, other=0.0)
        value = tl.load(v + at * v_batch + j[:, None] * v_row + d[None, :], mask=column, other=0.0)
        grad = tl.load(dout + b * dout_batch + i[:, None] * dout_row + d[None, :], mask=row, other=0.0)
        spot = (b * Q + i[:, None]) * (heads * SIZE) + d[None, :]
        seen = tl.load(out + spot, mask=row, other=0.0).to(tl.float32)
        line = (b * heads + h) * Q + i
        level = tl.load(lse + line, mask=i < Q, other=float("inf"))
        score = tl.dot(key, tl.trans(query)) * (scale * LOG2E) + add  # (BK, BQ)
        if SPARSE:
            # Products of the other orientation may round otherwise.
            floor = tl.load(least + line, mask=i < Q, other=0.0) * LOG2E
            score = tl.where(score >= (floor - 1e-5 * tl.abs(floor))[None, :], score, float("-inf"))
        weight = tl.exp2(score - (level * LOG2E)[None, :])
        along = tl.sum(grad.to(tl.float32) * seen, 1)
        dscore = (weight * (tl.dot(value, tl.trans(grad)) - along[None, :]) * scale).to(query.dtype)
        if OF_QUERIES:
            place = dq + b * dq_batch + i[:, None] * dq_row + d[None, :]
            tl.store(place, tl.dot(tl.trans(dscore), key).to(dq.dtype.element_ty), mask=row)
        if OF_KEYS:
            place = dv + b * dv_batch + j[:, None] * dv_row + d[None, :]
            tl.store(place, tl.dot(weight.to(grad.dtype), grad).to(dv.dtype.element_ty), mask=column)
            place = dk + b * dk_batch + j[:, None] * dk_row + d[None, :]
            tl.store(place, tl.dot(dscore, query).to(dk.dtype.element_ty), mask=column)


def attend(
    q: Tensor, k: Tensor, v: Tensor, heads: int, bias: Tensor | None, rows: Tensor | None,
    out: Tensor, lse: Tensor, keep: Tensor | None = None, least: Tensor | None = None,
) -> None:  # fmt: skip
    size, queries, keys = q.shape[-1] // heads, q.shape[1], k.shape[1]
    tile = tile_of(len(q), queries, keys, heads)
    _attend[(len(q), triton.cdiv(queries, tile.queries), heads // tile.heads)](
        q, k, v, *_table(bias, rows, q), out, lse, lse if least is None else least,
        queries, keys, *_strides(bias),
        q.stride(1), k.stride(1), v.stride(1), q.stride(0), k.stride(0), v.stride(0), heads, size**-0.5,
        lse if keep is None else keep,
        **_kind(bias, rows), SPARSE=keep is not None, AXIS=tile.axis,
        BLOCK_Q=tile.queries, BLOCK_K=tile.keys, HEADS=tile.heads, SIZE=size, num_warps=tile.warps,
    )  # fmt: skip


def attend_backward(
    dout: Tensor, q: Tensor, k: Tensor, v: Tensor, heads: int, bias: Tensor | None, rows: Tensor | None,
    out: Tensor, lse: Tensor, dq: Tensor, dk: Tensor, dv: Tensor, least: Tensor | None = None,
    version: Tensor | None = None,
) -> None:  # fmt: skip
    size, queries, keys = q.shape[-1] // heads, q.shape[1], k.shape[1]
    for tile in tiles_backward(len(q), queries, keys, heads):
        blocks = _blocks(tile, queries, keys)
        _attend_backward[(len(q), blocks, heads // tile.heads)](
            dout, q, k, v, *_table(bias, rows, q), out, lse, lse if least is None else least,
            lse if version is None else version, dq, dk, dv,
            len(q) if version is None else len(q) // len(version), queries, keys, *_strides(bias),
            dout.stride(1), q.stride(1), k.stride(1), v.stride(1),
            dout.stride(0), q.stride(0), k.stride(0), v.stride(0),
            dq.stride(1), dk.stride(1), dv.stride(1), dq.stride(0), dk.stride(0), dv.stride(0),
            heads, size**-0.5,
            **_kind(bias, rows), SPARSE=least is not None, VERSIONS=version is not None,
            OF_QUERIES=tile.keys >= keys, OF_KEYS=tile.queries >= queries,
            BLOCK_Q=tile.queries, BLOCK_K=tile.keys, HEADS=tile.heads, SIZE=size, num_warps=tile.warps,
        )  # fmt: skip


def tile_of(instances: int, queries: int, keys: int, heads: int) -> Tile:
    """The fastest on an H200 for 50 to 200 customers (`benchmarks.tune`)."""
    width = power(keys)
    if width <= 128:
        tile = Tile(min(64, power(queries)), width, heads, 4, axis=1)
    else:
        tile = Tile(min(32, power(queries), max(16, 16384 // width)), width, heads, 4 if width <= 256 else 8)
    return _enough(tile, instances * _blocks(tile, queries, keys))


def tiles_backward(instances: int, queries: int, keys: int, heads: int) -> tuple[Tile, ...]:
    """One tile for all gradients where queries and keys are few, or else one for keys and one for queries."""
    height, width = power(queries), power(keys)
    tiles: tuple[Tile, ...]
    if height * width <= 16384:
        tiles = (Tile(height, width, heads, 4 if height * width <= 8192 else 8),)
    else:
        warps = 4 if max(height, width // 2) <= 128 else 8
        few_keys, few_queries = max(16, 2048 * warps // height), max(16, 2048 * warps // width)
        tiles = Tile(height, few_keys, heads, warps), Tile(few_queries, width, heads, warps)
    return tuple(_enough(tile, instances * _blocks(tile, queries, keys)) for tile in tiles)


def _blocks(tile: Tile, queries: int, keys: int) -> int:
    """Programs that an instance takes, as its tiles have all queries, or all keys."""
    return max(triton.cdiv(keys, tile.keys), triton.cdiv(queries, tile.queries))


def _enough(tile: Tile, programs: int) -> Tile:
    """The tile with so few heads that there are PROGRAMS, if that many can be made of these."""
    heads = tile.heads
    while heads % 2 == 0 and programs * (tile.heads // heads) < PROGRAMS:
        heads //= 2
    return tile._replace(heads=heads)


def _kind(bias: Tensor | None, rows: Tensor | None) -> dict[str, int]:
    if bias is None:
        return {"kind": NONE, "PADDED": False}
    if rows is not None:
        kind = ROWS
    else:
        kind = MASK if bias.dtype == torch.bool else NUMBERS
    return {"kind": kind, "PADDED": is_padded(bias)}


def _table(bias: Tensor | None, rows: Tensor | None, stand_in: Tensor) -> tuple[Tensor, Tensor]:
    if bias is not None and bias.dtype == torch.bool:
        bias = bias.view(torch.uint8)
    return (stand_in if bias is None else bias), (stand_in if rows is None else rows)


def _strides(bias: Tensor | None) -> tuple[int, int]:
    return (0, 0) if bias is None else (bias.stride(1), bias.stride(0))


def holds(query: Tensor, key: Tensor, heads: int) -> bool:
    """Whether `attend` can: few enough queries and keys, and heads that matrix units take."""
    return max(query.shape[1], key.shape[1]) <= MAX_KEYS and query.shape[-1] // heads in HEADS


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
