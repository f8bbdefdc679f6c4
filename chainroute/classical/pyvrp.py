"""PyVRP: an iterated local search that solves all 48 variants well within seconds."""

from __future__ import annotations

import importlib.util
import threading
import time
from collections import deque
from collections.abc import Callable

from chainroute.classical import library
from chainroute.classical.library import Found
from chainroute.classical.result import SearchResult
from chainroute.errors import ChainRouteError, Fault
from chainroute.problem import Problem
from chainroute.runtime import worker
from chainroute.runtime.deadline import OVERRUN, Deadline, judging
from chainroute.solution import Routes, Solution

Report = tuple[int, Routes]  # iterations, and the best routes after them


def solve(
    problem: Problem,
    time_limit: float,
    seed: int = 0,
    initial: Solution | None = None,
    max_iterations: int | None = None,
    stop: threading.Event | None = None,
) -> SearchResult:
    """The best solution found within `time_limit` seconds, counted from this call to its return, or until
    `stop` is set or Ctrl-C comes.

    An `initial` solution must be feasible; the result is never worse. With `max_iterations` the search ends
    after so many iterations if that is earlier, and is then the same for the same seed.
    """
    begin = time.monotonic()
    faults = []
    if not (max_iterations is None or (isinstance(max_iterations, int) and max_iterations >= 0)):
        message = f"must be a whole number of at least 0, not {max_iterations!r}."
        faults.append(Fault("bad-option", message, "max_iterations"))
    try:
        start = library.prepare(problem, time_limit, seed, initial)
    except ChainRouteError as error:
        raise ChainRouteError([*error.faults, *faults]) from None
    if faults:
        raise ChainRouteError(faults)
    library.require("PyVRP", "pyvrp", "chainroute")
    reports: deque[Report] = deque(maxlen=library.KEPT_REPORTS)
    wanted = Deadline.after(time_limit, begin).earlier(judging(problem.num_customers))
    with library.stoppable(start, reports):
        search(problem, wanted, reports.append, seed, start, max_iterations, stop)
    found = [Found(routes, iterations) for iterations, routes in reports]
    return library.judge("PyVRP", problem, begin, time_limit, start, found, stop)


def search(
    problem: Problem,
    deadline: Deadline,
    on_report: Callable[[Report], None],
    seed: int = 0,
    start: Solution | None = None,
    max_iterations: int | None = None,
    stop: threading.Event | None = None,
    share: float | None = None,
    kind: str = worker.SEARCH,
    end: Deadline | None = None,
) -> bool:
    """Searches in a worker until the deadline, and passes reports on as they come;
    nothing is judged here. Whether it came to its end. With a small `share`, it settles sooner.

    A worker that does not stop in time, or by the `end` where that is later, is ended.
    """
    routes = None if start is None else start.pairs()
    args = (load, problem, routes, seed, deadline, max_iterations, share)
    return worker.run(library.search, args, (end or deadline).later(OVERRUN), on_report, kind=kind, stop=stop)


def load() -> library.Search:
    from chainroute.classical.pyvrp_search import search

    return search


def installed() -> bool:
    return importlib.util.find_spec("pyvrp") is not None


def warm_up(stop: threading.Event | None = None, kind: str = worker.SEARCH) -> None:
    """Has a worker of that kind ready, so that the next search begins at once."""
    library.warm_up(load, stop, kind)
