"""Trajectories for training: sampled (or forced) actions with their log-likelihoods, differentiable."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from chainroute.neural.decode.rollout import LOOK_EVERY
from chainroute.neural.env import ProblemBatch, begin, mask, step
from chainroute.neural.fast.layers import fused
from chainroute.neural.policy import Policy
from chainroute.neural.policy.columns import GROUPS


class Abandoned(Exception):
    """An update that would not end in time was given up; nothing has changed."""


@dataclass(frozen=True)
class Trajectories:
    cost: Tensor  # (B, S)
    log_likelihood: Tensor  # (B, S) of all actions together
    finished: Tensor  # (B, S) bool: everyone served, and no repetition of another trajectory
    actions: Tensor  # (T, B, S) long
    nodes: Tensor  # (B, n, D) as the last re-embedding left them


def longest(n: int) -> int:
    """Steps after which every trajectory has finished or is stuck: n customers, and a return after each."""
    return 2 * n


def sample_trajectories(
    policy: Policy,
    batch: ProblemBatch,
    refine: Sequence[bool],
    generator: torch.Generator | None = None,
    actions: Tensor | None = None,
    noise: Tensor | None = None,
    starts: int | None = None,
    too_late: Callable[[float], bool] | None = None,
) -> Trajectories:
    """One trajectory from each customer, or from the first `starts`, with at most len(refine) steps.

    `refine` says in which steps TSNR runs. Actions are sampled with the generator, which also draws RGCR's
    noise. Where `actions` (T, B, S) are given there are T steps, with the noise `noise` (T, B, S, 4) or none,
    and only what is negative is sampled: so trajectories of plans that are known stand beside sampled ones.
    `too_late` says of the moment at which it began whether to give up.
    """
    began = time.monotonic()
    half = torch.autocast(batch.device.type, torch.bfloat16, enabled=batch.device.type == "cuda")
    with half, fused():
        scene, nodes = policy.encode(batch)
    state = begin(batch, starts)
    log_likelihood = batch.coords.new_zeros(state.current.shape)
    taken: list[Tensor] = []
    for j in range(len(refine) if actions is None else len(actions)):
        if too_late is not None and too_late(began):
            raise Abandoned
        allowed = mask(batch, state)
        disturb = _noise(state.current, generator) if noise is None else noise[j]
        with half, fused():
            logits, nodes = policy.step(batch, scene, nodes, state, allowed, refine[j], disturb)
        given = None if actions is None else actions[j]
        if given is None or bool((given < 0).any()):
            sampled = _gumbel_argmax(logits.detach(), generator)
            action = sampled if given is None else torch.where(given < 0, sampled, given)
        else:
            action = given
        log_likelihood = log_likelihood + logits.log_softmax(-1).gather(2, action[..., None]).squeeze(-1)
        state = step(batch, state, action)
        taken.append(action)
        if actions is None and j % LOOK_EVERY == 0 and bool(state.finished(batch).all()):
            break
    finished = state.finished(batch)
    if state.spare is not None:
        finished = finished & ~state.spare
    return Trajectories(state.cost(batch), log_likelihood, finished, torch.stack(taken), nodes)


def _noise(current: Tensor, generator: torch.Generator | None) -> Tensor | None:
    if generator is None:
        return None
    return torch.randn((*current.shape, len(GROUPS)), device=current.device, generator=generator)


def _gumbel_argmax(logits: Tensor, generator: torch.Generator | None) -> Tensor:
    """A sample from softmax(logits): Gumbel noise is minus the logarithm of exponential noise."""
    exponential = torch.empty_like(logits).exponential_(generator=generator)
    return (logits - exponential.clamp_(min=1e-30).log_()).argmax(-1)
