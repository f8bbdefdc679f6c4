"""RGCR's relevance as Triton kernels; `situation` says what each of them does."""

from __future__ import annotations

from functools import cache

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from chainroute.neural.fast.fold import WIDTH
from chainroute.neural.fast.ops.rows import power
from chainroute.neural.fast.ops.rows_triton import ROWS
from chainroute.neural.fast.ops.situation import groups
from chainroute.neural.policy.columns import GROUPS

K = tl.constexpr(len(GROUPS))  # constraints
WARPS = 1  # of the forward pass, whose programs have few rows


@triton.jit
def _lengths(here, c, table, group):
    """What cosines divide by, in the first K of W columns: `fold.lengths`."""
    same = tl.dot(group, tl.trans(group), input_precision="ieee")
    gram = tl.dot(table, tl.trans(table)) * same
    square = tl.dot(c * tl.dot(c, gram, input_precision="ieee"), group, input_precision="ieee")
    h = here.to(tl.float32)
    return tl.maximum(tl.sqrt(tl.maximum(square, 0.0)) * tl.sqrt(tl.sum(h * h, 1))[:, None], 1e-8)


@triton.jit
def _relevance(here, c, flags, noise, table, group, b, s, S, SCORES: tl.constexpr, W: tl.constexpr):
    """The relevance of each constraint, in the first K of W columns, for rows s of instance b."""
    k = tl.arange(0, W)
    product = tl.dot(here, tl.trans(table))
    relevance = tl.dot(c * product, group)
    if SCORES == "cosine":
        relevance /= _lengths(here, c, table, group)
    if SCORES == "gated":
        some = (s < S)[:, None] & (k < K)[None, :]
        disturbance = tl.load(noise + (b * S + s)[:, None] * K + k[None, :], mask=some, other=0.0)
        flag = tl.load(flags + b * K + k, mask=k < K, other=0.0)
        relevance = tl.sigmoid(relevance + disturbance) * flag[None, :]
    return relevance


@triton.jit
def _situate(
    nodes, current, attributes, flags, noise, table, group, out, relevance, S, n, table_row, table_column,
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
    found = _relevance(here, c, flags, noise, weights, sums, b, s, S, SCORES, W)
    tl.store(relevance + (b * S + s)[:, None] * K + k[None, :], found, mask=row & (k < K)[None, :])
    weighed = c * tl.dot(found, tl.trans(sums))
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
    relevance: Tensor,
) -> None:
    (batch, n, dim), s = nodes.shape, current.shape[1]
    _situate[(batch, triton.cdiv(s, ROWS))](
        nodes, current, attributes, flags, noise, table, _groups(nodes.device), out, relevance, s, n,
        *table.stride(), scores, WIDTH, dim, ROWS, num_warps=WARPS,
    )  # fmt: skip


@triton.jit
def _situated(
    total, dsituation, nodes, current, attributes, relevance, weights, sums, dproduct, b, of, mine, d, S, n,
    SCORES: tl.constexpr, W: tl.constexpr, D: tl.constexpr, BLOCKS: tl.constexpr, R: tl.constexpr,
    N: tl.constexpr,
):  # fmt: skip
    """Adds to numbers d of the nodes `of`, (N, PART), what the situations of trajectories b mean for them:
    nothing unless they are `mine`."""
    i, k = tl.arange(0, N), tl.arange(0, W)
    for block in range(BLOCKS):
        s = block * R + tl.arange(0, R)
        inside = (s < S) & mine
        row = inside[:, None]
        at = tl.load(current + b * S + s, mask=inside, other=-1).to(tl.int32)
        c = tl.load(attributes + (b * S + s)[:, None] * W + k[None, :], mask=row, other=0.0)
        base = dsituation + (b * S + s)[:, None] * (2 * W + D)
        dweighed = tl.load(base + W + k[None, :], mask=row, other=0.0).to(tl.float32)
        dhere = tl.load(base + 2 * W + d[None, :], mask=row, other=0.0).to(tl.float32)
        ddot = tl.dot(dweighed * c, sums)
        if SCORES == "cosine":
            spot = nodes + (of * n + at)[:, None] * D + d[None, :]
            here = tl.load(spot, mask=row, other=0.0).to(weights.dtype)
            ddot /= _lengths(here, c, weights, sums)
        if SCORES == "gated":
            some = row & (k < K)[None, :]
            found = tl.load(relevance + (b * S + s)[:, None] * K + k[None, :], mask=some, other=0.0)
            ddot *= found * (1 - found)
        dprod = (c * tl.dot(ddot, tl.trans(sums))).to(weights.dtype)
        if tl.program_id(1) == 0:
            tl.store(dproduct + (b * S + s)[:, None] * W + k[None, :], dprod, mask=row)
        by_score = tl.dot(dprod, weights)
        if SCORES == "cosine":
            h = here.to(tl.float32)
            share = tl.sum(h * by_score, 1) / tl.maximum(tl.sum(h * h, 1), 1e-16)
            by_score -= h * share[:, None]
        # Several trajectories may be at one node: their gradients are summed by a product with who is where.
        there = (i[:, None] == at[None, :]).to(weights.dtype)
        total = tl.dot(there, (dhere + by_score).to(weights.dtype), total)
    return total


