"""The encoder of MTPOMO (Liu et al., "Multi-task learning for routing problem with cross-problem zero-shot
generalization", 2024), which is that of POMO: normalisation after each residual, over the nodes of an
instance, and no word about the constraints beside what nodes carry.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from chainroute.neural.policy.columns import FEATURES
from chainroute.neural.policy.config import PolicyConfig
from chainroute.neural.policy.encoder import OPEN
from chainroute.neural.policy.layers import StackedLinear, attention


class InstanceNorm(nn.Module):
    """Every number of an embedding is normalised over the nodes of its instance."""

    def __init__(self, dim: int):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))

    def forward(self, x: Tensor, there: Tensor) -> Tensor:
        """x (B, n, D); `there` (B, n, 1) is 0 for padding and 1 for nodes."""
        count = there.sum(1, keepdim=True)
        x = x.to(there.dtype)
        apart = x - (x * there).sum(1, keepdim=True) / count
        variance = (apart.square() * there).sum(1, keepdim=True) / count
        return apart * torch.rsqrt(variance + 1e-5) * self.weight + self.bias


class FeedForward(nn.Sequential):
    def __init__(self, config: PolicyConfig):
        super().__init__(
            nn.Linear(config.dim, config.hidden), nn.ReLU(), nn.Linear(config.hidden, config.dim)
        )


class Layer(nn.Module):
    def __init__(self, config: PolicyConfig, feed_forward: nn.Module):
        super().__init__()
        self.heads = config.heads
        self.qkv = StackedLinear(config.dim, config.dim, 3, bias=False)
        self.out = nn.Linear(config.dim, config.dim)
        self.norm1, self.norm2 = InstanceNorm(config.dim), InstanceNorm(config.dim)
        self.feed_forward = feed_forward

    def forward(self, x: Tensor, bias: Tensor | None, there: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        x = self.norm1(x + self.out(attention(q, k, v, self.heads, bias)), there)
        return self.norm2(x + self.feed_forward(x), there)  # type: ignore[no-any-return]


class PomoEncoder(nn.Module):
    def __init__(self, config: PolicyConfig):
        super().__init__()
        self.depot = nn.Linear(4, config.dim)
        self.customer = nn.Linear(len(FEATURES), config.dim)
        self.layers = nn.ModuleList(Layer(config, self.feed_forward(config)) for _ in range(config.layers))

    def feed_forward(self, config: PolicyConfig) -> nn.Module:
        """What follows the attention of a layer."""
        return FeedForward(config)

    def forward(
        self, features: Tensor, limit: Tensor, flags: Tensor, num_depots: int, padding: Tensor | None
    ) -> Tensor:
        """The same as `policy.encoder.Encoder`, of which it takes the place."""
        place = features[:, :num_depots, :2]
        told = torch.stack([flags[:, OPEN], limit], -1)[:, None].expand_as(place)
        x = torch.cat([self.depot(torch.cat([place, told], -1)), self.customer(features[:, num_depots:])], 1)
        there, bias = torch.ones_like(features[..., :1]), None
        if padding is not None:
            there = there.masked_fill(padding[..., None], 0.0)
            hidden = torch.zeros_like(features[..., 0]).masked_fill(padding, -torch.inf)
            bias = hidden[:, None].expand(-1, padding.shape[1], -1).contiguous()
        for layer in self.layers:
            x = layer(x, bias, there)
        return x
