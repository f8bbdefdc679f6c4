"""What each trajectory may visit next: the decision process itself, `env.mask`. Kernel: `mask_triton`."""

from __future__ import annotations

from torch import Tensor

from chainroute.neural import env
from chainroute.neural.env import ProblemBatch, State


def mask(batch: ProblemBatch, state: State, out: Tensor) -> None:
    """Writes which nodes each trajectory may go to next, (B, S, n) bool."""
    out.copy_(env.mask(batch, state))
