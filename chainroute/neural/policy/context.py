"""RGCR: relevance-guided context reformulation. Paper, section 4.3.

At every step each trajectory describes its situation by 13 numbers, grouped by the constraint they speak of
(`columns.ATTRIBUTES`).

Each group has an embedding; its product with the current node's embedding says how relevant the constraint is
now. Embeddings are linear, so we never form the four of them: every use of one is a product with 13 numbers.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from chainroute.neural.policy.columns import GROUPS, NAMES, OF_TRAJECTORY
from chainroute.neural.policy.config import PolicyConfig


class RGCR(nn.Module):
    folds = True  # the fast path has a version of this block
    group: Tensor

    def __init__(self, config: PolicyConfig):
        super().__init__()
        self.config = config
        dim = config.dim
        if config.scores == "attributes":
            self.attributes = nn.Linear(sum(GROUPS), dim, bias=False)
        else:
            # C^k = embed_k(c^k)
            self.embed = nn.ModuleList(nn.Linear(size, dim, bias=False) for size in GROUPS)
            self.original = nn.Linear(len(GROUPS) * dim, dim, bias=False)  # of the concatenated embeddings
        if config.features == "wide":
            self.more = nn.Linear(len(OF_TRAJECTORY), dim, bias=False)
        self.context = nn.Linear(2 * dim, dim, bias=False)  # of concat(S, H)
        group = torch.repeat_interleave(torch.arange(len(GROUPS)), torch.tensor(GROUPS))
        self.register_buffer("group", F.one_hot(group).float(), persistent=False)  # (13, 4)

    def forward(
        self, attributes: Tensor, here: Tensor, flags: Tensor, noise: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Attributes (B, S, 13 or with wide features 15), current nodes' embeddings (B, S, D), flags (B, 4).

        `noise` (B, S, 4), standard normal, disturbs gated scores in training. Random scores are uniform, made
        from it; without it they are a half.

        Returns the context (B, S, D) and the unified constraint embedding S (B, S, D).
        """
        more, attributes = attributes[..., len(NAMES) :], attributes[..., : len(NAMES)]
        if self.config.scores == "attributes":
            unified = self.attributes(attributes)
        else:
            unified = self.unified(attributes, here, flags, noise)
        if self.config.features == "wide":
            unified = unified + self.more(more)
        return self.context(torch.cat([unified, here], -1)), unified

    def unified(self, attributes: Tensor, here: Tensor, flags: Tensor, noise: Tensor | None) -> Tensor:
        """S: the concatenated embeddings, projected, plus the embeddings weighed by their relevance."""
        embed = [weight.T for weight in self.embed.parameters()]  # C^k = c^k @ embed[k]
        blocks = self.original.weight.T.chunk(len(GROUPS))
        original = torch.cat([e @ block for e, block in zip(embed, blocks, strict=True)])  # (13, D)
        if self.config.scores == "embeddings":
            return attributes @ original
        table = torch.cat(embed)  # (13, D)
        weighed = attributes * (self.relevance(attributes, here, flags, table, noise) @ self.group.T)
        return torch.cat([attributes, weighed], -1) @ torch.cat([original, table])

    def relevance(
        self, attributes: Tensor, here: Tensor, flags: Tensor, table: Tensor, noise: Tensor | None
    ) -> Tensor:
        """s: how much each constraint matters now, (B, S, 4)."""
        if self.config.scores == "random":
            normal = torch.zeros_like(attributes[..., : len(GROUPS)]) if noise is None else noise
            uniform: Tensor = torch.special.ndtr(normal)
            return uniform
        dot: Tensor = (attributes * (here @ table.T)) @ self.group  # H . C^k
        if self.config.scores == "dot":
            return dot
        if self.config.scores == "cosine":
            embeddings = (attributes[..., None] * table).transpose(-1, -2) @ self.group  # (B, S, D, 4)
            lengths: Tensor = (
                torch.linalg.vector_norm(embeddings, dim=-2)
                * torch.linalg.vector_norm(here, dim=-1)[..., None]
            )
            return dot / lengths.clamp(min=1e-8)
        if noise is not None:
            dot = dot + self.config.score_noise * noise
        return torch.sigmoid(dot / math.sqrt(self.config.dim)) * flags[:, None]
