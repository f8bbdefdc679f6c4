"""A gated MLP with the norm before it and the sum around it. Kernels: `mlp_triton`.

The hidden layer is eight times as wide as a row, so it is not kept: the way back makes it again.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from chainroute.neural.fast.ops.rows import EPS, gate_backward, norm_backward


def mlp(
    a: Tensor, delta: Tensor, w12: Tensor, w3: Tensor, x: Tensor | None, inverse: Tensor | None,
    full: Tensor | None, half: Tensor,
) -> None:  # fmt: skip
    """total + W3 gate(W12 x) for rows total = a + delta (..., D) and x, the same normalised.

    The result is written in full precision, unless `full` is None, and as `half`. W12 is (2 H, D), W3 (D, H).
    x and one over the root mean square, `inverse` (...), are for the way back; None, where there is none.
    """
    total = (a + delta).to(torch.promote_types(delta.dtype, torch.float32))
    scale = torch.rsqrt(total.square().mean(-1) + EPS)
    normalised = (total * scale[..., None]).to(delta.dtype)
    one, two = F.linear(normalised, w12).chunk(2, -1)
    result = total + F.linear(F.silu(one) * two, w3)
    for target, values in ((x, normalised), (inverse, scale), (full, result), (half, result)):
        if target is not None:
            target.copy_(values)


def mlp_backward(
    dresult: Tensor, more: Tensor | None, x: Tensor, inverse: Tensor, w12: Tensor, w3: Tensor,
    small: Tensor, gated: Tensor, dhidden: Tensor, dtotal: Tensor | None, dtotal_half: Tensor,
) -> None:  # fmt: skip
    """The gradient of total from that of the result, which is dresult or, with `more`, the sum of both.

    `small` is the gradient of the result in half precision, written if there is more to add. Together with x,
    `gated` (..., H) and `dhidden` (..., 2 H) it makes up the gradients of the weights.
    """
    if more is not None:
        dresult = dresult + more
        small.copy_(dresult)
    hidden = F.linear(x, w12)
    one, two = hidden.chunk(2, -1)
    gated.copy_(F.silu(one) * two)
    gate_backward(small @ w3, hidden, dhidden)
    result = dresult + norm_backward(dhidden @ w12, x, inverse)
    dtotal_half.copy_(result)
    if dtotal is not None:
        dtotal.copy_(result)
