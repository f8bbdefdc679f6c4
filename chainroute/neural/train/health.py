"""Whether the chain of contexts is well: how large node embeddings grow along it, and what becomes of a small
disturbance. A chain that explodes shows here before it shows in costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from chainroute.neural.decode.rollout import pattern
from chainroute.neural.env import ProblemBatch, begin, mask, step
from chainroute.neural.policy import Policy

EXAMINED_INSTANCES = 32  # instances that are looked at, spread over the batch
DISTURBANCE = 1e-3  # of the node embeddings, in their own lengths


@dataclass(frozen=True)
class Health:
    largest: float  # length of a node embedding met on the chain
    growth: float  # times that a disturbance of the encoder's output became larger on the way, at most


@torch.no_grad()
def examine_health(
    policy: Policy, batches: Sequence[ProblemBatch], rate_at: Callable[[int], float]
) -> Health | None:
    """Greedy trajectories of a few instances, with and without a disturbance of what the encoder gives.

    `rate_at` gives the update rate for a number of customers.
    """
    if not batches:
        return None
    looked = [_health(policy, batch, rate_at(batch.num_customers)) for batch in batches]
    return Health(max(h.largest for h in looked), max(h.growth for h in looked))


def _health(policy: Policy, batch: ProblemBatch, update_rate: float) -> Health:
    which = torch.arange(0, batch.size, max(1, batch.size // EXAMINED_INSTANCES), device=batch.device)
    batch = batch.map(lambda t: t[which])
    generator = torch.Generator(batch.device).manual_seed(0)
    scene, nodes = policy.encode(batch)
    noise = torch.randn(nodes.shape, dtype=nodes.dtype, device=batch.device, generator=generator)
    other = nodes + DISTURBANCE * _length(nodes) * noise / nodes.shape[-1] ** 0.5
    first, state = _difference(other, nodes), begin(batch)
    largest, growth = _length(nodes).amax(), torch.ones_like(first)
    for refine in pattern(update_rate, 0, 2 * batch.num_customers):
        legal = mask(batch, state)
        logits, nodes = policy.step(batch, scene, nodes, state, legal, refine)
        _, other = policy.step(batch, scene, other, state, legal, refine)
        state = step(batch, state, logits.argmax(-1))
        largest = torch.maximum(largest, _length(nodes).amax())
        apart = _difference(other, nodes).view(len(first), -1).amax(1)  # the most of all trajectories
        growth = torch.maximum(growth, apart / first)
        if bool(state.finished(batch).all()):
            break
    return Health(largest.item(), growth.amax().item())


def _length(nodes: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(nodes, dim=-1, keepdim=True)
    return length


def _difference(other: Tensor, nodes: Tensor) -> Tensor:
    """The difference of two sets of node embeddings, relative to the second, of each instance: (B,)."""
    relative: Tensor = torch.linalg.vector_norm(other - nodes, dim=(1, 2)) / torch.linalg.vector_norm(
        nodes, dim=(1, 2)
    )
    return relative
