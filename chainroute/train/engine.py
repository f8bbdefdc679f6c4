"""Engines: what turns a learner and a learning rate into an updated learner.

`PlainEngine` runs everywhere and says what an update is. `Fast` does the same as one graph on a GPU.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Protocol

import torch
from torch import Tensor

from chainroute.env import Mixture, ProblemBatch, sample
from chainroute.errors import ChainRouteError, fail
from chainroute.fast.support import kernel_obstacle, obstacle
from chainroute.train.learner import Learner
from chainroute.train.objective import advantages, cost_ratio, loss, variant_index
from chainroute.train.ranks import Ranks
from chainroute.train.rollout import Trajectories, sample_trajectories
from chainroute.train.streams import choices, reseed

CAPABILITY = (8, 0)  # from which on GPUs multiply bfloat16
ENGINES = ("auto", "plain", "fast")
STRANGE_COST = 2.0  # times the usual costs: such an update is left out


@dataclass(frozen=True)
class Stats:
    """Means over the updates since the last look."""

    loss: float
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
        self.sums.zero_()
        self.updates = 0
        return Stats(*means.tolist())


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
            learner.policy, batch, refine, self.generator, starts=config.starts, too_late=alone
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
            made.cost, made.finished, variant_index(batch), means, config.objective, self.ranks.total
        )
        objective = loss(advantage, made.log_likelihood)
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


def make_engine(name: str, learner: Learner, ranks: Ranks) -> tuple[Engine, str]:
    """The engine of that name, and which it is in words; "auto" is the fast one where it can run."""
    if name not in ENGINES:
        raise fail("unknown-value", f"'{name}' is not one of {', '.join(ENGINES)}.", "engine")
    if name == "plain":
        return PlainEngine(learner, ranks), "plain (as asked)"
    reason = _obstacle(learner)
    anywhere = ranks.most(torch.tensor(float(bool(reason)), device=ranks.device)).item()
    if anywhere and not reason:
        reason = "cannot run on every rank"  # and all must do the same
    if not reason:
        engine: Engine = importlib.import_module("chainroute.train.fast").Fast(learner, ranks)
        if name == "fast" or ranks.grouped:  # a rank that gave up alone would leave the others waiting
            return engine, "fast"
        reason = _failure(engine, learner)
        if not reason:
            return engine, "fast"
    if name == "fast":
        raise fail("bad-option", f"the fast engine {reason}.", "engine", "Choose auto or plain.")
    return PlainEngine(learner, ranks), f"plain (the fast engine {reason})"


def _failure(engine: Engine, learner: Learner) -> str:
    """Why the engine cannot prepare an update of this network, such as a block of somebody's own that waits
    for the device; empty if it can. A lack of memory is raised: no other engine has more."""
    try:
        engine.prepare()
    except ChainRouteError:
        raise
    except Exception as error:
        if lacks_memory(error):
            raise
        engine.close()
        learner.policy.zero_grad(set_to_none=False)
        line = next(iter(str(error).strip().splitlines()), "").rstrip(".")
        return f"failed to capture an update, {type(error).__name__}: {line}"
    return ""


def lacks_memory(error: BaseException | None) -> bool:
    """Whether that is what failed first: a graph under capture then fails with an error of its own."""
    while error is not None:
        if isinstance(error, MemoryError | torch.OutOfMemoryError) or "allocate memory" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _obstacle(learner: Learner) -> str:
    """Why the fast engine cannot run here; empty if it can."""
    if learner.device.type != "cuda":
        return "needs a GPU"
    capability = torch.cuda.get_device_capability(learner.device)
    if capability < CAPABILITY:
        had = f"{torch.cuda.get_device_name(learner.device)} has {capability[0]}.{capability[1]}"
        return f"needs a GPU of compute capability {CAPABILITY[0]}.{CAPABILITY[1]}, and {had}"
    return obstacle(learner.policy) or kernel_obstacle(learner.config.policy, max(learner.config.sizes))
