"""Many short calls on all cores."""

import os

import pytest

from chainroute.errors import ChainRouteError
from chainroute.runtime.cores import cores
from chainroute.runtime.spread import AHEAD, TOGETHER, on_all_cores


def test_answers_come_in_order_beside_what_was_asked():
    asked = [(2, i) for i in range(50)]
    assert list(on_all_cores(pow, asked)) == [(args, 2 ** args[1]) for args in asked]


def test_no_more_is_taken_than_cores_can_do():
    taken = []
    answers = on_all_cores(abs, ((taken.append(i) or -i,) for i in range(1000)))
    assert next(answers) == ((0,), 0)
    assert len(taken) <= AHEAD * cores() * TOGETHER
    answers.close()
    assert len(taken) <= AHEAD * cores() * TOGETHER


def test_what_a_call_raises_is_raised_after_the_answers_before_it():
    answers = on_all_cores(int, [("1",), ("two",), ("3",)])
    assert next(answers) == (("1",), 1)
    with pytest.raises(ValueError, match=r"invalid literal.*'two'"):
        next(answers)


def test_a_process_that_dies_is_told():
    with pytest.raises(ChainRouteError, match=r"solver-failed.*exit code 3"):
        list(on_all_cores(os._exit, [(3,)]))
