"""Which way a policy is decoded: folded where its network has a fast version, plainly otherwise."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from chainroute.neural.env import ProblemBatch, State, picked
from chainroute.neural.fast.fold import Folded, fold
from chainroute.neural.fast.layers import fused
from chainroute.neural.fast.support import failure, obstacle
from chainroute.neural.policy import Policy
from chainroute.options import DecodeOptions


class Steps(Protocol):
    """The chain of contexts of one batch."""

    nodes: Tensor  # (B, n, D) as the last step left them

    def step(self, state: State, mask: Tensor, refine: bool) -> Tensor:
        """Logits (B, S, n) of the next visit; `refine` says whether the nodes are re-embedded."""

    def choose(self, state: State, mask: Tensor, refine: bool) -> Tensor:
        """The likeliest next visit, (B, S)."""

    def keep(self, instances: Tensor) -> None:
        """Goes on with these instances alone."""


class PlainSteps:
    """`Policy.step` as it is, for any network."""

    def __init__(self, policy: Policy, batch: ProblemBatch, half: bool):
        self.policy, self.batch = policy, batch
        self.half = torch.autocast(batch.device.type, torch.bfloat16, enabled=half)
        with self.half, fused():
            self.scene, self.nodes = policy.encode(batch)

    def step(self, state: State, mask: Tensor, refine: bool) -> Tensor:
        with self.half, fused():
            logits, self.nodes = self.policy.step(self.batch, self.scene, self.nodes, state, mask, refine)
        return logits

    def choose(self, state: State, mask: Tensor, refine: bool) -> Tensor:
        return self.step(state, mask, refine).argmax(-1)

    def keep(self, instances: Tensor) -> None:
        self.batch, self.nodes = self.batch[instances], self.nodes[instances]
        self.scene = picked(self.scene, instances)


def begin_chain(policy: Policy, batch: ProblemBatch, half: bool = False) -> Steps:
    """The chain at its beginning, all nodes encoded; `half` has products in bfloat16."""
    if obstacle(policy):
        return PlainSteps(policy, batch, half)
    return Folded(policy, fold(policy).to(torch.bfloat16 if half else policy.dtype), batch)


def in_half(policy: Policy, options: DecodeOptions) -> bool:
    """Whether products are in bfloat16 and by kernels: on a GPU where these run, unless asked otherwise."""
    return not options.full_precision and not failure(policy.device)


def engine(policy: Policy, options: DecodeOptions = DecodeOptions()) -> str:
    """How the policy is decoded, in words, and why if it is not the fast way."""
    on_gpu, half = policy.device.type == "cuda", in_half(policy, options)
    reason = obstacle(policy) or (failure(policy.device) if on_gpu and not options.full_precision else "")
    way = "plain" if obstacle(policy) else "folded"
    dtype = torch.bfloat16 if half else policy.dtype
    words = f"{way}, {str(dtype).removeprefix('torch.')}" + ", fused kernels" * half
    return f"{words} (the fast engine {reason})" if reason else words
