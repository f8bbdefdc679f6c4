"""The operations of the fast engine as Triton kernels; `ops_plain` says what each of them does."""

from __future__ import annotations

from functools import cache

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from chainroute.fast.fold import WIDTH
from chainroute.fast.kernels import attend, attend_backward, gate, gate_backward
from chainroute.fast.ops_plain import EPS, groups

__all__ = [
    "add",
    "add_normalise",
    "add_normalise_backward",
    "attend",
    "attend_backward",
    "choose",
    "choose_backward",
    "gate",
    "gate_backward",
    "normalise",
    "normalise_backward",
    "situate",
    "situate_backward",
]

ROWS = 16  # of D numbers handled by one program
BLOCK = 1024  # numbers handled by one program


# -- RGCR's relevance


@triton.jit
def _lengths(here, c, table, group):
    """By which cosines divide, in the first 4 of W columns: `fold.lengths`."""
    same = tl.dot(group, tl.trans(group), input_precision="ieee")
    gram = tl.dot(table, tl.trans(table)) * same
    square = tl.dot(c * tl.dot(c, gram, input_precision="ieee"), group, input_precision="ieee")
    h = here.to(tl.float32)
    return tl.maximum(tl.sqrt(tl.maximum(square, 0.0)) * tl.sqrt(tl.sum(h * h, 1))[:, None], 1e-8)


@triton.jit
def _relevance(here, c, flags, noise, table, group, b, s, S, SCORES: tl.constexpr, W: tl.constexpr):
    """The relevance of each constraint, in the first 4 of W columns, for rows s of instance b."""
    k = tl.arange(0, W)
    product = tl.dot(here, tl.trans(table))
    relevance = tl.dot(c * product, group, input_precision="ieee")
    if SCORES == "cosine":
        relevance /= _lengths(here, c, table, group)
    if SCORES == "gated":
        some = (s < S)[:, None] & (k < 4)[None, :]
        disturbance = tl.load(noise + (b * S + s)[:, None] * 4 + k[None, :], mask=some, other=0.0)
        flag = tl.load(flags + b * 4 + k, mask=k < 4, other=0.0)
        relevance = tl.sigmoid(relevance + disturbance) * flag[None, :]
    return relevance


