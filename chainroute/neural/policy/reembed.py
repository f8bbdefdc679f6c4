"""TSNR: trajectory-shared node re-embedding. Paper, section 4.4.

Every node looks at the contexts of all trajectories and at all nodes, nearer ones first, and is embedded
again. What it becomes is what the next step starts from: the chain of contexts.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from chainroute.neural.policy.config import PolicyConfig
from chainroute.neural.policy.layers import GatedMLP, RMSNorm, attention


class TSNR(nn.Module):
    folds = True  # the fast path has a version of this block
    shared = True  # by all trajectories; a block with False is given each trajectory as if it were alone

    def __init__(self, config: PolicyConfig):
        super().__init__()
        self.config = config
        dim = config.dim
        self.norm_q, self.norm_k, self.norm_v = RMSNorm(dim), RMSNorm(dim), RMSNorm(dim)
        self.q, self.k, self.v = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.out = nn.Linear(dim, dim)
        self.norm = RMSNorm(dim)
        self.mlp = GatedMLP(dim, config.hidden)

    def forward(
        self, nodes: Tensor, contexts: Tensor, to_contexts: Tensor, to_nodes: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Nodes (B, n, D) and contexts (B, S, D), both refined; contexts only under self-attention.

        The biases say how near each node is to each trajectory, (B, n, S), and to each node, (B, n, n);
        minus infinity hides a key.
        """
        unified = torch.cat([contexts.to(nodes.dtype), nodes], 1)  # (B, S + n, D)
        count = contexts.shape[1]
        keys, bias = unified[:, :count], to_contexts
        if self.config.node_attention:
            keys, bias = unified, torch.cat([to_contexts, to_nodes], 2)
        if self.config.reembedding == "cross":
            return self.layer(nodes, keys, bias), contexts
        among = torch.zeros_like(to_contexts[:, :1]).expand(-1, count, -1)  # contexts have no distance
        of_contexts = torch.cat([among, to_contexts.mT], 2)[..., : keys.shape[1]]
        hidden = bias[:, :1].isneginf()  # a key that is hidden from the first node is hidden from all
        refined = self.layer(unified, keys, torch.cat([of_contexts.masked_fill(hidden, -torch.inf), bias], 1))
        return refined[:, count:], refined[:, :count]

    def layer(self, queries: Tensor, keys: Tensor, bias: Tensor) -> Tensor:
        q = self.q(self.norm_q(queries))
        seen = attention(
            q,
            self.k(self.norm_k(keys)),
            self.v(self.norm_v(keys)),
            self.config.heads,
            bias,
        )
        h = (queries if self.config.residual == "nodes" else q) + self.out(seen)
        return h + self.mlp(self.norm(h))  # type: ignore[no-any-return]
