"""The number of steps of captured updates follows the trajectories."""

import pytest
import torch

from chainroute.train.steps import STRIDE, WINDOW, StepBudget, enough, most
from tests.training import alone

DEPOTS = 2


def trajectories(*visits, steps=96):
    """Actions (T, 1, S) of trajectories whose last visits are at these steps, counted from 1."""
    actions = torch.zeros(steps, 1, len(visits), dtype=torch.int16)
    for s, last in enumerate(visits):
        actions[:last, 0, s] = DEPOTS
    return actions


def updated(steps, visits, unfinished=0, updates=WINDOW):
    for _ in range(updates):
        finished = torch.ones(1, len(visits), dtype=torch.bool)
        finished[0, :unfinished] = False
        steps.count(50, trajectories(*visits), finished, DEPOTS)
        steps.seen[50] += 1
    steps.fit()
    return steps.now[50]


def test_steps_become_as_few_as_trajectories_need():
    """The last visit at step 62 and the way home are 63 steps, which 64 hold; one in a thousand is let go."""
    steps = StepBudget((20, 50), alone())
    assert steps.now == {20: 40, 50: 104}
    assert updated(steps, [60] * 999 + [90]) == 64
    assert updated(steps, [63] * 10) == 64
    assert steps.now[20] == 40


def test_steps_wait_for_a_window_of_updates():
    """Few updates say little about problems that differ."""
    steps = StepBudget((50,), alone())
    assert updated(steps, [55], updates=WINDOW - 1) == 104
    assert updated(steps, [55], updates=1) == 56


def test_steps_grow_where_trajectories_run_out_of_them():
    """A stride where a few do; at once to the most where many do."""
    steps = StepBudget((50,), alone())
    updated(steps, [60] * 100)
    assert updated(steps, [60] * 100, unfinished=1) == 64 + STRIDE
    assert updated(steps, [60] * 100, unfinished=50, updates=1) == most(50)
    assert updated(steps, [60] * 100, unfinished=1) == most(50)


@pytest.mark.parametrize(
    ("counts", "share", "strides"),
    [([0, 5, 5, 0], 0.0, 2), ([0, 98, 2, 0], 0.02, 1), ([0, 98, 2, 0], 0.01, 2), ([0, 1, 0, 9], 0.5, 3)],
)
def test_enough_strides_leave_a_share_over(counts, share, strides):
    assert enough(counts, share) == strides
