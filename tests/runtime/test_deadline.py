"""runtime/deadline: a moment that processes share, what is left until then, and shares of it."""

import math
import pickle
from types import SimpleNamespace

import pytest

from chainroute.runtime import deadline
from chainroute.runtime.deadline import LONGEST_SECONDS, NEVER, Deadline, judging


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands at 100 until it is told otherwise."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(deadline, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def test_it_passes_when_the_clock_reaches_it(clock):
    soon = Deadline.after(2.0)
    assert (soon.left, soon.passed) == (2.0, False)
    clock.now = 102.0
    assert (soon.left, soon.passed) == (0.0, True)
    clock.now = 103.0
    assert soon.left == -1.0


def test_margins_and_shares_are_deadlines_too(clock):
    """A share is of what is left now, also where work began earlier."""
    whole = Deadline.after(8.0, begin=96.0)
    assert (whole.earlier(1.0).at, whole.later(1.0).at) == (103.0, 105.0)
    assert whole.share(0.25).at == 101.0
    assert min(whole, Deadline.after(1.0)).at == 101.0


def test_without_one_there_is_time_enough_that_no_clock_overflows(clock):
    assert Deadline.after(None) == NEVER == NEVER.share(0.5) == NEVER.earlier(3.0)
    assert (NEVER.never, NEVER.passed, NEVER.left) == (True, False, LONGEST_SECONDS)
    assert Deadline.after(10**400).left == LONGEST_SECONDS
    assert math.isfinite(Deadline.after(10**400).at)


def test_it_means_the_same_in_another_process():
    assert pickle.loads(pickle.dumps(Deadline(7.0))) == Deadline(7.0)


def test_the_judge_takes_longer_for_more_customers():
    assert judging(10) < judging(1000) < 0.1