@triton.jit
def _situate(
    nodes, current, attributes, flags, noise, table, group, out, S, n, table_row, table_column,
    SCORES: tl.constexpr, W: tl.constexpr, D: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(0)
    s = tl.program_id(1) * R + tl.arange(0, R)
    d, k = tl.arange(0, D), tl.arange(0, W)
    row = (s < S)[:, None]
    at = tl.load(current + b * S + s, mask=s < S, other=0)
    weights = tl.load(table + k[:, None] * table_row + d[None, :] * table_column)
    sums = tl.load(group + k[:, None] * W + k[None, :])
    here = tl.load(nodes + (b * n + at)[:, None] * D + d[None, :], mask=row, other=0.0).to(weights.dtype)
    c = tl.load(attributes + (b * S + s)[:, None] * W + k[None, :], mask=row, other=0.0)
    relevance = _relevance(here, c, flags, noise, weights, sums, b, s, S, SCORES, W)
    weighed = c * tl.dot(relevance, tl.trans(sums), input_precision="ieee")
    base = out + (b * S + s)[:, None] * (2 * W + D)
    tl.store(base + k[None, :], c.to(out.dtype.element_ty), mask=row)
    tl.store(base + W + k[None, :], weighed.to(out.dtype.element_ty), mask=row)
    tl.store(base + 2 * W + d[None, :], here.to(out.dtype.element_ty), mask=row)


def situate(
    nodes: Tensor,
    current: Tensor,
    attributes: Tensor,
    flags: Tensor,
    noise: Tensor,
    table: Tensor,
    scores: str,
    out: Tensor,
) -> None:
    (batch, n, dim), s = nodes.shape, current.shape[1]
    _situate[(batch, triton.cdiv(s, ROWS))](
        nodes, current, attributes, flags, noise, table, _groups(nodes.device), out, s, n, *table.stride(),
        scores, WIDTH, dim, ROWS,
    )  # fmt: skip


@triton.jit
def _situate_backward(
    grad, dsituation, nodes, current, attributes, flags, noise, table, group, dproduct, S, n,
    table_row, table_column,
    SCORES: tl.constexpr, W: tl.constexpr, D: tl.constexpr, R: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(0)
    s, i = tl.arange(0, R), tl.arange(0, N)
    d, k = tl.arange(0, D), tl.arange(0, W)
    row = (s < S)[:, None]
    at = tl.load(current + b * S + s, mask=s < S, other=-1)
    weights = tl.load(table + k[:, None] * table_row + d[None, :] * table_column)
    sums = tl.load(group + k[:, None] * W + k[None, :])
    here = tl.load(nodes + (b * n + at)[:, None] * D + d[None, :], mask=row, other=0.0).to(weights.dtype)
    c = tl.load(attributes + (b * S + s)[:, None] * W + k[None, :], mask=row, other=0.0)
    base = dsituation + (b * S + s)[:, None] * (2 * W + D)
    dweighed = tl.load(base + W + k[None, :], mask=row, other=0.0).to(tl.float32)
    ddot = tl.dot(dweighed * c, sums, input_precision="ieee")
    if SCORES == "cosine":
        ddot /= _lengths(here, c, weights, sums)
    if SCORES == "gated":
        relevance = _relevance(here, c, flags, noise, weights, sums, b, s, S, SCORES, W)
        ddot *= relevance * (1 - relevance)
    dprod = (c * tl.dot(ddot, tl.trans(sums), input_precision="ieee")).to(weights.dtype)
    tl.store(dproduct + (b * S + s)[:, None] * W + k[None, :], dprod, mask=row)
    by_score = tl.dot(dprod, weights)
    if SCORES == "cosine":
        h = here.to(tl.float32)
        share = tl.sum(h * by_score, 1) / tl.maximum(tl.sum(h * h, 1), 1e-16)
        by_score -= h * share[:, None]
    dhere = tl.load(base + 2 * W + d[None, :], mask=row, other=0.0).to(tl.float32) + by_score
    # Several trajectories may be at one node: their gradients are summed by a product with who is where.
    there = (i[:, None] == at[None, :]).to(weights.dtype)
    result = tl.dot(there, dhere.to(weights.dtype))
    spot = (b * n + i)[:, None] * D + d[None, :]
    inside = (i < n)[:, None]
    result += tl.load(grad + spot, mask=inside, other=0.0)
    tl.store(grad + spot, result, mask=inside)


def situate_backward(
    grad: Tensor, dsituation: Tensor, nodes: Tensor, current: Tensor, attributes: Tensor, flags: Tensor,
    noise: Tensor, table: Tensor, scores: str, dproduct: Tensor,
) -> None:  # fmt: skip
    (batch, n, dim), s = nodes.shape, current.shape[1]
    _situate_backward[(batch,)](
        grad, dsituation, nodes, current, attributes, flags, noise, table, _groups(nodes.device), dproduct,
        s, n, *table.stride(), scores, WIDTH, dim, _power(s), _power(n), num_warps=8,
    )  # fmt: skip


@cache
def _groups(device: torch.device) -> Tensor:
    """`groups` padded to (16, 16) for matrix units."""
    return F.pad(groups(device), (0, WIDTH - 4)).contiguous()


def _power(count: int) -> int:
    return max(16, int(triton.next_power_of_2(count)))


# -- normalisation


@triton.jit
def _normalise(
    contexts, nodes, x, inverse, total, S, n, row, EPS: tl.constexpr, R: tl.constexpr, D: tl.constexpr
):
    r = tl.program_id(0) * R + tl.arange(0, R)
    d = tl.arange(0, D)
    b, k = r // (S + n), r % (S + n)
    inside = (r < total)[:, None]
    context, node = inside & (k < S)[:, None], inside & (k >= S)[:, None]
    y = tl.load(contexts + (b * S + k)[:, None] * row + d[None, :], mask=context, other=0.0).to(tl.float32)
    y += tl.load(nodes + (b * n + k - S)[:, None] * D + d[None, :], mask=node, other=0.0)
    inv = 1 / tl.sqrt(tl.sum(y * y, 1) / D + EPS)
    tl.store(x + r[:, None] * D + d[None, :], (y * inv[:, None]).to(x.dtype.element_ty), mask=inside)
    tl.store(inverse + r, inv, mask=r < total)


def normalise(contexts: Tensor, nodes: Tensor, x: Tensor, inverse: Tensor) -> None:
    total = inverse.numel()
    _normalise[(triton.cdiv(total, ROWS),)](
        contexts, nodes, x, inverse, total, contexts.shape[1], nodes.shape[1], contexts.stride(1), EPS, ROWS,
        x.shape[-1],
    )  # fmt: skip


@triton.jit
def _normalise_backward(
    grad, dx, x, inverse, dnodes, dcontexts, total, S, n, row, R: tl.constexpr, D: tl.constexpr
):
    r = tl.program_id(0) * R + tl.arange(0, R)
    d = tl.arange(0, D)
    b, k = r // (S + n), r % (S + n)
    inside = (r < total)[:, None]
    context, node = inside & (k < S)[:, None], inside & (k >= S)[:, None]
    g = tl.load(dx + r[:, None] * D + d[None, :], mask=inside, other=0.0).to(tl.float32)
    y = tl.load(x + r[:, None] * D + d[None, :], mask=inside, other=0.0).to(tl.float32)
    inv = tl.load(inverse + r, mask=r < total, other=0.0)
    part = inv[:, None] * (g - y * (tl.sum(g * y, 1) / D)[:, None])
    there = dcontexts + (b * S + k)[:, None] * row + d[None, :]
    before = tl.load(there, mask=context, other=0.0).to(tl.float32)
    tl.store(there, (before + part).to(dcontexts.dtype.element_ty), mask=context)
    at = (b * n + k - S)[:, None] * D + d[None, :]
    part += tl.load(grad + at, mask=node, other=0.0)
    tl.store(dnodes + at, part, mask=node)


def normalise_backward(
    grad: Tensor, dx: Tensor, x: Tensor, inverse: Tensor, dnodes: Tensor, dcontexts: Tensor
) -> None:
    total = inverse.numel()
    _normalise_backward[(triton.cdiv(total, ROWS),)](
        grad, dx, x, inverse, dnodes, dcontexts, total, dcontexts.shape[1], grad.shape[1],
        dcontexts.stride(1), ROWS, grad.shape[-1],
    )  # fmt: skip


@triton.jit
def _add_normalise(
    a, delta, total, x, inverse, count, row, EPS: tl.constexpr, R: tl.constexpr, D: tl.constexpr
):
    r = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    d = tl.arange(0, D)
    inside = (r < count)[:, None]
    at = r[:, None] * D + d[None, :]
    y = tl.load(a + r[:, None] * row + d[None, :], mask=inside, other=0.0).to(tl.float32)
    y += tl.load(delta + at, mask=inside, other=0.0).to(tl.float32)
    inv = 1 / tl.sqrt(tl.sum(y * y, 1) / D + EPS)
    tl.store(total + at, y.to(total.dtype.element_ty), mask=inside)
    tl.store(x + at, (y * inv[:, None]).to(x.dtype.element_ty), mask=inside)
    tl.store(inverse + r, inv, mask=r < count)


def add_normalise(a: Tensor, delta: Tensor, total: Tensor, x: Tensor, inverse: Tensor) -> None:
    count = inverse.numel()
    _add_normalise[(triton.cdiv(count, ROWS),)](
        a, delta, total, x, inverse, count, a.stride(-2), EPS, ROWS, a.shape[-1]
    )


@triton.jit
def _add_normalise_backward(
    grad, dx, x, inverse, total, small, count, row, FULL: tl.constexpr, R: tl.constexpr, D: tl.constexpr
):
    r = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    d = tl.arange(0, D)
    inside = (r < count)[:, None]
    at = r[:, None] * D + d[None, :]
    g = tl.load(dx + at, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    inv = tl.load(inverse + r, mask=r < count, other=0.0)
    result = inv[:, None] * (g - y * (tl.sum(g * y, 1) / D)[:, None])
    result += tl.load(grad + at, mask=inside, other=0.0).to(tl.float32)
    if FULL:
        tl.store(total + at, result, mask=inside)
    tl.store(small + r[:, None] * row + d[None, :], result.to(small.dtype.element_ty), mask=inside)


def add_normalise_backward(
    grad: Tensor, dx: Tensor, x: Tensor, inverse: Tensor, total: Tensor | None, small: Tensor
) -> None:
    count = inverse.numel()
    _add_normalise_backward[(triton.cdiv(count, ROWS),)](
        grad, dx, x, inverse, small if total is None else total, small, count, small.stride(-2),
        total is not None, ROWS, grad.shape[-1],
    )  # fmt: skip


@triton.jit
def _add(a, delta, total, small, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    y = tl.load(a + at, mask=inside, other=0.0) + tl.load(delta + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(total + at, y, mask=inside)
    tl.store(small + at, y.to(small.dtype.element_ty), mask=inside)


def add(a: Tensor, delta: Tensor, total: Tensor, small: Tensor) -> None:
    _add[(triton.cdiv(a.numel(), BLOCK),)](a, delta, total, small, a.numel(), BLOCK)


# -- the choice of the next visit


@triton.jit
def _bent(
    query, keys, near, current, b, instance, s, i, S, n, query_row, key_row, query_batch, key_batch,
    D: tl.constexpr,
):  # fmt: skip
    """Queries (rows, D), keys (N, D) and the tanh of how well they match (rows, N)."""
    d = tl.arange(0, D)
    row, column = (s < S)[:, None], (i < n)[None, :]
    q = tl.load(query + b * query_batch + s[:, None] * query_row + d[None, :], mask=row, other=0.0)
    k = tl.load(keys + b * key_batch + i[:, None] * key_row + d[None, :], mask=(i < n)[:, None], other=0.0)
    at = tl.load(current + b * S + s, mask=s < S, other=0)
    match = tl.dot(q, tl.trans(k))
    match += tl.load(near + (instance * n + at)[:, None] * n + i[None, :], mask=row & column, other=0.0)
    return q, k, 2 * tl.sigmoid(2 * match) - 1


@triton.jit
def _choose(
    query, keys, near, current, mask, gumbel, action, S, n, query_row, key_row, query_batch, key_batch, clip,
    R: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(0).to(tl.int64)
    s, i = tl.program_id(1) * R + tl.arange(0, R), tl.arange(0, N)
    _, _, bent = _bent(
        query, keys, near, current, b, b, s, i, S, n, query_row, key_row, query_batch, key_batch, D
    )
    inside = (s < S)[:, None] & (i < n)[None, :]
    spot = (b * S + s)[:, None] * n + i[None, :]
    legal = tl.load(mask + spot, mask=inside, other=0) != 0
    score = clip * bent + tl.load(gumbel + spot, mask=inside, other=0.0)
    tl.store(action + b * S + s, tl.argmax(tl.where(legal, score, float("-inf")), 1).to(tl.int64), mask=s < S)


def choose(
    query: Tensor, keys: Tensor, near: Tensor, current: Tensor, mask: Tensor, gumbel: Tensor, clip: float,
    action: Tensor,
) -> None:  # fmt: skip
    (batch, s, dim), n = query.shape, keys.shape[1]
    _choose[(batch, triton.cdiv(s, ROWS))](
        query, keys, near, current, mask.view(torch.uint8), gumbel, action, s, n,
        query.stride(1), keys.stride(1), query.stride(0), keys.stride(0), clip, ROWS, _power(n), dim,
    )  # fmt: skip


@triton.jit
def _choose_backward(
    query, keys, near, current, mask, action, weight, dquery, dkeys, likelihood, batch, S, n,
    query_row, key_row, query_batch, key_batch, dkey_row, dkey_batch, clip,
    BLOCKS: tl.constexpr, R: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(0).to(tl.int64)
    i, d = tl.arange(0, N), tl.arange(0, D)
    dkey = tl.zeros([N, D], tl.float32)
    for block in range(BLOCKS):
        s = block * R + tl.arange(0, R)
        q, k, bent = _bent(
            query,
            keys,
            near,
            current,
            b,
            b % batch,
            s,
            i,
            S,
            n,
            query_row,
            key_row,
            query_batch,
            key_batch,
            D,
        )
        row = (s < S)[:, None]
        inside = row & (i < n)[None, :]
        legal = tl.load(mask + (b * S + s)[:, None] * n + i[None, :], mask=inside, other=0) != 0
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
    weight: Tensor, dquery: Tensor, dkeys: Tensor, likelihood: Tensor,
) -> None:  # fmt: skip
    (batch, s, dim), n = query.shape, keys.shape[1]
    rows = min(64, _power(s))
    _choose_backward[(batch,)](
        query, keys, near, current, mask.view(torch.uint8), action, weight, dquery, dkeys, likelihood,
        len(near), s, n, query.stride(1), keys.stride(1), query.stride(0), keys.stride(0),
        dkeys.stride(1), dkeys.stride(0), clip,
        triton.cdiv(s, rows), rows, _power(n), dim, num_warps=4,
    )  # fmt: skip
