"""Graph-structured input: an encoder that is told distances, and no coordinates. Paper, appendix
"Generalization of CCL on additional scenarios".

The paper gives a node the vector of its distances to all nodes, which fixes their number. Here a node is told
how far it is from a few pivots and back, and the sparse branch attends to nearer nodes first. Both mean
something at any size, in any order of the customers, and in matrices that are not symmetric.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from chainroute.neural.policy.config import PolicyConfig
from chainroute.neural.policy.encoder import Encoder
from chainroute.neural.policy.layers import nearness

PIVOTS = 8


class GraphEncoder(Encoder):
    sees_places = False

    def __init__(self, config: PolicyConfig):
        super().__init__(config)
        self.from_pivots = nn.Linear(2 * PIVOTS, config.dim)

    def forward(
        self, features: Tensor, limit: Tensor, flags: Tensor, num_depots: int, padding: Tensor | None,
        distance: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """The same as `Encoder`; in place of coordinates features have the way from a depot and back."""
        assert distance is not None
        nodes = self.embed(features, limit, flags, num_depots)
        nodes = nodes + self.from_pivots(pivot_distances(distance, padding))
        return self.refine(nodes, flags, padding, nearness(distance))


def pivot_distances(distance: Tensor, padding: Tensor | None) -> Tensor:
    """How far each node is from the pivots and back, (B, n, 2 PIVOTS).

    The first pivot is the first depot, the next one always the node farthest from all before, there and back.
    """
    both = distance + distance.mT
    apart = both[:, 0] if padding is None else both[:, 0].masked_fill(padding, -1.0)
    pivots = [torch.zeros_like(apart[:, 0], dtype=torch.long)]
    while len(pivots) < PIVOTS:
        pivots.append(apart.argmax(1))
        apart = torch.minimum(apart, _row(both, pivots[-1]))
    return torch.stack([way for p in pivots for way in (_row(distance, p), _row(distance.mT, p))], -1)


def _row(matrix: Tensor, index: Tensor) -> Tensor:
    """Row `index` (B,) of each matrix (B, n, n)."""
    return matrix.gather(1, index[:, None, None].expand(-1, 1, matrix.shape[2])).squeeze(1)
