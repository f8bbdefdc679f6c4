"""Searches that go wrong, to be run in a worker process in place of PyVRP's."""

import os
import signal
import time
from functools import partial

from chainroute.classical import pyvrp
from chainroute.errors import fail


def replace_pyvrp(monkeypatch, search):
    monkeypatch.setattr(pyvrp, "load", partial(loaded, search))


def loaded(search):
    return search


def hang(problem, initial, seed, deadline, max_iterations, share, report):
    time.sleep(600)


def report_and_hang(problem, initial, seed, deadline, max_iterations, share, report):
    """One route each, then an endless loop outside Python's reach: C code that never lets go."""
    report((7, [(0, [customer]) for customer in problem.customers]))
    sum(range(10**15))


def report_and_break_rules(problem, initial, seed, deadline, max_iterations, share, report):
    """A good solution, then one that forgets all customers but one."""
    report((1, [(0, [customer]) for customer in problem.customers]))
    report((2, [(0, [problem.customers[0]])]))


def break_rules(problem, initial, seed, deadline, max_iterations, share, report):
    report((1, [(0, [problem.customers[0]])]))


def crash(problem, initial, seed, deadline, max_iterations, share, report):
    os.kill(os.getpid(), signal.SIGSEGV)


def leave(problem, initial, seed, deadline, max_iterations, share, report):
    os._exit(3)


def stumble(problem, initial, seed, deadline, max_iterations, share, report):
    raise ValueError("two left feet")


def nap(problem, initial, seed, deadline, max_iterations, share, report):
    time.sleep(0.5)
    report("awake")


def refuse(problem, initial, seed, deadline, max_iterations, share, report):
    raise fail("bad-option", "is not right.", "left")


def load_for_ever(effort, customers, report):
    """In place of the policy's loading."""
    time.sleep(600)


def read_slowly(task, body, settings, report):
    """In place of a reader: a body that says so takes for ever, outside Python's reach."""
    if b"slow" in body:
        sum(range(10**15))
    report(task(body, settings))
