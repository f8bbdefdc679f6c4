"""Norms and gates as Triton kernels; `rows` says what each of them does."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from chainroute.neural.fast.ops.rows import EPS

ROWS = 16  # of D numbers handled by one program
BLOCK = 1024  # numbers handled by one program


# -- steps that share what they point at


@triton.jit
def _pool(steps, version, pooled, T, size, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    v, at = tl.program_id(1), tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside, t = at < size, tl.arange(0, STEPS)
    own = tl.load(version + t, mask=t < T, other=-1) == v
    step, last = tl.min(tl.where(own, t, T)), tl.max(tl.where(own, t, -1))
    total = tl.zeros([BLOCK], tl.float32)
    while step <= last:  # in a chain they follow each other
        mine = tl.load(version + step) == v
        total += tl.load(steps + step.to(tl.int64) * size + at, mask=inside & mine, other=0.0).to(tl.float32)
        step += 1
    tl.store(pooled + v.to(tl.int64) * size + at, total.to(pooled.dtype.element_ty), mask=inside)


def pool(steps: Tensor, version: Tensor, pooled: Tensor) -> None:
    count, size = len(version), pooled[0].numel()
    _pool[(triton.cdiv(size, 4 * BLOCK), len(pooled))](
        steps, version, pooled, count, size, triton.next_power_of_2(count), 4 * BLOCK
    )


# -- the gate of a gated MLP: silu(a) * b of a row (a, b)


@triton.jit
def _gate(x, y, total, width: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    first = at // width * width + at  # of a row twice as wide
    a = tl.load(x + first, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(x + first + width, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + at, (a * tl.sigmoid(a) * b).to(y.dtype.element_ty), mask=inside)


@triton.jit
def _gate_backward(dy, x, dx, total, width: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    first = at // width * width + at
    a = tl.load(x + first, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(x + first + width, mask=inside, other=0.0).to(tl.float32)
    g = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
    s = tl.sigmoid(a)
    tl.store(dx + first, (g * b * s * (1 + a * (1 - s))).to(dx.dtype.element_ty), mask=inside)
    tl.store(dx + first + width, (g * a * s).to(dx.dtype.element_ty), mask=inside)


def gate(x: Tensor, y: Tensor) -> None:
    _gate[(triton.cdiv(y.numel(), BLOCK),)](x, y, y.numel(), y.shape[-1], BLOCK)


def gate_backward(dy: Tensor, x: Tensor, dx: Tensor) -> None:
    _gate_backward[(triton.cdiv(dy.numel(), BLOCK),)](dy, x, dx, dy.numel(), dy.shape[-1], BLOCK)


class Gate(torch.autograd.Function):
    """`gate` for autograd."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        x = x.contiguous()
        ctx.save_for_backward(x)
        y = torch.empty(*x.shape[:-1], x.shape[-1] // 2, dtype=x.dtype, device=x.device)
        gate(x, y)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        dx = torch.empty_like(x)
        gate_backward(grads[0].contiguous(), x, dx)
        return dx


# -- normalisation


@triton.jit
def _normalise(
    contexts, nodes, x, inverse, total, S, n, row, EPS: tl.constexpr, R: tl.constexpr, D: tl.constexpr
):
    r = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
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
    r = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
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
