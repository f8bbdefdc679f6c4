"""The dual-attention encoder: a global branch that knows the constraints, and a sparse one that picks nodes.

Paper, section 4.2 and appendix "Encoder Architecture". Shapes: B instances, n nodes, M of them depots.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from chainroute.neural.policy.columns import CLOSING, FEATURES, OF_INSTANCE
from chainroute.neural.policy.config import PolicyConfig
from chainroute.neural.policy.layers import (
    GatedMLP,
    Linear,
    RMSNorm,
    StackedLinear,
    attention,
    sparse_attention,
)
from chainroute.problem.variants import FLAGS

OPEN = FLAGS.index("O")


class TransformerLayer(nn.Module):
    """Pre-norm attention and gated MLP, each with a residual."""

    def __init__(self, config: PolicyConfig, sparse: bool):
        super().__init__()
        self.heads, self.sparse = config.heads, sparse
        self.norm1, self.norm2 = RMSNorm(config.dim), RMSNorm(config.dim)
        self.qkv = StackedLinear(config.dim, config.dim, 3)
        self.out = Linear(config.dim, config.dim)
        self.mlp = GatedMLP(config.dim, config.hidden)

    def forward(self, x: Tensor, keep: Tensor | int, bias: Tensor | None) -> Tensor:
        q, k, v = self.qkv(x, self.norm1).chunk(3, -1)
        if self.sparse:
            seen = sparse_attention(q, k, v, self.heads, keep, bias)
        else:
            seen = attention(q, k, v, self.heads, bias)
        return self.mlp.residual(x, self.out(seen), self.norm2)


class Encoder(nn.Module):
    sees_places = True  # an encoder with False is told no coordinates, but also the matrix of distances

    def __init__(self, config: PolicyConfig):
        super().__init__()
        dim = config.dim
        self.depot_closing, self.fusion = config.depot_closing, config.fusion
        self.depot = nn.Linear(5 if config.depot_closing else 4, dim)
        self.customer = nn.Linear(len(FEATURES), dim)
        self.prompt = None
        if config.prompt:
            self.prompt = nn.Linear(len(FLAGS) + len(OF_INSTANCE) * (config.features == "wide"), dim)
            self.join = nn.Sequential(nn.LayerNorm(2 * dim), nn.Linear(2 * dim, dim))
        self.globals = nn.ModuleList(TransformerLayer(config, sparse=False) for _ in range(config.layers))
        branches = config.layers if config.sparse else 0
        self.sparses = nn.ModuleList(TransformerLayer(config, sparse=True) for _ in range(branches))
        self.to_global = nn.ModuleList(Linear(dim, dim) for _ in range(branches))
        self.to_sparse = nn.ModuleList(Linear(dim, dim) for _ in range(branches))
        self.norm = RMSNorm(dim)

    def forward(
        self, features: Tensor, limit: Tensor, flags: Tensor, num_depots: int, padding: Tensor | None
    ) -> Tensor:
        """Features (B, n, 7), limit (B,), flags (B, 4), padding (B, n): node embeddings (B, n, D).

        With wide features, the numbers of each instance follow its flags, (B, 8).
        """
        return self.refine(self.embed(features, limit, flags, num_depots), flags, padding)

    def embed(self, features: Tensor, limit: Tensor, flags: Tensor, num_depots: int) -> Tensor:
        """The nodes by themselves, (B, n, D)."""
        place = features[:, :num_depots, :2]
        depot = [place, torch.stack([flags[:, OPEN], limit], -1)[:, None].expand_as(place)]
        if self.depot_closing:
            depot.append(features[:, :num_depots, CLOSING, None])
        return torch.cat([self.depot(torch.cat(depot, -1)), self.customer(features[:, num_depots:])], 1)

    def refine(
        self, nodes: Tensor, flags: Tensor, padding: Tensor | None, near: Tensor | None = None
    ) -> Tensor:
        """All layers; `near` (B, n, n), where given, says which nodes the sparse branch looks at first."""
        keep, bias = _sparsity(nodes, padding)
        sparse_bias = bias if near is None else near if bias is None else near + bias
        h = s = nodes  # the global and the sparse branch, (B, n, D)
        if self.prompt is not None:
            h = self.join(torch.cat([nodes, self.prompt(flags)[:, None].expand_as(nodes)], -1))
        if not self.sparses:
            for layer in self.globals:
                h = layer(h, keep, bias)
            return self.norm(h)  # type: ignore[no-any-return]
        for layer, sparse, to_global, to_sparse in zip(
            self.globals, self.sparses, self.to_global, self.to_sparse, strict=True
        ):
            h, s = layer(h, keep, bias), sparse(s, keep, sparse_bias)
            before = h
            h = h + to_global(s)
            s = s + to_sparse(h if self.fusion == "sequential" else before)
        return self.norm(h)  # type: ignore[no-any-return]


def _sparsity(nodes: Tensor, padding: Tensor | None) -> tuple[Tensor | int, Tensor | None]:
    """How many of its own nodes each query of the sparse branch keeps, and the bias that hides padding."""
    if padding is None:
        return max((nodes.shape[1] - 1) // 2, 1), None
    own = (~padding).sum(1)
    hidden = torch.zeros_like(nodes[..., 0]).masked_fill(padding, -torch.inf)
    bias = hidden[:, None].expand(-1, padding.shape[1], -1).contiguous()  # once, for all layers
    return ((own - 1) // 2).clamp(min=1)[:, None, None, None], bias
