"""The choice of the next visit, and its likelihood. Kernels: `choice_triton`."""

from __future__ import annotations

import torch
from torch import Tensor

from chainroute.neural.fast.ops.rows import rows_of, versions_of


def choose(
    query: Tensor, keys: Tensor, near: Tensor, current: Tensor, mask: Tensor, draws: Tensor | None,
    clip: float, action: Tensor,
) -> None:  # fmt: skip
    """Samples an action for each query (B, S, D) over keys (B, n, D), as exponential noise (B, S, n) decides:
    minus its logarithm is Gumbel noise. Without noise it is the likeliest."""
    logits, _ = _logits(query, keys, near, current, mask, clip)
    action.copy_((logits if draws is None else logits - draws.log()).argmax(-1))


def choose_backward(
    query: Tensor, keys: Tensor, near: Tensor, current: Tensor, mask: Tensor, clip: float, action: Tensor,
    weight: Tensor, dquery: Tensor, dkeys: Tensor, likelihood: Tensor, version: Tensor | None = None,
) -> None:  # fmt: skip
    """The log-likelihood of actions (K B, S), and the gradient of its sum weighed by `weight` (B, S).

    All but near (B, n, n) and the weights have K times as many instances, all B of them K times over. With
    version (K,) int32, the keys are those of several versions, of which the k-th time had number version[k];
    dkeys are of each time by itself.
    """
    times = len(query) // len(near)
    if version is not None:
        keys = versions_of(keys, version, len(query))
    logits, bent = _logits(query, keys, near.repeat(times, 1, 1), current, mask, clip)
    log_p = logits.log_softmax(-1)
    likelihood.copy_(log_p.gather(-1, action[..., None]).squeeze(-1))
    hit = action[..., None] == torch.arange(logits.shape[-1], device=action.device)
    dlogits = weight.repeat(times, 1)[..., None] * (hit.to(log_p.dtype) - log_p.exp())
    dmatch = dlogits * clip * (1 - bent.square())
    dquery.copy_(dmatch @ keys)
    dkeys.copy_(dmatch.mT @ query)


def _logits(
    query: Tensor, keys: Tensor, near: Tensor, current: Tensor, mask: Tensor, clip: float
) -> tuple[Tensor, Tensor]:
    bent = torch.tanh(query @ keys.mT + rows_of(near, current))
    return (clip * bent).masked_fill(~mask, -torch.inf), bent
