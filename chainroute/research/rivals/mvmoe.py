"""MVMoE (Zhou et al., "MVMoE: multi-task vehicle routing solver with mixture-of-experts", 2024): MTPOMO with
four experts, of which a gate chooses two for each node, or for each query of the pointer.

The gate has no noise: what is by chance in an update follows from its seed alone. The penalty on experts that
are used unequally is as theirs, for advantages that are relative.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from chainroute.neural.policy.config import PolicyConfig
from chainroute.neural.policy.pointer import Pointer
from chainroute.research.rivals.pomo import FeedForward, PomoEncoder

EXPERTS, CHOSEN = 4, 2
BALANCE = 1e-3  # weight of the penalty: theirs is 0.01 beside costs of about 10; ours are relative


class Experts(nn.Module):
    """The outputs of the chosen experts, weighed by the gate.

    All experts are computed, whoever is chosen: nothing depends on data, so that it can be captured.
    """

    def __init__(self, dim: int, experts: Iterable[nn.Module]):
        super().__init__()
        self.experts = nn.ModuleList(experts)
        self.gate = nn.Linear(dim, len(self.experts), bias=False)

    def forward(self, x: Tensor) -> Tensor:
        scores = self.gate(x).float()
        least = scores.topk(CHOSEN, -1).values[..., -1:]
        weight = scores.masked_fill(scores < least, -torch.inf).softmax(-1)  # (..., experts)
        made = sum(w * expert(x) for w, expert in zip(weight.split(1, -1), self.experts, strict=True))
        return Penalised.apply(made, BALANCE * unevenness(weight))  # type: ignore[no-any-return, no-untyped-call]


def unevenness(weight: Tensor) -> Tensor:
    """The squared coefficient of variation of the experts' weights, summed over all that is asked of them."""
    used = weight.flatten(0, -2).sum(0)
    return used.var() / used.mean().square()


class Penalised(torch.autograd.Function):
    """x as it is; on the way back the penalty has gradient 1, as if it were added to the loss."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, penalty: Tensor) -> Tensor:
        ctx.like = torch.ones_like(penalty)
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, dx: Tensor) -> tuple[Tensor, Tensor]:
        return dx, ctx.like


class MoEEncoder(PomoEncoder):
    """An encoder with experts in place of every feed-forward layer."""

    def feed_forward(self, config: PolicyConfig) -> nn.Module:
        return Experts(config.dim, [FeedForward(config) for _ in range(EXPERTS)])


class MoEPointer(Pointer):
    """A pointer with experts in place of the projection that follows its attention."""

    folds = True  # the fast path has a version of this block

    def __init__(self, config: PolicyConfig):
        super().__init__(config)
        linear = [nn.Linear(config.dim, config.dim, bias=False) for _ in range(EXPERTS)]
        self.out = Experts(config.dim, linear)  # type: ignore[assignment]
