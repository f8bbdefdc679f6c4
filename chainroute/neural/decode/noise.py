"""Gumbel noise that turns the best next visit into a sampled one.

It is a hash of the seed, the copy, the trajectory, the step and the node, and of nothing else: neither the
other problems, nor how a batch is cut into parts, nor the device change a sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

BITS = 0xFFFFFFFF  # numbers are 32 bits wide, in tensors of 64


@dataclass(frozen=True)
class Noise:
    keys: Tensor  # (B, S) long
    nodes: Tensor  # (n,) long
    temperature: float

    @staticmethod
    def of(seed: int, copies: Tensor, trajectories: int, nodes: int, temperature: float) -> Noise:
        """The noise for copies (B,) of problems, each with so many trajectories and nodes."""
        low, high = (torch.tensor(part & BITS, device=copies.device) for part in (seed, seed >> 32))
        keys = _mixed(_mixed(_mixed(low) + high) + copies)[:, None]
        every = torch.arange(max(trajectories, nodes), device=copies.device)
        return Noise(_mixed(keys + every[:trajectories]), every[:nodes], temperature)

    def __call__(self, step: int) -> Tensor:
        """What is added to the logits of a step, (B, S, n)."""
        mixed = _mixed(_mixed(self.keys + step)[..., None] + self.nodes)
        uniform = (mixed.float() + 0.5) / (BITS + 1)
        return uniform.clamp_(max=1 - 2**-24).log_().neg_().log_().mul_(-self.temperature)


def _mixed(x: Tensor) -> Tensor:
    """A 32-bit number in which every bit depends on every bit of x (C. Wellons' lowbias32)."""
    x = x & BITS
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & BITS
    x = ((x ^ (x >> 15)) * 0x846CA68B) & BITS
    return x ^ (x >> 16)
