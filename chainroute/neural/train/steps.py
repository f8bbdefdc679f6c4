"""How many steps a captured update has: enough for nearly all of its trajectories, and few more.

An untrained policy makes more and shorter routes than a trained one, and problems of one size differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from chainroute.neural.train.ranks import Ranks

STRIDE_STEPS = 4  # in which the ends of trajectories are counted
FINE_CUSTOMERS = 64  # up to which as many steps lie between the numbers that are captured; else twice as many
TOLERATED_SHARE = 3e-3  # share of trajectories that may run out of steps; they count for nothing
ALARMING_SHARE = 0.1  # share of them at which nothing is waited for
WINDOW_UPDATES = 32  # updates of a size after which its number of steps may change
MAX_HALVINGS = 2  # at most, of the number of instances that go on
MARGIN_DEVIATIONS = 2.0  # standard deviations by which fewer than go on are under way


class StepBudget:
    """The number of steps for each size, and those after which half of the instances go on alone, from when
    the trajectories of the last updates ended. `shares` has the instances of an update for each size; what is
    `learned` goes on from what it was, and is kept up to date."""

    def __init__(self, shares: Mapping[int, int], ranks: Ranks, learned: Tensor):
        self.shares, self.sizes, self.ranks, self.learned = dict(shares), tuple(shares), ranks, learned
        known = dict(zip(shares, learned.tolist(), strict=True))
        self.now = {n: steps or most(n) for n, (steps, *_) in known.items()}
        self.halvings = {n: tuple(filter(None, after)) for n, (_, *after) in known.items()}
        self.seen = dict.fromkeys(shares, 0)  # updates since the number was last looked at
        strides = most(max(shares)) // STRIDE_STEPS
        # Trajectories, and instances, by the stride in which they ended; the last column: those that did not.
        self.ended = torch.zeros(2, len(shares), strides + 2, device=ranks.device)

    def count(self, n: int, actions: Tensor, finished: Tensor, depots: int) -> None:
        """Enters an update of n customers, as the device sees it: actions (T, B, S), who finished (B, S)."""
        number = torch.arange(1, len(actions) + 1, device=actions.device)[:, None, None]
        needed = ((actions >= depots) * number).amax(0) + 1  # the last visit, and the way home
        stride = torch.where(finished, (needed + STRIDE_STEPS - 1) // STRIDE_STEPS, self.ended.shape[2] - 1)
        stride = stride.clamp(max=self.ended.shape[2] - 1)
        for counts, ended in zip(self.ended[:, self.sizes.index(n)], (stride, stride.amax(1)), strict=True):
            counts.index_add_(0, ended.flatten(), torch.ones_like(ended, dtype=counts.dtype).flatten())

    def fit(self) -> None:
        """Changes the numbers where they do not fit what was counted; all ranks do the same."""
        ended = self.ranks.total(self.ended.clone()).tolist()
        for row, (n, counts, instances) in enumerate(zip(self.sizes, *ended, strict=True)):
            unfinished, before = counts[-1] / max(sum(counts), 1), self.now[n]
            if unfinished > ALARMING_SHARE:
                self.now[n], instances = most(n), ()
            elif self.seen[n] < WINDOW_UPDATES:
                continue
            elif unfinished > TOLERATED_SHARE:
                self.now[n] = min(most(n), self.now[n] + stride(n))
            else:
                self.now[n] = min(
                    self.now[n], captured(n, STRIDE_STEPS * enough(counts, TOLERATED_SHARE / 2))
                )
            if unfinished > TOLERATED_SHARE or self.now[n] != before or not self.halvings[n]:
                self.halvings[n] = halvings(instances, self.now[n], self.shares[n], stride(n))
            self.seen[n] = 0
            self.ended[:, row].zero_()
            learned = [self.now[n], *self.halvings[n], *[0] * MAX_HALVINGS][: 1 + MAX_HALVINGS]
            self.learned[row] = torch.tensor(learned, dtype=self.learned.dtype)


def unknown_steps(sizes: Sequence[int]) -> Tensor:
    """What is learned of each size at first."""
    return torch.zeros(len(sizes), 1 + MAX_HALVINGS, dtype=torch.int32)


def most(n: int) -> int:
    """Steps after which everyone has been served: a route for each customer."""
    return captured(n, 2 * n)


def captured(n: int, steps: int) -> int:
    """The least number that is captured of those that hold so many steps."""
    return -(-steps // stride(n)) * stride(n)


def stride(n: int) -> int:
    """Steps between the numbers that are captured for n customers: more where ends scatter more, since every
    change is captured again."""
    return STRIDE_STEPS if n <= FINE_CUSTOMERS else 2 * STRIDE_STEPS


def enough(counts: Sequence[float], share: float) -> int:
    """The least number of strides after which all but a share of the trajectories had ended."""
    allowed, late, strides = share * sum(counts), 0.0, len(counts) - 1
    while strides > 1 and late + counts[strides] <= allowed:
        late += counts[strides]
        strides -= 1
    return strides


def halvings(counts: Sequence[float], steps: int, size: int, stride: int = STRIDE_STEPS) -> tuple[int, ...]:
    """The steps after which half of `size` instances, and then half of these, are nearly always enough, in
    multiples of the stride."""
    found, share = [0], 1.0
    for _ in range(MAX_HALVINGS if counts else 0):
        share /= 2
        spare = MARGIN_DEVIATIONS * math.sqrt(share * (1 - share) / size)
        after = STRIDE_STEPS * enough(counts, max(0.0, share - spare))
        after = -(-after // stride) * stride
        if found[-1] < after < steps:
            found.append(after)
    return tuple(found[1:])
