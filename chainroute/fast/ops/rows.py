"""What is done to rows one by one: norms, sums and the gate of a gated MLP. Kernels: `rows_triton`."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

EPS = 1e-5  # of every RMS norm


def rows_of(values: Tensor, index: Tensor) -> Tensor:
    """Rows `index` (B, S) of values (B, n, d): (B, S, d)."""
    return values.gather(1, index[..., None].expand(-1, -1, values.shape[-1]))


# -- the gate of a gated MLP


def gate(x: Tensor, y: Tensor) -> None:
    """y (..., H) = silu(a) * b for rows (a, b) of x (..., 2 H); both contiguous."""
    a, b = x.chunk(2, -1)
    y.copy_(F.silu(a) * b)


def gate_backward(dy: Tensor, x: Tensor, dx: Tensor) -> None:
    a, b = x.chunk(2, -1)
    s = torch.sigmoid(a)
    dx.copy_(torch.cat([dy * b * s * (1 + a * (1 - s)), dy * a * s], -1))


# -- normalisation: each row divided by its root mean square, `inverse` is one over that


def normalise(contexts: Tensor, nodes: Tensor, x: Tensor, inverse: Tensor) -> None:
    """Contexts (B, S, D) and nodes (B, n, D) as one, normalised."""
    rows = torch.cat([contexts.to(nodes.dtype), nodes], 1)
    inverse.copy_(torch.rsqrt(rows.square().mean(-1) + EPS))
    x.copy_(rows * inverse[..., None])


def normalise_backward(
    grad: Tensor, dx: Tensor, x: Tensor, inverse: Tensor, dnodes: Tensor, dcontexts: Tensor
) -> None:
    """dnodes = grad + the nodes' part; the contexts' part is added to dcontexts."""
    rows = _normalise_backward(dx, x, inverse)
    count = dcontexts.shape[1]
    dnodes.copy_(grad + rows[:, count:])
    dcontexts.add_(rows[:, :count])


def add_normalise(a: Tensor, delta: Tensor, total: Tensor, x: Tensor, inverse: Tensor) -> None:
    """total = a + delta, and it normalised."""
    total.copy_(a + delta)
    inverse.copy_(torch.rsqrt(total.square().mean(-1) + EPS))
    x.copy_(total * inverse[..., None])


def add_normalise_backward(
    grad: Tensor, dx: Tensor, x: Tensor, inverse: Tensor, total: Tensor | None, small: Tensor
) -> None:
    """The gradient of a + delta, in full precision unless `total` is None, and in half."""
    result = grad + _normalise_backward(dx, x, inverse)
    small.copy_(result)
    if total is not None:
        total.copy_(result)


def _normalise_backward(dx: Tensor, x: Tensor, inverse: Tensor) -> Tensor:
    dx, x = dx.to(inverse.dtype), x.to(inverse.dtype)
    return inverse[..., None] * (dx - x * (dx * x).mean(-1, keepdim=True))


def add(a: Tensor, delta: Tensor, total: Tensor, small: Tensor) -> None:
    """a + delta, in full precision and in half."""
    torch.add(a, delta, out=total)
    small.copy_(total)
