"""The climb of prices as a Triton kernel, one in place of 25 for each step; `prices` says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from chainroute.neural.assembly.recombine import MOMENTUM
from chainroute.neural.fast.ops.rows import padded, power

TILE = 8_192  # entries of routes that a program looks at together
MAX_NODES = 4_096  # whose prices a program holds


@triton.jit
def _climb(
    holds, costs, counts, wanted, first, target, found, R, n, momentum, iterations, patience,
    ROWS: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """A program has an instance, and reads its own routes, of R rows the first, once in each step."""
    b = tl.program_id(0).to(tl.int64)
    i, rows = tl.arange(0, N), tl.arange(0, ROWS)
    inside = i < n
    wants = tl.load(wanted + b * n + i, mask=inside, other=0).to(tl.float32)
    prices = tl.load(first + b * n + i, mask=inside, other=0.0)
    goal, own = tl.load(target + b), tl.load(counts + b)
    best, direction = prices, tl.zeros([N], tl.float32)
    highest, pace = tl.full((), float("-inf"), tl.float32), tl.full((), 1.0, tl.float32)
    since = tl.full((), 0, tl.int32)
    step = tl.full((), 0, tl.int32)
    while step < iterations:
        value, missing = tl.sum(prices), wants
        row = tl.full((), 0, tl.int32)
        while row < own:  # a kernel for any number of routes
            r = row + rows
            spot = (b * R + r)[:, None] * N + i[None, :]
            held = tl.load(holds + spot, mask=(r < own)[:, None], other=0).to(tl.float32)
            cost = tl.load(costs + b * R + r, mask=r < own, other=float("inf"))
            reduced = tl.minimum(cost - tl.sum(held * prices[None, :], 1), 0.0)
            value += tl.sum(reduced)
            missing -= tl.sum(tl.where((reduced < 0)[:, None], held, 0.0), 0)
            row += ROWS
        better = value > highest
        best, highest = tl.where(better, prices, best), tl.where(better, value, highest)
        since = tl.where(better, 0, since + 1)
        stalled = since >= patience
        ahead = tl.where(step == 0, missing, momentum * direction + (1 - momentum) * missing)
        direction = tl.where(stalled, direction, ahead)
        norm = tl.maximum(tl.sum(direction * direction), 1e-9)
        prices = tl.where(stalled, best, prices + pace * (goal - value) / norm * direction)
        pace, since = tl.where(stalled, pace / 2, pace), tl.where(stalled, 0, since)
        step += 1
    tl.store(found + b * n + i, best, mask=inside)


def serves(holds: Tensor) -> bool:
    return holds.shape[-1] <= MAX_NODES


def climb(
    holds: Tensor, costs: Tensor, wanted: Tensor, first: Tensor, target: Tensor, iterations: int,
    patience: int,
) -> Tensor:  # fmt: skip
    (size, routes, n), found = holds.shape, torch.empty_like(first)
    wide = power(n)
    _climb[(size,)](
        padded(holds).view(torch.uint8), costs, costs.isfinite().sum(1),
        wanted.contiguous().view(torch.uint8), first.contiguous(), target, found, routes, n, MOMENTUM,
        iterations, patience, TILE // wide, wide, num_warps=8,
    )  # fmt: skip
    return found
