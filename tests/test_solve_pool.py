"""Many problems at once: work is prepared while other work is under way, and no more of it than is needed."""

import threading

import pytest

from chainroute.solve.pool import ahead


def test_the_next_items_are_made_while_one_is_in_hand_and_no_more_than_are_asked_for():
    """With room for two, a third waits in the maker's hands while the first is in ours."""
    made, over = [], threading.Event()
    third, fourth = threading.Event(), threading.Event()

    def items():
        for i in range(5):
            made.append(i)
            if i == 3:
                third.set()
            if i == 4:
                fourth.set()
            yield i

    line = ahead(items(), 2, over)
    assert next(line) == 0
    assert third.wait(10)
    assert not fourth.wait(0.3)
    assert made == [0, 1, 2, 3]
    assert list(line) == [1, 2, 3, 4]


def test_what_ends_the_making_is_raised_after_what_was_made():
    def items():
        yield 1
        raise OSError("no more")

    line = ahead(items(), 8, threading.Event())
    assert next(line) == 1
    with pytest.raises(OSError, match="no more"):
        next(line)


def test_nothing_more_comes_once_it_is_over():
    """Neither for us, nor in the thread, which would else wait for ever to be relieved of its items."""
    over = threading.Event()
    before = threading.active_count()
    line = ahead(iter(range(100)), 1, over)
    assert next(line) == 0
    over.set()
    assert list(line) == []
    assert wait_until(lambda: threading.active_count() == before)


def wait_until(is_true, seconds=10):
    tick = threading.Event()
    return any(is_true() or tick.wait(0.05) for _ in range(int(seconds / 0.05)))
