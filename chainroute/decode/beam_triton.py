"""The widest operation of the beam as a Triton kernel, one in place of six; `beam` says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1_024  # rows that a program looks at: all, as a rule


@triton.jit
def _followers(live, plan, row, apart, extra, room, found, plans, W, K, BLOCK: tl.constexpr):
    """A program has a plan that was made longer."""
    to, k = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    b, inside = to // W, k < K
    before = tl.load(live + (b * plans + tl.load(plan + to)) * K + k, mask=inside, other=0.0)
    free = tl.load(apart + (b * K + tl.load(row + to)) * K + k, mask=inside, other=0) != 0
    cheap = tl.load(extra + b * K + k, mask=inside, other=float("inf")) < tl.load(room + to)
    tl.store(found + to * K + k, tl.where(free & cheap, before, 0.0), mask=inside)


def followers(live: Tensor, plan: Tensor, row: Tensor, apart: Tensor, extra: Tensor, room: Tensor) -> Tensor:
    (size, plans, rows), wide = live.shape, plan.shape[1]
    found = live.new_empty(size, wide, rows)
    _followers[(size * wide, triton.cdiv(rows, BLOCK))](
        live, plan, row, apart.view(torch.uint8), extra.contiguous(), room, found, plans, wide, rows, BLOCK
    )
    return found
