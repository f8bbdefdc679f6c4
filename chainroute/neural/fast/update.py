"""What all blocks of one update share."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import torch
from torch import Tensor, nn

from chainroute.neural.fast.fold import Weights
from chainroute.neural.policy import PolicyConfig, Scene

Gradients = dict[str, Tensor]  # of fields of `Weights`, by their names


@dataclass(frozen=True)
class Update:
    """B instances, S trajectories, n nodes; contexts are D wide, products of the type `half`."""

    config: PolicyConfig
    ops: ModuleType  # `ops.plain` or `ops.fused`
    weights: Weights
    scene: Scene
    noise: Tensor  # (T, B, S, 4) of RGCR, as its scores take it
    project: nn.Module | None = None  # in place of the pointer's output, where that is no linear map

    @property
    def half(self) -> torch.dtype:
        return self.weights.context.dtype

    @property
    def full(self) -> torch.dtype:
        """The type of sums and gradients along the chain."""
        return torch.promote_types(self.half, torch.float32)


def projected(update: Update, query: Tensor) -> Tensor:
    """The queries (B, S, D) as that block gives them."""
    assert update.project is not None
    with torch.autocast(query.device.type, update.half, enabled=update.half == torch.bfloat16):
        return update.project(query)  # type: ignore[no-any-return]
