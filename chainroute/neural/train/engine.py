"""Engines: what turns a learner and a learning rate into an updated learner.

`PlainEngine` runs everywhere and says what an update is. `Fast`, in fast.py, does the same as one graph on a
GPU; engines.py chooses between them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Protocol

import torch
from torch import Tensor

from chainroute.neural.env import Mixture, ProblemBatch, sample
from chainroute.neural.train.learner import Learner
from chainroute.neural.train.objective import advantages, cost_ratio, excess_length, loss, variant_index
from chainroute.neural.train.ranks import Ranks
from chainroute.neural.train.rollout import Trajectories, sample_trajectories
from chainroute.neural.train.streams import choices, reseed

STRANGE_COST = 2.0  # times the usual costs: such an update is left out


@dataclass(frozen=True)
class Stats:
    """Means over the updates since the last look."""

    loss: float  # as grad_norm, of those updates that were not left out; 0 if all were
    cost: float
    unfinished: float  # share of the trajectories that did not finish
    grad_norm: float
    left_out: float  # share of the updates that changed nothing, since their gradients or costs were absurd


class Engine(Protocol):
    preparing: float  # seconds so far of compiling and capturing, which are no updates

    def prepare(self) -> object:
        """Makes ready what the next update needs."""

    def update(self, rate: float, too_late: Callable[[float], bool] | None = None) -> None:
        """One update of the learner. On a GPU it returns before the work is done.

        Where updates take long it may be given up: `too_late` says so of the moment at which it began.
        """

    def stats(self) -> Stats:
        """Waits for the device, and says what the updates since the last call were like."""

    def close(self) -> None:
        """Lets go of what it holds on the device."""


class Tally:
    """Sums of what updates were like, kept on the device so that nobody waits for it."""

    def __init__(self, ranks: Ranks):
        self.ranks = ranks
        self.sums = torch.zeros(len(fields(Stats)), device=ranks.device)
        self.updates = 0

    def add(self, numbers: Tensor) -> None:
        self.sums += numbers
        self.updates += 1

    def take(self) -> Stats:
        means = self.ranks.total(self.sums.clone()) / (self.ranks.count * max(self.updates, 1))
        stats, kept = Stats(*means.tolist()), round((1 - float(means[-1])) * self.updates)
        share = kept / self.updates if kept else 1.0  # of updates left out neither is told
        self.sums.zero_()
        self.updates = 0
        return replace(stats, loss=stats.loss / share, grad_norm=stats.grad_norm / share)


class PlainEngine:
    """Instances, sampled trajectories, REINFORCE, a step of the optimiser: on any device, for any policy."""

    preparing = 0.0

    def __init__(self, learner: Learner, ranks: Ranks):
        self.learner, self.ranks, self.tally = learner, ranks, Tally(ranks)
        config = learner.config
        self.shares = {n: ranks.split(config.instances(n)) for n in config.sizes}
        self.mixture = Mixture.of(config.mixture, learner.device, config.law)
        self.generator = torch.Generator(learner.device)

    def prepare(self) -> None:
        pass

    def update(self, rate: float, too_late: Callable[[float], bool] | None = None) -> None:
        learner, config = self.learner, self.learner.config
        reseed(self.generator, config.seed, learner.step, self.ranks.rank)
        n, refine = choices(config, learner.step)
        batch = sample(self.shares[n], n, self.mixture, self.generator)
        usual = learner.means[config.sizes.index(n)].clone()
        alone = too_late if self.ranks.count == 1 else None  # ranks must not give up one by one
        made = sample_trajectories(
            learner.policy, batch, refine, self.generator, starts=config.trajectories(n), too_late=alone
        )
        objective = self.gradients(batch, made)
        unusual = strange(made.cost, batch, usual, self.ranks)
        norm, left_out = learner.learn(rate, config.instances(n), unusual)
        self.tally.add(summary(objective, made.cost, made.finished, norm, left_out))

    def gradients(self, batch: ProblemBatch, made: Trajectories) -> Tensor:
        """Gives every weight its gradient, averaged over the ranks; returns the loss."""
        learner, config = self.learner, self.learner.config
        means = learner.means[config.sizes.index(batch.num_customers)]
        advantage = advantages(
            made.cost, made.finished, variant_index(batch), means, config.objective, self.ranks.total,
            made.log_likelihood.detach(),
        )  # fmt: skip
        objective = loss(advantage, made.log_likelihood)
        if config.longest_embedding:
            objective = objective + excess_length(made.nodes, config.longest_embedding)
        torch.autograd.backward(objective)
        self.ranks.average([learner.optimiser.gradient])
        return objective.detach()

    def stats(self) -> Stats:
        return self.tally.take()

    def close(self) -> None:
        pass


def strange(cost: Tensor, batch: ProblemBatch, means: Tensor, ranks: Ranks) -> Tensor:
    """Whether the costs (B, S) of an update are far above the usual `means` (48,) of their variants: ()."""
    return ranks.total(cost_ratio(cost, variant_index(batch), means)) > STRANGE_COST * ranks.count


def summary(loss: Tensor, cost: Tensor, finished: Tensor, norm: Tensor, left_out: Tensor) -> Tensor:
    """What an update was like, in the order of `Stats`; an absurd loss is not told."""
    unfinished = 1 - finished.float().mean()
    return torch.stack([torch.where(left_out, 0.0, loss), cost.mean(), unfinished, norm, left_out.float()])
