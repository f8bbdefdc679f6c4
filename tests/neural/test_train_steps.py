"""The number of steps of captured updates follows the trajectories."""

import pytest
import torch
from training import alone

from chainroute.neural.train.steps import (
    STRIDE_STEPS,
    WINDOW_UPDATES,
    StepBudget,
    captured,
    enough,
    halvings,
    most,
    unknown_steps,
)

DEPOTS = 2


def budget(shares):
    return StepBudget(shares, alone(), unknown_steps(list(shares)))


def trajectories(*visits, steps=96):
    """Actions (T, 1, S) of trajectories whose last visits are at these steps, counted from 1."""
    actions = torch.zeros(steps, 1, len(visits), dtype=torch.int16)
    for s, last in enumerate(visits):
        actions[:last, 0, s] = DEPOTS
    return actions


def updated(steps, visits, unfinished=0, updates=WINDOW_UPDATES):
    for _ in range(updates):
        finished = torch.ones(1, len(visits), dtype=torch.bool)
        finished[0, :unfinished] = False
        steps.count(50, trajectories(*visits), finished, DEPOTS)
        steps.seen[50] += 1
    steps.fit()
    return steps.now[50]


def test_steps_become_as_few_as_trajectories_need():
    """The last visit at step 62 and the way home are 63 steps, which 64 hold; one in a thousand is let go."""
    steps = budget({20: 4, 50: 4})
    assert steps.now == {20: 40, 50: 100}
    assert updated(steps, [60] * 999 + [90]) == 64
    assert updated(steps, [63] * 10) == 64
    assert steps.now[20] == 40


def test_steps_wait_for_a_window_of_updates():
    """Few updates say little about problems that differ."""
    steps = budget({50: 4})
    assert updated(steps, [55], updates=WINDOW_UPDATES - 1) == 100
    assert updated(steps, [55], updates=1) == 56


def test_steps_grow_where_trajectories_run_out_of_them():
    """A stride where a few do; at once to the most where many do."""
    steps = budget({50: 4})
    updated(steps, [60] * 100)
    assert updated(steps, [60] * 100, unfinished=1) == 64 + STRIDE_STEPS
    assert updated(steps, [60] * 100, unfinished=50, updates=1) == most(50)
    assert updated(steps, [60] * 100, unfinished=1) == most(50)


def test_large_problems_have_coarser_numbers():
    """63 steps are 64 in either case, 65 are 68 with 50 customers and 72 with 100."""
    assert [captured(n, 63) for n in (50, 100)] == [64, 64]
    assert [captured(n, 65) for n in (50, 100)] == [68, 72]


@pytest.mark.parametrize(
    ("counts", "share", "strides"),
    [([0, 5, 5, 0], 0.0, 2), ([0, 98, 2, 0], 0.02, 1), ([0, 98, 2, 0], 0.01, 2), ([0, 1, 0, 9], 0.5, 3)],
)
def test_enough_strides_leave_a_share_over(counts, share, strides):
    assert enough(counts, share) == strides


def test_instances_that_are_done_need_not_go_on():
    """Of 200 instances 120 are done in 48 steps and 180 in 72, the last ones in 88; the numbers hold until
    some are cut off, which count as never done."""
    steps = budget({50: 200})
    ends = [45] * 120 + [70] * 60 + [85] * 20
    actions = torch.cat([trajectories(end, end - 5) for end in ends], 1)

    def update(finished):
        for _ in range(WINDOW_UPDATES):
            steps.count(50, actions, finished, DEPOTS)
            steps.seen[50] += 1
        steps.fit()
        return steps.now[50], steps.halvings[50]

    everyone = torch.ones(200, 2, dtype=torch.bool)
    assert update(everyone) == (88, (48, 72))
    assert update(everyone) == (88, (48, 72))
    again = StepBudget({50: 200}, alone(), steps.learned)
    assert (again.now, again.halvings) == ({50: 88}, {50: (48, 72)})
    cut_off = everyone.clone()
    cut_off[120:, 0] = False
    cut_off[140:, 0] = True
    assert update(cut_off) == (92, (48, 88))
    assert update(everyone & False) == (100, ())


@pytest.mark.parametrize(
    ("size", "steps", "stride", "expected"),
    [
        (400, 20, 4, (8, 12)),
        (400, 12, 4, (8,)),
        (400, 8, 4, ()),
        (400, 20, 8, (8, 16)),
        (16, 20, 4, (12, 16)),
        (4, 20, 4, (16,)),
    ],
)
def test_halvings_leave_a_margin(size, steps, stride, expected):
    """Of 100 instances 60 end in the second stride, 20 in the third, 20 in the fourth. A small batch differs
    more from that: with 16 of them a quarter may be under way, not two fifths."""
    assert halvings([0, 0, 60, 20, 20, 0], steps, size, stride) == expected
