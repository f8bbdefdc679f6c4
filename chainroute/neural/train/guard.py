"""What is done when training goes wrong: the run goes back to where it was well, and on with a lower rate."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import torch
from torch import Tensor

from chainroute.errors import fail
from chainroute.neural.train.engine import Stats
from chainroute.neural.train.learner import Learner
from chainroute.neural.train.records import Records

DIVERGED_COST = 1.5  # times the lowest mean of all costs
KEEP_SECONDS = 20.0  # between two copies of the learner
MAX_ROLLBACKS = 4  # in a stretch of training
CAUTION_FACTOR = 0.5  # by which the rate is lowered each time


@dataclass(frozen=True)
class Copy:
    """A learner as it was."""

    tensors: list[Tensor]
    step: int
    instances: int


class Guard:
    """Notices when training goes wrong: numbers that are none, or costs far above the lowest.

    It keeps two copies of the learner on its device, and goes back to the older one: what goes wrong has
    often begun before it shows.
    """

    def __init__(self, learner: Learner):
        self.learner = learner
        self.copies = [self._copy()]
        self.kept_at = time.monotonic()
        self.rollbacks = 0
        self._forget()

    def _forget(self) -> None:
        self.first = self.learner.means.log()
        self.slow = self.first.clone()  # logarithms of the moving means of the costs, smoothed once more
        self.lowest = math.inf  # of all costs together, in units of the first

    def trouble(self, stats: Stats) -> str:
        """What is wrong with the updates since the last look; empty if nothing is."""
        values = {**vars(stats), "weights": self.weights()}
        bad = [name for name, value in values.items() if not math.isfinite(value)]
        if bad:
            return f"{', '.join(bad)} not finite after {self.learner.step:,} updates"
        if stats.left_out == 1 and self.learner.usual_norm.isfinite():
            return f"all of the last updates were left out after {self.learner.step:,} updates"
        now = self.learner.means.log()
        self.first = torch.where(self.first.isnan(), now, self.first)
        self.slow = torch.where(self.slow.isnan(), now, torch.lerp(self.slow, now, 0.1))
        # Together, since the few instances of one variant and size in an update may differ by far.
        costs = (self.slow - self.first).nanmean().exp().item()
        self.lowest = min(costs, self.lowest)
        if costs > DIVERGED_COST * self.lowest:
            times = costs / self.lowest
            return f"costs are {times:.2f} times the lowest after {self.learner.step:,} updates"
        return ""

    def keep(self) -> None:
        """Copies the learner if the last copy is old."""
        if time.monotonic() - self.kept_at > KEEP_SECONDS:
            self.copies = [self.copies[-1], self._copy()]
            self.kept_at = time.monotonic()

    def roll_back(self, trouble: str, records: Records) -> None:
        """Makes the learner what it was, with a lower rate; raises where that has not helped before."""
        self.rollbacks += 1
        if self.rollbacks > MAX_ROLLBACKS:
            tried = f"The run was rolled back {MAX_ROLLBACKS} times with ever lower rates."
            raise fail("diverged", f"{trouble}. {tried} {records.kept()}")
        learner, copy = self.learner, self.copies[0]
        for (_, tensor), before in zip(learner.tensors(), copy.tensors, strict=True):
            tensor.copy_(before)
        learner.step, learner.instances = copy.step, copy.instances
        learner.warm_since = min(learner.warm_since, learner.step)
        learner.resume_moments()
        learner.caution *= CAUTION_FACTOR
        self.copies = [copy]
        self._forget()
        records.rolled_back(
            f"{trouble}: back to update {copy.step:,}, and on at {learner.caution:g} of the rate"
        )

    def _copy(self) -> Copy:
        tensors = [tensor.clone() for _, tensor in self.learner.tensors()]
        return Copy(tensors, self.learner.step, self.learner.instances)

    def weights(self) -> float:
        """The length of all weights as one vector."""
        lengths = torch._foreach_norm([p.detach() for p in self.learner.policy.parameters()])
        return float(torch.stack(lengths).norm())
