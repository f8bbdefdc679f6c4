"""Prices of customers that make few routes worth their cost, for every instance of a batch."""

from __future__ import annotations

import torch
from torch import Tensor

from chainroute.neural.assembly.recombine import MOMENTUM, price_iterations
from chainroute.neural.decode.pools import Pools
from chainroute.neural.fast.layers import TRITON
from chainroute.neural.fast.support import failure

if TRITON:
    from chainroute.neural.decode import prices_triton


def prices_of(pools: Pools, wanted: Tensor, cost: Tensor) -> tuple[Tensor, Tensor]:
    """Prices of nodes that make the bound on the cost of a plan high, (B, n) double, and that bound, (B,).

    A plan holds each wanted node (B, n) once, and is to cost less than `cost` (B,).
    """
    holds, costs = pools.holds, pools.costs.float()
    shares = (costs / holds.sum(-1))[..., None].where(holds, torch.inf).amin(1)
    first = shares.where(shares.isfinite(), 0.0)
    plain = failure(holds.device) or not prices_triton.serves(holds)
    best = (climb if plain else prices_triton.climb)(
        holds, costs, wanted, first, cost.float(), *price_iterations(wanted.shape[1])
    ).double()
    return best, best.sum(1) + (pools.costs - worth(pools, best)).clamp(max=0).sum(1)


def worth(pools: Pools, prices: Tensor) -> Tensor:
    """What the customers of each route are worth at those prices, (B, R)."""
    return (pools.holds.double() @ prices[..., None]).squeeze(-1)


def climb(
    holds: Tensor, costs: Tensor, wanted: Tensor, first: Tensor, target: Tensor, iterations: int,
    patience: int,
) -> Tensor:  # fmt: skip
    """The prices (B, n) with the highest bound that so many steps from the first ones meet, on the way
    towards a target (B,), which go shorter after `patience` steps without a higher one. Kernel:
    `prices_triton`.

    The way is that of the prices in NumPy, which may end earlier: here all instances go on together, and
    those at their end meet nothing higher.
    """
    prices = best = first[..., None]
    holds = holds.to(first.dtype)
    costs, wants, target = costs[..., None], wanted.float()[:, None], target[:, None, None]
    highest, since = torch.full_like(target, -torch.inf), torch.zeros_like(target)
    pace, direction = torch.ones_like(target), None
    for _ in range(iterations):
        reduced = torch.baddbmm(costs, holds, prices, alpha=-1).clamp_(max=0)
        value = prices.sum(1, keepdim=True) + reduced.sum(1, keepdim=True)
        better = value > highest
        best, highest = prices.where(better, best), torch.maximum(value, highest)
        since = (since + 1).masked_fill_(better, 0)
        stalled = since >= patience
        missing = torch.baddbmm(wants, reduced.sign_().mT, holds).mT  # the signs are -1 and 0
        ahead = missing if direction is None else missing.lerp(direction, MOMENTUM)
        direction = ahead if direction is None else direction.where(stalled, ahead)
        norm = direction.square().sum(1, keepdim=True).clamp_(min=1e-9)
        prices = best.where(stalled, torch.addcmul(prices, pace * (target - value) / norm, direction))
        pace, since = (pace / 2).where(stalled, pace), since.masked_fill_(stalled, 0)
    return best.squeeze(-1)
