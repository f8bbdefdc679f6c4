"""Searches that go wrong, to be run in a worker process in place of PyVRP's."""

import os
import signal
import time
from functools import partial

from chainroute.errors import fail
from chainroute.search.library import Found
from chainroute.search.solvers import pyvrp
from chainroute.solve import first_plans, portfolio


def replace_pyvrp(monkeypatch, search):
    monkeypatch.setattr(pyvrp, "load", partial(loaded, search))


def construct_nothing(monkeypatch):
    """No plan is made without a search or the policy."""
    monkeypatch.setattr(first_plans, "cut_tour", lambda problem: None)
    monkeypatch.setattr(first_plans, "append_hardest_first", lambda problem: None)
    monkeypatch.setattr(portfolio, "inserted", lambda problem, over: iter(()))


def loaded(search):
    return search


started = False  # in a worker


def load_slowly():
    """PyVRP's search, of which the first one to ask in a worker has to wait for two seconds."""
    global started
    if not started:
        time.sleep(2)
    started = True
    from chainroute.search.solvers.pyvrp_search import search

    return search


def hang(task, report):
    time.sleep(600)


def late(task, report):
    """Ends half a second after its deadline."""
    time.sleep(max(0.0, task.deadline.left) + 0.5)


def report_and_hang(task, report):
    """One route each, then an endless loop outside Python's reach: C code that never lets go."""
    report(Found([(0, [customer]) for customer in task.problem.customers], 7))
    sum(range(10**15))


def report_and_break_rules(task, report):
    """A good solution, then one that forgets all customers but one."""
    report(Found([(0, [customer]) for customer in task.problem.customers], 1))
    report(Found([(0, [task.problem.customers[0]])], 2))


def break_rules(task, report):
    report(Found([(0, [task.problem.customers[0]])], 1))


def crash(task, report):
    os.kill(os.getpid(), signal.SIGSEGV)


def leave(task, report):
    os._exit(3)


def stumble(task, report):
    raise ValueError("two left feet")


def nap(task, report):
    time.sleep(0.5)
    report("awake")


def refuse(task, report):
    raise fail("bad-option", "is not right.", "left")


def multiply(task, report):
    """Reports how many threads there are after a large product of NumPy's."""
    import numpy as np

    side = np.ones((600, 600))
    report((float((side @ side)[0, 0]), len(os.listdir("/proc/self/task"))))


def load_for_ever(effort, customers, report):
    """In place of the policy's loading."""
    time.sleep(600)


def read_slowly(task, body, settings, report):
    """In place of a reader: a body that says so takes for ever, outside Python's reach."""
    if b"slow" in body:
        sum(range(10**15))
    report(task(body, settings))


# -- one of many, called "bad", ends the process that has it in hand


def die_of(name):
    if name.startswith("bad"):
        os.kill(os.getpid(), signal.SIGKILL)


def read_or_die(reader, file, is_ours):
    from chainroute.cli.files import ProblemReader

    die_of(file.name)
    return ProblemReader.read(reader, file, is_ours)


def words_or_die(told, columns, outcome, *places):
    from chainroute.cli.outcomes import _words

    die_of(outcome.problem.name)
    return _words(told, columns, outcome, *places)


def search_or_die(task, report):
    from chainroute.search.solvers.pyvrp_search import search

    die_of(task.problem.name)
    search(task, report)


def is_done_or_die(problem, out):
    from chainroute.cli.outcomes import _is_done

    die_of(problem.name)
    return _is_done(problem, out)


def grow(megabytes, report):
    report(len(bytearray(1_000_000 * megabytes)))