@triton.jit
def _situate_backward(
    grad, dsituation, nodes, current, attributes, relevance, table, group, dproduct, version, T, batch, S, n,
    table_row, table_column,
    SCORES: tl.constexpr, W: tl.constexpr, D: tl.constexpr, PART: tl.constexpr, BLOCKS: tl.constexpr,
    R: tl.constexpr, N: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    """A program handles PART of the D numbers of an instance's nodes: for cosines all of them. Where there
    are versions, it goes through the steps of its own."""
    of = tl.program_id(0).to(tl.int64)
    i, k = tl.arange(0, N), tl.arange(0, W)
    d = tl.program_id(1) * PART + tl.arange(0, PART)
    weights = tl.load(table + k[:, None] * table_row + d[None, :] * table_column)
    sums = tl.load(group + k[:, None] * W + k[None, :])
    spot = (of * n + i)[:, None] * D + d[None, :]
    inside = (i < n)[:, None]
    total = tl.zeros([N, PART], tl.float32)
    if STEPS:
        v, t = of // batch, tl.arange(0, STEPS)
        own = tl.load(version + t, mask=t < T, other=-1) == v
        step, last = tl.min(tl.where(own, t, T)), tl.max(tl.where(own, t, -1))
        while step <= last:  # in a chain they follow each other
            mine = tl.load(version + step) == v
            total = _situated(
                total, dsituation, nodes, current, attributes, relevance, weights, sums, dproduct,
                step * batch + of % batch, of, mine, d, S, n, SCORES, W, D, BLOCKS, R, N,
            )  # fmt: skip
            step += 1
        inside &= last >= 0
    else:
        total = _situated(
            total, dsituation, nodes, current, attributes, relevance, weights, sums, dproduct, of, of, True,
            d, S, n, SCORES, W, D, BLOCKS, R, N,
        )  # fmt: skip
    total += tl.load(grad + spot, mask=inside, other=0.0).to(tl.float32)
    tl.store(grad + spot, total.to(grad.dtype.element_ty), mask=inside)


def situate_backward(
    grad: Tensor, dsituation: Tensor, nodes: Tensor, current: Tensor, attributes: Tensor, relevance: Tensor,
    table: Tensor, scores: str, dproduct: Tensor, version: Tensor | None = None,
) -> None:  # fmt: skip
    (count, n, dim), (rows, s) = nodes.shape, current.shape
    part, at_once, warps = launch_backward(s, n, version is not None)
    part = dim if scores == "cosine" else min(part, dim)
    steps = 0 if version is None else len(version)
    _situate_backward[(count, dim // part)](
        grad, dsituation, nodes, current, attributes, relevance, table, _groups(nodes.device), dproduct,
        current if version is None else version, steps, rows // max(steps, 1), s, n,
        *table.stride(), scores, WIDTH, dim, part, triton.cdiv(s, at_once), at_once, power(n),
        steps and power(steps), num_warps=warps,
    )  # fmt: skip


def launch_backward(trajectories: int, nodes: int, steps: bool) -> tuple[int, int, int]:
    """Numbers of a node that a program handles, trajectories at once, and warps, for one step or several: the
    fastest on an H200 (`benchmarks.tune`)."""
    if steps:
        return 128, min(64, power(trajectories)), 4 if nodes <= 128 else 8
    return 128 if nodes <= 64 else 64 if nodes <= 128 else 32, power(trajectories), 4


@cache
def _groups(device: torch.device) -> Tensor:
    """`groups` padded to (16, 16) for matrix units."""
    return F.pad(groups(device), (0, WIDTH - len(GROUPS))).contiguous()
