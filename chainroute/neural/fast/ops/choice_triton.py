"""The choice of the next visit as Triton kernels; `choice` says what each of them does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from chainroute.neural.fast.ops import choice
from chainroute.neural.fast.ops.rows import padded, power, versions_of
from chainroute.neural.fast.ops.rows_triton import ROWS

MAX_NODES = 256  # of which a program holds the keys and their gradient
STEPS_AT_A_TIME = 16  # of larger problems, whose logits are written to memory


@triton.jit
def _keys(keys, b, i, n, key_row, key_batch, D: tl.constexpr):
    """The logit keys (N, D) of an instance."""
    d = tl.arange(0, D)
    return tl.load(keys + b * key_batch + i[:, None] * key_row + d[None, :], mask=(i < n)[:, None], other=0.0)


@triton.jit
def _bent(
    query, k, near, current, b, instance, s, i, S, n, query_row, query_batch, near_row, D: tl.constexpr
):
    """Queries (rows, D) and the tanh of how well they match the keys k, (rows, N)."""
    d = tl.arange(0, D)
    row = (s < S)[:, None]
    q = tl.load(query + b * query_batch + s[:, None] * query_row + d[None, :], mask=row, other=0.0)
    at = tl.load(current + b * S + s, mask=s < S, other=0)
    match = tl.dot(q, tl.trans(k))
    match += tl.load(near + (instance * n + at)[:, None] * near_row + i[None, :])
    return q, 2 * tl.sigmoid(2 * match) - 1


@triton.jit
def _legal(mask, b, s, i, S, mask_row):
    """Which nodes trajectories s may visit, (rows, N)."""
    return tl.load(mask + (b * S + s)[:, None] * mask_row + i[None, :], mask=(s < S)[:, None], other=0) != 0


@triton.jit
def _choose(
    query, keys, near, current, mask, draws, action, S, n, query_row, key_row, query_batch, key_batch,
    near_row, mask_row, clip,
    DRAWS: tl.constexpr, R: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(0).to(tl.int64)
    s, i = tl.program_id(1) * R + tl.arange(0, R), tl.arange(0, N)
    k = _keys(keys, b, i, n, key_row, key_batch, D)
    _, bent = _bent(query, k, near, current, b, b, s, i, S, n, query_row, query_batch, near_row, D)
    legal = _legal(mask, b, s, i, S, mask_row)
    score = clip * bent
    if DRAWS:
        inside = (s < S)[:, None] & (i < n)[None, :]
        spot = (b * S + s)[:, None] * n + i[None, :]
        score -= tl.log(tl.load(draws + spot, mask=inside, other=1.0))
    tl.store(action + b * S + s, tl.argmax(tl.where(legal, score, float("-inf")), 1).to(tl.int64), mask=s < S)


def choose(
    query: Tensor, keys: Tensor, near: Tensor, current: Tensor, mask: Tensor, draws: Tensor | None,
    clip: float, action: Tensor,
) -> None:  # fmt: skip
    (batch, s, dim), n, near, mask = query.shape, keys.shape[1], padded(near), padded(mask)
    _choose[(batch, triton.cdiv(s, ROWS))](
        query, keys, near, current, mask.view(torch.uint8), near if draws is None else draws, action, s, n,
        query.stride(1), keys.stride(1), query.stride(0), keys.stride(0), near.stride(1), mask.stride(1),
        clip, draws is not None, ROWS, power(n), dim, num_warps=4 if n <= 64 else 8,
    )  # fmt: skip


@triton.jit
def _choose_backward(
    query, keys, near, current, mask, action, weight, dquery, dkeys, likelihood, version, batch, S, n,
    query_row, key_row, query_batch, key_batch, dkey_row, dkey_batch, near_row, mask_row, clip,
    VERSIONS: tl.constexpr, BLOCKS: tl.constexpr, R: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(0).to(tl.int64)
    at = tl.load(version + b // batch) * batch + b % batch if VERSIONS else b
    i, d = tl.arange(0, N), tl.arange(0, D)
    k = _keys(keys, at, i, n, key_row, key_batch, D)
    dkey = tl.zeros([N, D], tl.float32)
    for block in range(BLOCKS):
        s = block * R + tl.arange(0, R)
        q, bent = _bent(
            query, k, near, current, b, b % batch, s, i, S, n, query_row, query_batch, near_row, D
        )
        row = (s < S)[:, None]
        legal = _legal(mask, b, s, i, S, mask_row)
        logit = tl.where(legal, clip * bent, float("-inf"))
        top = tl.where(s < S, tl.max(logit, 1), 0.0)
        log_p = logit - (top + tl.log(tl.sum(tl.exp(logit - top[:, None]), 1)))[:, None]
        hit = i[None, :] == tl.load(action + b * S + s, mask=s < S, other=-1)[:, None]
        tl.store(likelihood + b * S + s, tl.sum(tl.where(hit, log_p, 0.0), 1), mask=s < S)
        w = tl.load(weight + (b % batch) * S + s, mask=s < S, other=0.0)
        slope = clip * (1 - bent * bent)
        dmatch = w[:, None] * (hit.to(tl.float32) - tl.exp(log_p)) * slope
        dmatch = tl.where(legal & row, dmatch, 0.0).to(q.dtype)
        there = dquery + (b * S + s)[:, None] * D + d[None, :]
        tl.store(there, tl.dot(dmatch, k).to(dquery.dtype.element_ty), mask=row)
        dkey += tl.dot(tl.trans(dmatch), q)
    there = dkeys + b * dkey_batch + i[:, None] * dkey_row + d[None, :]
    tl.store(there, dkey.to(dkeys.dtype.element_ty), mask=(i < n)[:, None])


def choose_backward(
    query: Tensor, keys: Tensor, near: Tensor, current: Tensor, mask: Tensor, clip: float, action: Tensor,
    weight: Tensor, dquery: Tensor, dkeys: Tensor, likelihood: Tensor, version: Tensor | None = None,
) -> None:  # fmt: skip
    (batch, s, dim), n = query.shape, keys.shape[1]
    if n > MAX_NODES:
        size = STEPS_AT_A_TIME * len(near)
        for part in (slice(first, first + size) for first in range(0, batch, size)):
            times = slice(part.start // len(near), part.stop // len(near))
            own = keys[part] if version is None else versions_of(keys, version[times], len(query[part]))
            choice.choose_backward(
                query[part].float(), own.float(), near, current[part], mask[part], clip, action[part],
                weight, dquery[part], dkeys[part], likelihood[part],
            )  # fmt: skip
        return
    near, mask, (rows, warps) = padded(near), padded(mask), launch_backward(s, n)
    _choose_backward[(batch,)](
        query, keys, near, current, mask.view(torch.uint8), action, weight, dquery, dkeys, likelihood,
        current if version is None else version, len(near), s, n,
        query.stride(1), keys.stride(1), query.stride(0), keys.stride(0),
        dkeys.stride(1), dkeys.stride(0), near.stride(1), mask.stride(1), clip,
        version is not None, triton.cdiv(s, rows), rows, power(n), dim, num_warps=warps,
    )  # fmt: skip


def launch_backward(trajectories: int, nodes: int) -> tuple[int, int]:
    """Trajectories that a program handles at once, and warps: the fastest on an H200 (`benchmarks.tune`)."""
    if nodes > 128:
        return 16, 8
    return (power(trajectories), 4) if trajectories <= 64 else (128, 8)
