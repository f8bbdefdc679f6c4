"""The widest operations of the beam as Triton kernels, one in place of six each; `beam` says what they do."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from chainroute.neural.fast.ops.rows import power

BLOCK = 1_024  # rows that a program looks at: all, as a rule
HOLDERS = 128  # of a node, that it looks at together


@triton.jit
def _branches(
    counts, left, gap, live, holders, extra, scores, choices, W, K, n, H,
    N: tl.constexpr, HOLDERS: tl.constexpr,
):  # fmt: skip
    """A program has a plan. Of one that does not go on it reads nothing more."""
    at, i = tl.program_id(0).to(tl.int64), tl.arange(0, N)
    count = tl.load(counts + at * n + i, mask=i < n, other=0.0).to(tl.float32)
    choice = tl.argmin(tl.where(count > 0, count, float("inf")), 0)
    tl.store(choices + at, choice)
    before = tl.load(gap + at)
    goes_on = (tl.sum((count > 0).to(tl.int32)) == tl.load(left + at)) & (before < float("inf"))
    node = (at // W * n + choice) * H
    first = tl.full((), 0, tl.int32)
    while first < H:  # a kernel for any number of holders
        h = first + tl.arange(0, HOLDERS)
        inside = h < H
        row = tl.load(holders + node + h, mask=inside & goes_on, other=0)
        free = tl.load(live + at * K + row, mask=inside & goes_on, other=0.0) > 0
        more = tl.load(extra + node + h, mask=free, other=float("inf"))
        tl.store(scores + at * H + h, before + more, mask=inside)
        first += HOLDERS


def branches(
    counts: Tensor, left: Tensor, gap: Tensor, live: Tensor, holders: Tensor, extra: Tensor
) -> tuple[Tensor, Tensor]:
    (size, plans, rows), (nodes, most) = live.shape, holders.shape[1:]
    scores, choices = gap.new_empty(size, plans, most), torch.empty_like(left)
    _branches[(size * plans,)](
        counts, left, gap, live, holders, extra, scores, choices, plans, rows, nodes, most,
        power(nodes), HOLDERS, num_warps=1,
    )  # fmt: skip
    return scores, choices


@triton.jit
def _followers(live, plan, row, apart, extra, room, found, plans, W, K, BLOCK: tl.constexpr):
    """A program has a plan that was made longer. Most rows cost too much, and are not looked up."""
    to, k = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    b, inside = to // W, k < K
    cheap = tl.load(extra + b * K + k, mask=inside, other=float("inf")) < tl.load(room + to)
    free = tl.load(apart + (b * K + tl.load(row + to)) * K + k, mask=cheap, other=0) != 0
    before = tl.load(live + (b * plans + tl.load(plan + to)) * K + k, mask=cheap, other=0.0)
    tl.store(found + to * K + k, tl.where(free, before, 0.0), mask=inside)


def followers(live: Tensor, plan: Tensor, row: Tensor, apart: Tensor, extra: Tensor, room: Tensor) -> Tensor:
    (size, plans, rows), wide = live.shape, plan.shape[1]
    found = live.new_empty(size, wide, rows)
    _followers[(size * wide, triton.cdiv(rows, BLOCK))](
        live, plan, row, apart.view(torch.uint8), extra.contiguous(), room, found, plans, wide, rows, BLOCK
    )
    return found
