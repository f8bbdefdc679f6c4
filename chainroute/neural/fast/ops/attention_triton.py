"""Kernels of `attention`: each program handles some queries and keys of one instance, head after head.

The matrices of one instance are tiny (51 nodes, 8 heads of 16), so general kernels spend their time on
launches and padding. What costs most is the bias, whose rows have odd lengths and no alignment: a program
whose tile has all keys, or all queries, reads it once for all its heads. Of larger instances such a tile
would be mostly padding and overflow the registers, so programs go through them block by block.
Tiles have queries down and keys across, so that sums over keys stay within a warp, or else are turned round:
those that sum over queries, and those with too many keys. Not those that hold all queries while keys come by,
since what they keep of each query would be in the registers of every warp.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from chainroute.neural.fast.ops.rows import is_padded, power

HEADS = (16, 32, 64, 128)  # numbers of a head, that matrix units take
MAX_KEYS = 1024  # of the widest tile that fits into the registers of a program, as the sparse branch needs
MANY = 1024  # instances: steps of a batch, whose programs need not share the work of one
PROGRAMS = 192  # that keep an H200 busy; a bias is read once for all heads of a program, so not more
NONE, NUMBERS, MASK, ROWS = 0, 1, 2, 3  # kinds of bias: see `attend`
LOG2E = tl.constexpr(1.4426950408889634)  # exponentials are of base 2, which is what the hardware has
MAX_HALVINGS = tl.constexpr(32)  # after which scores that are not told apart are equal
LOWEST = tl.constexpr(-1e30)  # below any score but minus infinity, from which nothing can be subtracted


class Tile(NamedTuple):
    """What one program handles at a time: of the queries or keys that it owns, and of those it goes through
    block by block if the tile has not all of them. It is no larger than the power of two that holds all, to
    which a bias may be padded."""

    queries: int
    keys: int
    heads: int
    warps: int
    owns: str = "queries"  # on the way back also "keys", or "all" if the tile has all queries


@triton.jit
def _node(rows, j, S, K, kind: tl.constexpr):
    """The nodes that keys j stand at, if the bias has a row of each node: what `rows` says of the first S."""
    if kind == 3:
        stands = tl.load(rows + j, mask=j < S, other=0).to(tl.int32)
        return tl.where(j < S, stands, tl.where(j < K, j - S, 0))
    else:
        return j


@triton.jit
def _bias(
    bias, bias_row, i, j, node, Q, K,
    kind: tl.constexpr, PADDED: tl.constexpr, AXIS: tl.constexpr, HIDE: tl.constexpr,
):  # fmt: skip
    """What is added to the scores of queries i and keys j, keys along an axis; with HIDE minus infinity
    beyond the last key."""
    inside = (j < K)[:, None] & (i < Q)[None, :]
    if kind == 1:  # a number for each query and key
        at = bias + i[None, :] * bias_row + j[:, None]
        add = tl.load(at, mask=inside, other=0.0).to(tl.float32)
    elif kind == 2:  # whether the query may see the key
        at = bias + i[None, :] * bias_row + j[:, None]
        seen = tl.load(at, mask=(i < Q)[None, :] if PADDED else inside, other=1)
        add = tl.where(seen != 0, 0.0, float("-inf"))
    elif kind == 3:  # nearness of node i to the node that key j stands at
        at = bias + node[:, None] * bias_row + i[None, :]
        add = (tl.load(at) if PADDED else tl.load(at, mask=inside, other=0.0)).to(tl.float32)
    else:
        add = tl.zeros([j.shape[0], i.shape[0]], tl.float32)
    if HIDE and not (kind == 2 and PADDED):  # padding hides by itself
        add = tl.where((j < K)[:, None], add, float("-inf"))
    return tl.trans(add) if AXIS == 1 else add


@triton.jit
def _least_kept(score, keep, inside, AXIS: tl.constexpr):
    """The keep-th largest score of each query that is inside, keys along an axis, or the least if it sees no
    more: by bisection, until they all have so many keys, or as many more as are equal."""
    seen = score > float("-inf")
    low, high = tl.min(tl.where(seen, score, float("inf")), AXIS), tl.max(score, AXIS)
    count, halvings = tl.sum(seen.to(tl.int32), AXIS), 0
    while (halvings < MAX_HALVINGS) & (tl.max((inside & (count > keep)).to(tl.int32), 0) > 0):
        middle = (low + high) / 2
        above = tl.sum((score >= tl.expand_dims(middle, AXIS)).to(tl.int32), AXIS)
        low, high = tl.where(above >= keep, middle, low), tl.where(above >= keep, high, middle)
        count = tl.where(above >= keep, above, count)
        halvings += 1
    return tl.min(tl.where(score >= tl.expand_dims(low, AXIS), score, float("inf")), AXIS)


@triton.jit
def _rows(x, x_row, row, count, d):
    """Numbers d of some rows; zeros beyond the last row."""
    return tl.load(x + row[:, None] * x_row + d[None, :], mask=(row < count)[:, None], other=0.0)


@triton.jit
def _put(x, x_row, row, count, d, numbers):
    """Writes numbers d of some rows, none beyond the last row."""
    place = x + row[:, None] * x_row + d[None, :]
    tl.store(place, numbers.to(x.dtype.element_ty), mask=(row < count)[:, None])


@triton.jit
def _products(of_queries, of_keys, AXIS: tl.constexpr):
    """The row of each query times that of each key, keys along an axis."""
    if AXIS == 1:
        return tl.dot(of_queries, tl.trans(of_keys))
    else:
        return tl.dot(of_keys, tl.trans(of_queries))


@triton.jit
def _attend(
    q, k, v, bias, rows, out, lse, least, Q, K, S, bias_row, bias_batch,
    q_row, k_row, v_row, q_batch, k_batch, v_batch, heads, scale, keep,
    kind: tl.constexpr, PADDED: tl.constexpr, SPARSE: tl.constexpr, WHOLE: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, HEADS: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """Unless the tile has the WHOLE of the keys, they come block by block: what was summed up is scaled down
    whenever their maximum rises."""
    AXIS: tl.constexpr = 1 if BLOCK_K <= 128 else 0  # of the keys; a warp does not hold more of a query
    b = tl.program_id(0).to(tl.int64)
    q, k, v = q + b * q_batch, k + b * k_batch, v + b * v_batch
    bias, rows = bias + b * bias_batch, rows + b * S
    out, lse, least = out + b * Q * heads * SIZE, lse + b * heads * Q, least + b * heads * Q
    i, j = tl.program_id(1) * BLOCK_Q + tl.arange(0, BLOCK_Q), tl.arange(0, BLOCK_K)
    if WHOLE:
        add = _bias(bias, bias_row, i, j, _node(rows, j, S, K, kind), Q, K, kind, PADDED, AXIS, True)
    for head in range(HEADS):
        h = tl.program_id(2) * HEADS + head
        d = h * SIZE + tl.arange(0, SIZE)
        query = _rows(q, q_row, i, Q, d)
        top = tl.full([BLOCK_Q], LOWEST, tl.float32)
        total = tl.zeros([BLOCK_Q], tl.float32)
        seen = tl.zeros([BLOCK_Q, SIZE], tl.float32)
        for start in range(0, 1 if WHOLE else K, BLOCK_K):
            if not WHOLE:
                j = start + tl.arange(0, BLOCK_K)
                add = _bias(bias, bias_row, i, j, _node(rows, j, S, K, kind), Q, K, kind, PADDED, AXIS, True)
            key, value = _rows(k, k_row, j, K, d), _rows(v, v_row, j, K, d)
            score = _products(query, key, AXIS) * scale + add
            if SPARSE:
                floor = _least_kept(score, tl.load(keep + b), i < Q, AXIS)
                tl.store(least + h * Q + i, floor, mask=i < Q)
                score = tl.where(score >= tl.expand_dims(floor, AXIS), score, float("-inf"))
            highest = tl.max(score, AXIS)
            if not WHOLE:
                highest = tl.maximum(highest, top)
                shrink = tl.exp2((top - highest) * LOG2E)
                total, seen = total * shrink, seen * shrink[:, None]
            top = highest
            weight = tl.exp2(score * LOG2E - tl.expand_dims(top * LOG2E, AXIS))
            total += tl.sum(weight, AXIS)
            share = weight.to(value.dtype)
            seen = tl.dot(share if AXIS == 1 else tl.trans(share), value, seen)
        spot = out + i[:, None] * (heads * SIZE) + d[None, :]
        tl.store(spot, (seen / total[:, None]).to(out.dtype.element_ty), mask=(i < Q)[:, None])
        tl.store(lse + h * Q + i, top + tl.log2(total) / LOG2E, mask=i < Q)


@triton.jit
def _looked(dout, q, out, lse, least, dout_row, q_row, out_row, i, Q, h, d, SPARSE: tl.constexpr):
    """What the gradient of the scores takes of queries i and head h: queries, gradients of what they saw and
    how far these go along it, levels of the softmax and the least scores kept."""
    query, grad, seen = _rows(q, q_row, i, Q, d), _rows(dout, dout_row, i, Q, d), _rows(out, out_row, i, Q, d)
    along = tl.sum(grad.to(tl.float32) * seen.to(tl.float32), 1)
    level = tl.load(lse + h * Q + i, mask=i < Q, other=float("inf"))  # beyond the last query nothing weighs
    floor = level
    if SPARSE:
        floor = tl.load(least + h * Q + i, mask=i < Q, other=0.0)
        floor -= 1e-5 * tl.abs(floor)  # products of another tile may round otherwise
    return query, grad, along, level, floor


@triton.jit
def _attend_backward(
    dout, q, k, v, bias, rows, out, lse, least, version, dq, dk, dv, batch, Q, K, S, bias_row, bias_batch,
    dout_row, q_row, k_row, v_row, dout_batch, q_batch, k_batch, v_batch,
    dq_row, dk_row, dv_row, dq_batch, dk_batch, dv_batch, heads, scale,
    kind: tl.constexpr, PADDED: tl.constexpr, SPARSE: tl.constexpr, VERSIONS: tl.constexpr,
    OF_QUERIES: tl.constexpr, OF_KEYS: tl.constexpr, WHOLE: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, HEADS: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """The gradients of a block of queries, summed over all keys; of a block of keys and values, summed over
    all queries; or of both, if the tile has all queries. Keys come block by block for the gradients of
    queries, and queries for those of keys alone, unless the tile has the WHOLE of them."""
    KEYS_COME: tl.constexpr = OF_QUERIES and not WHOLE
    AXIS: tl.constexpr = 0 if OF_KEYS and not KEYS_COME else 1
    b = tl.program_id(0).to(tl.int64)
    at = tl.load(version + b // batch) * batch + b % batch if VERSIONS else b
    q, k, v = q + b * q_batch, k + at * k_batch, v + at * v_batch
    dq, dk, dv = dq + b * dq_batch, dk + b * dk_batch, dv + b * dv_batch
    bias, rows = bias + b * bias_batch, rows + b * S
    dout, out, out_row = dout + b * dout_batch, out + b * Q * heads * SIZE, heads * SIZE
    lse, least = lse + b * heads * Q, least + b * heads * Q
    i, j = tl.arange(0, BLOCK_Q), tl.arange(0, BLOCK_K)
    if not OF_KEYS:
        i += tl.program_id(1) * BLOCK_Q
    if not OF_QUERIES:
        j += tl.program_id(1) * BLOCK_K
    node = _node(rows, j, S, K, kind)
    if WHOLE:
        add = _bias(bias, bias_row, i, j, node, Q, K, kind, PADDED, AXIS, OF_QUERIES)
    for head in range(HEADS):
        h = tl.program_id(2) * HEADS + head
        d = h * SIZE + tl.arange(0, SIZE)
        if not KEYS_COME:
            key, value = _rows(k, k_row, j, K, d), _rows(v, v_row, j, K, d)
        if OF_QUERIES:
            query, grad, along, level, floor = _looked(
                dout, q, out, lse, least, dout_row, q_row, out_row, i, Q, h, d, SPARSE
            )
        dquery = tl.zeros([BLOCK_Q, SIZE], tl.float32)
        dkey, dvalue = tl.zeros([BLOCK_K, SIZE], tl.float32), tl.zeros([BLOCK_K, SIZE], tl.float32)
        for start in range(0, 1 if WHOLE else K if OF_QUERIES else Q, BLOCK_K if OF_QUERIES else BLOCK_Q):
            if KEYS_COME:
                j = start + tl.arange(0, BLOCK_K)
                node = _node(rows, j, S, K, kind)
                key, value = _rows(k, k_row, j, K, d), _rows(v, v_row, j, K, d)
                dkey, dvalue = tl.zeros_like(dkey), tl.zeros_like(dvalue)
            if not OF_QUERIES:
                i = start + tl.arange(0, BLOCK_Q)
                query, grad, along, level, floor = _looked(
                    dout, q, out, lse, least, dout_row, q_row, out_row, i, Q, h, d, SPARSE
                )
            if not WHOLE:
                add = _bias(bias, bias_row, i, j, node, Q, K, kind, PADDED, AXIS, OF_QUERIES)
            score = _products(query, key, AXIS) * scale + add
            if SPARSE:
                score = tl.where(score >= tl.expand_dims(floor, AXIS), score, float("-inf"))
            weight = tl.exp2(score * LOG2E - tl.expand_dims(level * LOG2E, AXIS))
            if OF_KEYS:  # before the next product, or registers overflow
                share = weight.to(grad.dtype)
                dvalue = tl.dot(share if AXIS == 0 else tl.trans(share), grad, dvalue)
            dscore = weight * (_products(grad, value, AXIS) - tl.expand_dims(along, AXIS))
            dscore = dscore.to(query.dtype)
            if OF_QUERIES:
                dquery = tl.dot(dscore if AXIS == 1 else tl.trans(dscore), key, dquery)
            if OF_KEYS:
                dkey = tl.dot(dscore if AXIS == 0 else tl.trans(dscore), query, dkey)
            if OF_KEYS and KEYS_COME:  # of all queries, so that nothing is to be added
                _put(dv, dv_row, j, K, d, dvalue)
                _put(dk, dk_row, j, K, d, dkey * scale)
        if OF_QUERIES:
            _put(dq, dq_row, i, Q, d, dquery * scale)
        if OF_KEYS and not KEYS_COME:
            _put(dv, dv_row, j, K, d, dvalue)
            _put(dk, dk_row, j, K, d, dkey * scale)


def attend(
    q: Tensor, k: Tensor, v: Tensor, heads: int, bias: Tensor | None, rows: Tensor | None,
    out: Tensor, lse: Tensor, keep: Tensor | None = None, least: Tensor | None = None,
) -> None:  # fmt: skip
    size, queries, keys = q.shape[-1] // heads, q.shape[1], k.shape[1]
    tile = tile_of(len(q), queries, keys, heads, keep is not None)
    whole = tile.keys >= keys
    _attend[(len(q), _blocks(tile, queries, keys), heads // tile.heads)](
        q, k, v, *_table(bias, rows, q), out, lse, lse if least is None else least,
        queries, keys, 0 if rows is None else rows.shape[1], *_strides(bias),
        q.stride(1), k.stride(1), v.stride(1), q.stride(0), k.stride(0), v.stride(0), heads, size**-0.5,
        lse if keep is None else keep,
        **_kind(bias, rows), SPARSE=keep is not None, WHOLE=whole,
        BLOCK_Q=tile.queries, BLOCK_K=tile.keys, HEADS=tile.heads, SIZE=size,
        num_warps=tile.warps, num_stages=_stages(whole),
    )  # fmt: skip


def attend_backward(
    dout: Tensor, q: Tensor, k: Tensor, v: Tensor, heads: int, bias: Tensor | None, rows: Tensor | None,
    out: Tensor, lse: Tensor, dq: Tensor, dk: Tensor, dv: Tensor, least: Tensor | None = None,
    version: Tensor | None = None,
) -> None:  # fmt: skip
    size, queries, keys = q.shape[-1] // heads, q.shape[1], k.shape[1]
    for tile in tiles_backward(len(q), queries, keys, heads):
        of_queries, of_keys = tile.owns in ("queries", "all"), tile.owns in ("keys", "all")
        whole = tile.keys >= keys if of_queries else tile.queries >= queries
        _attend_backward[(len(q), _blocks(tile, queries, keys), heads // tile.heads)](
            dout, q, k, v, *_table(bias, rows, q), out, lse, lse if least is None else least,
            lse if version is None else version, dq, dk, dv,
            len(q) if version is None else len(q) // len(version), queries, keys,
            0 if rows is None else rows.shape[1], *_strides(bias),
            dout.stride(1), q.stride(1), k.stride(1), v.stride(1),
            dout.stride(0), q.stride(0), k.stride(0), v.stride(0),
            dq.stride(1), dk.stride(1), dv.stride(1), dq.stride(0), dk.stride(0), dv.stride(0),
            heads, size**-0.5,
            **_kind(bias, rows), SPARSE=least is not None, VERSIONS=version is not None,
            OF_QUERIES=of_queries, OF_KEYS=of_keys, WHOLE=whole,
            BLOCK_Q=tile.queries, BLOCK_K=tile.keys, HEADS=tile.heads, SIZE=size,
            num_warps=tile.warps, num_stages=_stages(whole),
        )  # fmt: skip


def tile_of(instances: int, queries: int, keys: int, heads: int, sparse: bool = False) -> Tile:
    """The fastest on an H200 for 50 to 200 customers (`benchmarks.tune`). The sparse branch, which compares
    all scores of a query, needs a tile with all keys."""
    height, width = power(queries), power(keys)
    if width <= 128:
        tile = Tile(min(64, height), width, heads, 4)
    elif sparse:
        tile = Tile(16, width, 1, max(2, width // 128))
    elif width <= 256:
        tile = Tile(min(64, height), 32, 1, 4)
    else:
        tile = Tile(min(32, height), 64, 1, 2)
    return _enough(tile, instances * _blocks(tile, queries, keys))


def tiles_backward(instances: int, queries: int, keys: int, heads: int) -> tuple[Tile, ...]:
    """One tile for all gradients where it has all queries, with all keys or else, of many instances, block by
    block; otherwise one for keys and one for queries."""
    height, width = power(queries), power(keys)
    tiles: tuple[Tile, ...]
    if height * width <= 16384:
        tiles = (Tile(height, width, heads, 4 if height * width <= 8192 else 8, "all"),)
    elif height <= 128 and instances >= MANY:
        tiles = (Tile(height, 64, heads, 4, "all"),)
    else:
        of_keys = Tile(32, min(64, width), 1, 4, "keys")
        if height <= 128:  # then blocks are slower, which read the bias once for each head
            of_keys = Tile(height, 8192 // height, heads, 4, "keys")
        tiles = of_keys, Tile(min(64, height), min(64, width), math.gcd(2, heads), 4)
    return tuple(_enough(tile, instances * _blocks(tile, queries, keys)) for tile in tiles)


def _blocks(tile: Tile, queries: int, keys: int) -> int:
    """Programs that share the queries, or the keys, of an instance."""
    if tile.owns == "all":
        return 1
    return triton.cdiv(keys, tile.keys) if tile.owns == "keys" else triton.cdiv(queries, tile.queries)


def _enough(tile: Tile, programs: int) -> Tile:
    """The tile with so few heads that there are PROGRAMS, if that many can be made of these."""
    heads = tile.heads
    while heads % 2 == 0 and programs * (tile.heads // heads) < PROGRAMS:
        heads //= 2
    return tile._replace(heads=heads)


def _stages(whole: bool) -> int:
    """How far loads are ahead of their use: of heads, but not of blocks, which are too short for it."""
    return 3 if whole else 1


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
    return (stand_in if bias is None else bias), (stand_in if rows is None else rows.contiguous())


def _strides(bias: Tensor | None) -> tuple[int, int]:
    return (0, 0) if bias is None else (bias.stride(1), bias.stride(0))


def holds(query: Tensor, key: Tensor, heads: int, sparse: bool = False) -> bool:
    """Whether `attend` can: heads that matrix units take and, for the sparse branch, few enough keys."""
    return query.shape[-1] // heads in HEADS and (not sparse or key.shape[1] <= MAX_KEYS)


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
