"""The learning rate over a run."""

import pytest
from training import tiny

from chainroute.neural.train.learner import Learner
from chainroute.neural.train.schedule import factor, share


def test_warm_up_rises_evenly_to_one():
    assert [factor(s, 3, 1.0, "linear") for s in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert factor(0, 0, 1.0, "linear") == 1.0


def test_cool_down_falls_to_zero():
    assert [factor(9, 0, left, "linear") for left in (1, 0.75, 0.36, 0)] == [1, 0.75, 0.36, 0]


def test_share_of_a_cool_down_that_is_ahead():
    assert [share(ahead, 10) for ahead in (20, 10, 5, 0, -1)] == [1, 1, 0.5, 0, 0]
    assert share(3, 0) == 1  # no cool-down at all


def test_paper_recipe_falls_where_the_paper_says():
    """300 epochs: the full rate for 270, a tenth until 295, a hundredth to the end."""
    config = tiny(updates=300, cooldown=30, warmup=0, learning_rate=1e-3, decay="steps")
    learner = Learner.fresh(config)
    rates = []
    for learner.step in range(300):
        rates.append(learner.rate())
    assert rates == pytest.approx([1e-3] * 270 + [1e-4] * 25 + [1e-5] * 5)


def test_rate_warms_up_again_when_the_moments_are_rebuilt():
    learner = Learner.fresh(tiny(warmup=3, learning_rate=1.0))
    learner.step = 50
    assert learner.rate() == 1.0
    learner.restart_moments()
    assert learner.rate() == 0.25
    learner.step += 1
    assert learner.rate(ahead=0.5) == 0.25  # half of a half
