"""What is done to rows one by one: norms and the gate of a gated MLP. Kernels: `rows_triton`."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

EPS = 1e-5  # of every RMS norm


def rows_of(values: Tensor, index: Tensor) -> Tensor:
    """Rows `index` (B, S) of values (B, n, d): (B, S, d)."""
    return values.gather(1, index[..., None].expand(-1, -1, values.shape[-1]))


def versions_of(values: Tensor, version: Tensor, count: int) -> Tensor:
    """The `count` instances of all steps, of versions (V B, ...): those of step t are of version[t]."""
    return values.view(-1, count // len(version), *values.shape[1:])[version].flatten(0, 1)


def pool(steps: Tensor, version: Tensor, pooled: Tensor) -> None:
    """pooled (V, ...) = the sums of those steps (T, ...) that are of each version, as (T,) says; all
    contiguous."""
    pooled.zero_().index_add_(0, version, steps)


# -- rows that kernels read whole


def power(count: int) -> int:
    """The least power of two that holds so many and that matrix units take."""
    return max(16, 1 << (count - 1).bit_length())


def padded(rows: Tensor) -> Tensor:
    """The same numbers, rows a power of two apart with zeros between: a kernel reads each without looking
    where it ends, and many numbers at a time. What is padded already is not copied."""
    width = rows.shape[-1]
    return rows if is_padded(rows) else F.pad(rows.contiguous(), (0, power(width) - width))[..., :width]


def is_padded(rows: Tensor) -> bool:
    return rows.stride()[-2:] == (power(rows.shape[-1]), 1)


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
    rows = norm_backward(dx, x, inverse)
    count = dcontexts.shape[1]
    dnodes.copy_(grad + rows[:, count:])
    dcontexts.add_(rows[:, :count])


def norm_backward(dx: Tensor, x: Tensor, inverse: Tensor) -> Tensor:
    """The gradient of the rows that x are when normalised."""
    dx, x = dx.to(inverse.dtype), x.to(inverse.dtype)
    return inverse[..., None] * (dx - x * (dx * x).mean(-1, keepdim=True))
