"""Many rollouts of one batch: every start on every map, sampled or greedy, at every update rate.

A batch is cut into parts that fit in memory. Each row of a part is a copy of one of the instances.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from chainroute.errors import fail
from chainroute.neural.decode import memory
from chainroute.neural.decode.engine import in_half
from chainroute.neural.decode.noise import Noise
from chainroute.neural.decode.rollout import Rollout, drawn, longest, pattern, rollout
from chainroute.neural.env import ProblemBatch
from chainroute.neural.policy import Policy
from chainroute.options import DecodeOptions
from chainroute.runtime.deadline import NEVER, Deadline


def rollouts(
    policy: Policy, batch: ProblemBatch, options: DecodeOptions, deadline: Deadline = NEVER
) -> Iterator[tuple[Tensor, Rollout]]:
    """The rollouts of all parts, each with the instance that every row of it solves, (rows,) long.

    After the deadline there are no more, and the last may not have finished.
    """
    customers, starts = batch.num_customers, options.trajectories(batch.num_customers)
    at_once = rows_at_once(policy, batch.num_depots, customers, options, batch.device, "batch")
    total, half = batch.size * options.copies, in_half(policy, options)
    rates = options.rates(customers, policy.reembeddings)
    every = torch.arange(total, device=batch.device)
    turn = every % options.copies % options.augmentations % len(rates)
    for k, rate in enumerate(rates):
        shift = rates[:k].count(rate)  # the same rate again has other steps
        refine = (drawn if options.drawn_steps else pattern)(rate, options.seed + shift, longest(batch))
        own = every[turn == k] if options.in_turn else every
        for rows in torch.split(own, at_once) if len(own) else ():
            if deadline.passed:
                return
            instance, copy = rows // options.copies, rows % options.copies
            copies = on_maps(_rows(batch, instance), copy % options.augmentations)
            noise = None
            if options.samples:
                noise = Noise.of(options.seed, copy, starts, batch.num_nodes, options.temperature)
            made = rollout(policy, copies, refine, starts, noise, half, deadline)
            yield instance, made


@torch.inference_mode()
def best_costs(policy: Policy, batch: ProblemBatch, options: DecodeOptions) -> Tensor:
    """The cost of the best trajectory of each instance, (B,), in the batch's units and by its rules.

    Infinite where no trajectory has finished. Nothing is judged, and nothing leaves the device.
    """
    best = batch.distance.new_full((batch.size,), torch.inf)
    for instance, result in rollouts(policy, batch, options):
        best.scatter_reduce_(0, instance, result.costs.amin(1), "amin")
    return best


def on_maps(batch: ProblemBatch, which: Tensor) -> ProblemBatch:
    """Each instance on one of the eight turned and mirrored maps, which (B,) says; 0 is the plain one.

    Only coordinates change: distances, and all that follows from them, are the same on every map.
    """
    swap, flip_x, flip_y = ((which & bit).bool()[:, None] for bit in (1, 2, 4))
    x, y = batch.coords.unbind(-1)
    x, y = torch.where(swap, y, x), torch.where(swap, x, y)
    coords = torch.stack([torch.where(flip_x, 1 - x, x), torch.where(flip_y, 1 - y, y)], -1)
    return replace(batch, coords=coords)


def rows_at_once(
    policy: Policy, depots: int, customers: int, options: DecodeOptions, device: torch.device, where: str
) -> int:
    """How many copies of a problem of that size are decoded together; `where` names it if not even one is."""
    available = options.memory or memory.budget(device)
    starts = options.trajectories(customers)
    needed = memory.per_copy(policy.config, depots + customers, starts, 2 * customers)
    needed *= 1 if policy.shared else starts
    if needed > available:
        message = (
            f"{depots + customers} locations with {starts} starts need {needed:,} bytes; the option `memory` "
            f"allows {available:,}."
        )
        raise fail("too-large", message, where)
    return available // needed


def _rows(batch: ProblemBatch, instance: Tensor) -> ProblemBatch:
    return batch.map(lambda t: t[instance])
