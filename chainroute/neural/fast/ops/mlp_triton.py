"""Kernels of `mlp`: a program takes some rows through both products, a part of the hidden layer at a time.

Weights come from the cache, and nothing as wide as the hidden layer is written on the way there. On the way
back it is made again, and written once, for the gradients of the weights.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from chainroute.neural.fast.ops.products import weight_gradient
from chainroute.neural.fast.ops.rows import EPS

ROWS = 64  # handled by one program, or half of them where that occupies more processors
PROCESSORS = 132  # of an H200
LEAST_PART = 16  # of the hidden layer that matrix units take
MAX_DIM = 256  # of rows that fit in the memory of a program


def holds(dim: int, hidden: int) -> bool:
    """Whether programs hold rows of that width and take that hidden layer in parts."""
    return dim <= MAX_DIM and dim & (dim - 1) == 0 and hidden % LEAST_PART == 0


@triton.jit
def _weights(w12, w3, d, h, row, column, row3, column3, H: tl.constexpr):
    """Loads columns h of W1 and W2, transposed, (D, P), and rows h of W3, transposed, (P, D)."""
    one = tl.load(w12 + h[None, :] * row + d[:, None] * column)
    two = tl.load(w12 + (h + H)[None, :] * row + d[:, None] * column)
    three = tl.load(w3 + d[None, :] * row3 + h[:, None] * column3)
    return one, two, three


@triton.jit
def _mlp(
    a, delta, w12, w3, x, inverse, full, half, count, a_row, row, column, row3, column3,
    EPS: tl.constexpr, TAPED: tl.constexpr, FULL: tl.constexpr,
    D: tl.constexpr, H: tl.constexpr, R: tl.constexpr, P: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    d = tl.arange(0, D)
    inside = (r < count)[:, None]
    at = r[:, None] * D + d[None, :]
    total = tl.load(a + r[:, None] * a_row + d[None, :], mask=inside, other=0.0).to(tl.float32)
    total += tl.load(delta + at, mask=inside, other=0.0).to(tl.float32)
    inv = 1 / tl.sqrt(tl.sum(total * total, 1) / D + EPS)
    y = (total * inv[:, None]).to(delta.dtype.element_ty)
    if TAPED:
        tl.store(x + at, y, mask=inside)
        tl.store(inverse + r, inv, mask=r < count)
    for first in range(0, H, P):
        one, two, three = _weights(w12, w3, d, first + tl.arange(0, P), row, column, row3, column3, H)
        u, v = tl.dot(y, one), tl.dot(y, two)
        total = tl.dot((u * tl.sigmoid(u) * v).to(y.dtype), three, total)
    if FULL:
        tl.store(full + at, total, mask=inside)
    tl.store(half + at, total.to(half.dtype.element_ty), mask=inside)


def mlp(
    a: Tensor, delta: Tensor, w12: Tensor, w3: Tensor, x: Tensor | None, inverse: Tensor | None,
    full: Tensor | None, half: Tensor,
) -> None:  # fmt: skip
    dim, hidden = delta.shape[-1], w3.shape[1]
    count = delta.numel() // dim
    rows = ROWS // 2 if count <= PROCESSORS * ROWS // 2 else ROWS
    _mlp[(triton.cdiv(count, rows),)](
        a, delta, w12, w3, half if x is None else x, half if inverse is None else inverse,
        half if full is None else full, half, count, a.stride(-2), *w12.stride(), *w3.stride(),
        EPS, x is not None, full is not None, dim, hidden, rows,
        **_launch(dim, hidden, delta.dtype, part=64, stages=3 if count <= PROCESSORS * ROWS else 2),
    )  # fmt: skip


@triton.jit
def _mlp_backward(
    dresult, more, x, inverse, w12, w3, small, gated, dhidden, dtotal, dtotal_half, count, half_row,
    row, column, row3, column3, MORE: tl.constexpr, FULL: tl.constexpr,
    D: tl.constexpr, H: tl.constexpr, R: tl.constexpr, P: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    d = tl.arange(0, D)
    inside = (r < count)[:, None]
    at = r[:, None] * D + d[None, :]
    y = tl.load(x + at, mask=inside, other=0.0)
    grad = tl.load(dresult + at, mask=inside, other=0.0)
    if MORE:
        grad += tl.load(more + at, mask=inside, other=0.0).to(tl.float32)
    g = grad.to(y.dtype)
    if MORE:
        tl.store(small + at, g, mask=inside)
    dx = tl.zeros([R, D], tl.float32)
    for first in range(0, H, P):
        h = first + tl.arange(0, P)
        one, two, three = _weights(w12, w3, d, h, row, column, row3, column3, H)
        u, v, dgated = tl.dot(y, one), tl.dot(y, two), tl.dot(g, tl.trans(three))
        s = tl.sigmoid(u)
        tl.store(gated + r[:, None] * H + h[None, :], (u * s * v).to(y.dtype), mask=inside)
        du = (dgated * v * s * (1 + u * (1 - s))).to(y.dtype)
        dv = (dgated * u * s).to(y.dtype)
        spot = dhidden + r[:, None] * (2 * H) + h[None, :]
        tl.store(spot, du, mask=inside)
        tl.store(spot + H, dv, mask=inside)
        dx = tl.dot(du, tl.trans(one), dx)
        dx = tl.dot(dv, tl.trans(two), dx)
    # Read again: registers are scarce in the loop.
    inv = tl.load(inverse + r, mask=r < count, other=0.0)
    z = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    result = inv[:, None] * (dx - z * (tl.sum(dx * z, 1) / D)[:, None])
    result += tl.load(dresult + at, mask=inside, other=0.0).to(tl.float32)
    if MORE:
        result += tl.load(more + at, mask=inside, other=0.0).to(tl.float32)
    if FULL:
        tl.store(dtotal + at, result, mask=inside)
    spot = dtotal_half + r[:, None] * half_row + d[None, :]
    tl.store(spot, result.to(dtotal_half.dtype.element_ty), mask=inside)


def mlp_backward(
    dresult: Tensor, more: Tensor | None, x: Tensor, inverse: Tensor, w12: Tensor, w3: Tensor,
    small: Tensor, gated: Tensor, dhidden: Tensor, dtotal: Tensor | None, dtotal_half: Tensor,
) -> None:  # fmt: skip
    count, dim, hidden = inverse.numel(), x.shape[-1], w3.shape[1]
    _mlp_backward[(triton.cdiv(count, ROWS),)](
        dresult, dresult if more is None else more, x, inverse, w12, w3, small, gated, dhidden,
        dtotal_half if dtotal is None else dtotal, dtotal_half, count, dtotal_half.stride(-2),
        *w12.stride(), *w3.stride(), more is not None, dtotal is not None, dim, hidden, ROWS,
        **_launch(dim, hidden, x.dtype, part=32, stages=3),
    )  # fmt: skip


def _launch(dim: int, hidden: int, dtype: torch.dtype, part: int, stages: int) -> dict[str, Any]:
    """How a program is launched, by what is fastest on an H200 for rows of 128 in half precision: the part of
    the hidden layer at a time, and in how many stages it is loaded. Wider rows have room for less."""
    if dim > 128 or dtype == torch.float32:
        part, stages = LEAST_PART, 2
    part = part if hidden % part == 0 else LEAST_PART
    return {"P": part, "num_stages": stages, "num_warps": 8 if dim > 128 else 4}


def add_mlp(a: Tensor, delta: Tensor, w12: Tensor, w3: Tensor) -> Tensor:
    """What `mlp` gives, of the type of `a`; products are of the type of delta. Autograd may go through it."""
    if torch.is_grad_enabled():
        return MLP.apply(a, delta, w12, w3)
    return _result(a, delta, _transposed(w12, delta.dtype), _transposed(w3, delta.dtype))


class MLP(torch.autograd.Function):
    """`add_mlp` for autograd."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, delta: Tensor, w12: Tensor, w3: Tensor) -> Tensor:
        x = torch.empty(delta.shape, dtype=delta.dtype, device=delta.device)
        inverse = torch.empty(x.shape[:-1], dtype=torch.float32, device=x.device)
        w12, w3 = _transposed(w12, delta.dtype), _transposed(w3, delta.dtype)
        result = _result(a, delta, w12, w3, x, inverse)
        ctx.save_for_backward(x, inverse, w12, w3)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        x, inverse, w12, w3 = ctx.saved_tensors
        dresult = grads[0].to(x.dtype).contiguous()
        gated = x.new_empty(*x.shape[:-1], w3.shape[1])
        dhidden = x.new_empty(*x.shape[:-1], w12.shape[0])
        dtotal = torch.empty_like(x)
        mlp_backward(dresult, None, x, inverse, w12, w3, dresult, gated, dhidden, None, dtotal)
        return dtotal, dtotal, weight_gradient(dhidden, x), weight_gradient(dresult, gated)


def _result(
    a: Tensor, delta: Tensor, w12: Tensor, w3: Tensor, x: Tensor | None = None, inverse: Tensor | None = None
) -> Tensor:
    result = torch.empty(a.shape, dtype=a.dtype, device=a.device)
    mlp(a, delta.contiguous(), w12, w3, x, inverse, None, result)
    return result


def _transposed(weight: Tensor, dtype: torch.dtype) -> Tensor:
    """The same of that type, transposed in memory, as kernels read it fastest; not copied if it is."""
    return weight.t().to(dtype, memory_format=torch.contiguous_format).t()
