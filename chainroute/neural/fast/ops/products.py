"""Products of rows with matrices, and the gradients of what they are products of."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def flat(x: Tensor) -> Tensor:
    """All rows, one below the other."""
    return x.flatten(0, -2)


def product(x: Tensor, weight: Tensor, out: Tensor | None = None) -> Tensor:
    """x @ weight, into `out` if that is given."""
    if out is None:
        return (flat(x) @ weight).view(*x.shape[:-1], weight.shape[-1])
    torch.mm(flat(x), weight, out=flat(out))
    return out


def weight_gradient(dy: Tensor, x: Tensor) -> Tensor:
    """dy^T x over all rows, accumulated in single precision."""
    if x.is_cuda and x.dtype != torch.float32:
        return torch.mm(flat(dy).T, flat(x), out_dtype=torch.float32)
    return flat(dy).T @ flat(x)


def bias_gradient(dy: Tensor) -> Tensor:
    """The sum of all rows, as a product: a GPU is somewhat faster at that than at sums of many short rows."""
    ones = torch.ones(1, flat(dy).shape[0], dtype=dy.dtype, device=dy.device)
    return weight_gradient(ones.T, dy).squeeze(0)


class Affine(torch.autograd.Function):
    """A linear map with a bias for autograd, in the type of x; the gradients of both are products, in single
    precision."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        weight = weight.to(x.dtype)
        ctx.save_for_backward(x, weight)
        y = torch.addmm(bias.to(x.dtype), flat(x), weight.T)
        return y.view(*x.shape[:-1], len(weight))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        dy = grads[0].to(x.dtype)
        return product(dy, weight), weight_gradient(dy, x), bias_gradient(dy)
