"""The pointer: from contexts and nodes to the logits of the next visit. Paper, appendix "Classic Decoder".

With ReLD (Huang et al., "Rethinking Light Decoder-based Solvers for Vehicle Routing Problems") the glimpse
also carries the current node and the constraints past the attention, and a feed-forward layer follows. The
authors' CCL without it adds what the query sees to the query, and no distances to the logits.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from chainroute.neural.policy.config import PolicyConfig
from chainroute.neural.policy.layers import GatedMLP, RMSNorm, StackedLinear, at_least_single, attention


class Glimpse(nn.Module):
    """One look at the nodes: masked attention and, with ReLD, a feed-forward layer."""

    def __init__(self, config: PolicyConfig):
        super().__init__()
        self.heads, self.residual = config.heads, config.glimpse_residual
        self.keys = StackedLinear(config.dim, config.dim, 2, bias=False)  # keys and values
        if config.reld:
            self.norm = RMSNorm(config.dim)
            self.mlp = GatedMLP(config.dim, config.hidden)

    def forward(self, query: Tensor, identity: Tensor | None, nodes: Tensor, hidden: Tensor) -> Tensor:
        k, v = self.keys(nodes).chunk(2, -1)
        seen = attention(query, k, v, self.heads, hidden)
        if self.residual:
            seen = query + seen
        if identity is None:
            return seen
        glimpse = identity + seen
        return glimpse + self.mlp(self.norm(glimpse))  # type: ignore[no-any-return]


class Pointer(nn.Module):
    folds = True  # the fast path has a version of this block

    def __init__(self, config: PolicyConfig):
        super().__init__()
        self.config = config
        dim = config.dim
        self.glimpses = nn.ModuleList(Glimpse(config) for _ in range(config.decoder_depth))
        self.logit_key = nn.Linear(dim, dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        if config.reld:
            self.identity = nn.Linear(dim, dim, bias=False)

    def forward(
        self, context: Tensor, here: Tensor, unified: Tensor, nodes: Tensor, near: Tensor, mask: Tensor
    ) -> Tensor:
        """Context, current node and unified constraints (B, S, D), nodes (B, n, D): logits (B, S, n).

        `near` is the nearness of each node to each trajectory and `mask` whether it may be visited.
        """
        match = self.match(context, here, unified, nodes, near, mask)
        return (self.config.clip * torch.tanh(match)).masked_fill(~mask, -torch.inf)

    def match(
        self, context: Tensor, here: Tensor, unified: Tensor, nodes: Tensor, near: Tensor, mask: Tensor
    ) -> Tensor:
        """How well each node suits each trajectory, (B, S, n): of any size, those that are masked too."""
        hidden = torch.zeros_like(near).masked_fill(~mask, -torch.inf)
        identity = here + self.identity(unified) if self.config.reld else None
        query = context
        for glimpse in self.glimpses:
            query = glimpse(query, identity, nodes, hidden)
            identity = query if self.config.reld else None
        match = at_least_single(self.out(query) @ self.logit_key(nodes).mT) / math.sqrt(self.config.dim)
        return match + near if self.config.logit_distance_bias else match
