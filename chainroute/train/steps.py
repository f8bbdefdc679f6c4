"""How many steps a captured update has: enough for nearly all of its trajectories, and few more.

An untrained policy makes more and shorter routes than a trained one, and problems of one size differ.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from chainroute.train.ranks import Ranks

STRIDE = 8  # between the numbers of steps that are captured
TOLERATED = 3e-3  # share of trajectories that may run out of steps; they count for nothing
ALARMING = 0.1  # share of them at which nothing is waited for
WINDOW = 32  # updates of a size after which its number of steps may change


class StepBudget:
    """The number of steps for each size, from when the trajectories of the last updates ended."""

    def __init__(self, sizes: Sequence[int], ranks: Ranks):
        self.sizes, self.ranks = tuple(sizes), ranks
        self.now = {n: most(n) for n in sizes}
        self.seen = dict.fromkeys(sizes, 0)  # updates since the number was last looked at
        strides = most(max(sizes)) // STRIDE
        # Trajectories by the stride in which they ended; the last column has those that did not.
        self.ended = torch.zeros(len(sizes), strides + 2, device=ranks.device)

    def count(self, n: int, actions: Tensor, finished: Tensor, depots: int) -> None:
        """Enters an update of n customers, as the device sees it: actions (T, B, S), who finished (B, S)."""
        number = torch.arange(1, len(actions) + 1, device=actions.device)[:, None, None]
        needed = ((actions >= depots) * number).amax(0) + 1  # the last visit, and the way home
        stride = torch.where(finished, (needed + STRIDE - 1) // STRIDE, self.ended.shape[1] - 1)
        stride = stride.clamp(max=self.ended.shape[1] - 1).flatten()
        self.ended[self.sizes.index(n)].index_add_(0, stride, torch.ones_like(stride, dtype=self.ended.dtype))

    def fit(self) -> None:
        """Changes the numbers where they do not fit what was counted; all ranks do the same."""
        ended = self.ranks.total(self.ended.clone()).tolist()
        for row, (n, counts) in enumerate(zip(self.sizes, ended, strict=True)):
            unfinished = counts[-1] / max(sum(counts), 1)
            if unfinished > ALARMING:
                self.now[n] = most(n)
            elif self.seen[n] < WINDOW:
                continue
            elif unfinished > TOLERATED:
                self.now[n] = min(most(n), self.now[n] + STRIDE)
            else:
                self.now[n] = min(self.now[n], STRIDE * enough(counts, TOLERATED / 2))
            self.seen[n] = 0
            self.ended[row].zero_()


def most(n: int) -> int:
    """Steps after which everyone has been served: a route for each customer."""
    return STRIDE * -(-2 * n // STRIDE)


def enough(counts: Sequence[float], share: float) -> int:
    """The least number of strides after which all but a share of the trajectories had ended."""
    allowed, late, strides = share * sum(counts), 0.0, len(counts) - 1
    while strides > 1 and late + counts[strides] <= allowed:
        late += counts[strides]
        strides -= 1
    return strides
