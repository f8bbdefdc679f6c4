"""Learner: everything that training changes, and how a gradient changes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from chainroute.errors import ChainRouteError, Fault
from chainroute.neural.policy import Policy
from chainroute.neural.policy.store import random_policy
from chainroute.neural.train.config import TrainConfig
from chainroute.neural.train.objective import fresh_means
from chainroute.neural.train.optimiser import Optimiser
from chainroute.neural.train.schedule import factor, share
from chainroute.neural.train.steps import unknown_steps

ABSURD_NORM = 20.0  # times the usual norm of gradients: such an update is left out
NORM_MEMORY = 0.01  # weight of a norm in the moving mean
NORM_DRIFT = 1.05  # growth of the usual norm with each update left out, so that training cannot get stuck
OTHER_NETWORK_REMEDY = "Give a recipe with the network of the weights, or other weights."


@dataclass
class Learner:
    config: TrainConfig
    policy: Policy
    optimiser: Optimiser
    means: Tensor  # (sizes, 48) moving mean of the costs of each size and variant
    usual_norm: Tensor  # () moving mean of the norms of gradients; infinite before the first
    steps: Tensor  # (sizes, 3) whole: those of an update, and after which half goes on; 0 where not known
    step: int = 0  # updates made
    instances: int = 0
    seconds: float = 0.0  # spent on updates
    warm_since: int = 0  # the step at which the moments of the optimiser were empty
    caution: float = 1.0  # by which rates are lowered after the run had to be rolled back

    @staticmethod
    def fresh(config: TrainConfig, device: torch.device | str = "cpu") -> Learner:
        policy = random_policy(config.policy, config.seed).train().to(device)
        means = torch.stack([fresh_means(device) for _ in config.sizes])
        optimiser = Optimiser(policy, config.optimiser, config.weight_decay)
        usual_norm = torch.full((), torch.inf, device=device)
        return Learner(config, policy, optimiser, means, usual_norm, unknown_steps(config.sizes).to(device))

    @property
    def device(self) -> torch.device:
        return self.means.device

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Every tensor that training changes, by name."""
        for name, parameter in self.policy.named_parameters():
            yield f"policy.{name}", parameter.data
        yield from self.optimiser.moments()
        yield "means", self.means
        yield "usual_norm", self.usual_norm
        yield "steps", self.steps

    def rate(self, ahead: float = 1.0) -> float:
        """The learning rate of the next update; `ahead` is the part of a cool-down by time still to come."""
        c = self.config
        if c.updates:
            ahead = min(ahead, share(c.updates - self.step - 0.5, c.cooldown))  # in the middle of the update
        return self.caution * c.learning_rate * factor(self.step - self.warm_since, c.warmup, ahead, c.decay)

    def learn(self, rate: float, instances: int, strange: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """One update at that rate, by so many instances: see `apply`."""
        self.optimiser.set_rate(rate)
        outcome = self.apply(self.means.new_zeros((), dtype=torch.bool) if strange is None else strange)
        self.count(instances)
        return outcome

    @torch.no_grad()
    def apply(self, strange: Tensor) -> tuple[Tensor, Tensor]:
        """Moves the weights along the gradients, which are cleared.

        The update is left out if it is `strange`, or if its gradient is no number or far longer than usual:
        Muon's steps have a fixed length, so that clipping does not tame them. Returns the norm of the
        gradient before clipping, 0 if it is left out, and whether it is.
        """
        gradient, usual = self.optimiser.gradient, self.usual_norm
        norm = torch.linalg.vector_norm(gradient)
        left_out = strange | ~norm.isfinite() | (norm > ABSURD_NORM * usual)
        followed = torch.where(usual.isinf(), norm, torch.lerp(usual, norm, NORM_MEMORY))
        usual.copy_(torch.where(left_out, NORM_DRIFT * usual, followed))
        clipped = gradient * (self.config.clip / (norm + 1e-6)).clamp(max=1.0)
        gradient.copy_(torch.where(left_out, 0.0, clipped))
        self.optimiser.hold(left_out)
        self.optimiser.step()
        gradient.zero_()
        return torch.where(left_out, 0.0, norm), left_out

    def count(self, instances: int) -> None:
        """Notes that an update was made, by so many instances."""
        self.step += 1
        self.instances += instances

    def begin_with(self, policy: Policy) -> None:
        """Takes over the weights of another policy of the same kind.

        It may have been told less (`features`, `spacing`) and clip otherwise: what is new weighs nothing.
        """
        ours, theirs = self.config.policy.as_dict(), policy.config.as_dict()
        may_differ = {"spacing", "clip"} | ({"features"} if theirs["features"] == "paper" else set())
        faults = [
            Fault(
                "other-config",
                f"is {theirs[name]} in the weights, not {value}.",
                f"policy.{name}",
                OTHER_NETWORK_REMEDY,
            )
            for name, value in ours.items()
            if theirs[name] != value and name not in may_differ
        ]
        if faults:
            raise ChainRouteError(faults)
        given = {name: weight.detach().clone() for name, weight in policy.named_parameters()}
        for name, parameter in self.policy.named_parameters():
            parameter.data.zero_()
            if name in given:
                part = tuple(slice(size) for size in given[name].shape)
                parameter.data[part] = given[name]

    def restart_moments(self) -> None:
        """The optimiser forgets, and the rate warms up again."""
        self.warm_since = self.step
        for _, moment in self.optimiser.moments():
            moment.zero_()
        self.resume_moments()

    def resume_moments(self) -> None:
        """Lets the optimiser know how many updates its moments have seen."""
        for counter in self.optimiser.counters():
            counter.fill_(self.step - self.warm_since)
