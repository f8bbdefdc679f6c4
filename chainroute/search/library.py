"""What the solvers share: options, a start, a search in a process that can be ended, and the judge."""

from __future__ import annotations

import importlib.util
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from chainroute.errors import ChainRouteError, Fault, fail
from chainroute.options import limit_faults
from chainroute.plan.check import check
from chainroute.plan.solution import Routes, Solution
from chainroute.problem import Problem
from chainroute.problem.features import require_known
from chainroute.problem.infeasible import impossible
from chainroute.runtime import worker
from chainroute.runtime.deadline import (
    LATE_SECONDS,
    OVERRUN_SECONDS,
    START_SECONDS,
    Deadline,
    judging,
    seconds_of,
)
from chainroute.runtime.extras import loading
from chainroute.search.result import SearchResult

REPORT_SECONDS = 0.1  # between two reports of a search
KEPT_REPORTS = 10  # reports of a search, in case the judge refuses the last ones


@dataclass(frozen=True)
class SearchTask:
    """What a search is to do, and by when."""

    problem: Problem
    deadline: Deadline
    seed: int = 0
    start: Routes | None = None  # feasible ones
    max_iterations: int | None = None  # for PyVRP, which counts them
    history_share: float | None = None  # for PyVRP, of all iterations; None leaves it to its own settings
    heat: tuple[float, float] = (0.0, 0.0)  # for ruin and recreate: at first and at last, in neighbours' legs


class Found(NamedTuple):
    """What a search reports."""

    routes: Routes
    iterations: int = 0
    bound: float | None = None


OnFound = Callable[[Found], None]
Search = Callable[[SearchTask, OnFound], None]  # in a worker
Load = Callable[[], Search]


@dataclass(frozen=True)
class Solver:
    """A solver: what it is called, what it refuses, how it is started and asked."""

    name: str
    require: Callable[[Problem], None]  # raises what keeps it from solving the problem
    start: Callable[[threading.Event | None], None]  # loads what takes long, before the clock runs
    ask: Callable[[SearchTask, OnFound, threading.Event | None], object]  # until the deadline, or an event
    counts_iterations: bool = False

    def solve(
        self,
        problem: Problem,
        time_limit: float,
        seed: int = 0,
        initial: Solution | None = None,
        stop: threading.Event | None = None,
        max_iterations: int | None = None,
    ) -> SearchResult:
        """The best solution found within `time_limit` seconds, counted from this call to its return, or until
        `stop` is set or Ctrl-C comes. While a worker starts, at most START_SECONDS, the clock stands still.

        An `initial` solution must be feasible; the result is never worse. With `max_iterations`, PyVRP's
        search ends after so many iterations if that is earlier, and is then the same for the same seed.
        """
        begin = time.monotonic()
        self.require(problem)
        faults = [] if max_iterations is None else self.iteration_faults(max_iterations)
        start = prepare(problem, time_limit, seed, initial, faults)
        reports: deque[Found] = deque(maxlen=KEPT_REPORTS)
        routes = None if start is None else start.pairs()
        with stoppable(start, reports):
            begin += seconds_of(partial(self.start, stop))
            wanted = Deadline.after(time_limit, begin).earlier(judging(problem.num_customers))
            self.ask(SearchTask(problem, wanted, seed, routes, max_iterations), reports.append, stop)
        return judge(self.name, problem, begin, time_limit, start, list(reports), stop)

    def iteration_faults(self, given: object) -> list[Fault]:
        if not self.counts_iterations:
            return [Fault("bad-option", f"{self.name} counts none.", "max_iterations", "Leave it out.")]
        if isinstance(given, int) and given >= 0:
            return []
        message = f"must be a whole number of at least 0, not {given!r}."
        return [Fault("bad-option", message, "max_iterations")]


def library_solver(
    name: str,
    module: str,
    load: Load,
    max_customers: int | None = None,
    knows: Collection[str] = (),
    beyond: Callable[[Problem], Sequence[str]] = lambda problem: (),
) -> Solver:
    """A solver in a library, which a worker loads: the module that must be installed, how many customers it
    takes, what it holds beyond the 48 variants, and details of these that it cannot hold."""

    def require_all(problem: Problem) -> None:
        if max_customers is not None and problem.num_customers > max_customers:
            message = f"{problem.num_customers} customers; {name} takes at most {max_customers}."
            raise fail("too-large", message, problem.name)
        require(name, module, "chainroute[evaluate]")
        require_known(name, problem, knows, beyond(problem))

    return Solver(name, require_all, partial(warm_up, load), partial(search_in_worker, load))


def search_in_worker(
    load: Load,
    task: SearchTask,
    on_report: OnFound,
    stop: threading.Event | None = None,
    kind: str = worker.SEARCH,
    end: Deadline | None = None,
) -> bool:
    """Searches until the deadline, and passes reports on as they come; nothing is judged here.

    Returns whether the search came to its end. A worker that does not stop in time, or by the `end` where
    that is later, is left alone for LATE_SECONDS and then ended.
    """
    until = (end or task.deadline).later(OVERRUN_SECONDS)
    return worker.run(search, (load, task), until, on_report, kind=kind, stop=stop, patience=LATE_SECONDS)


@contextmanager
def stoppable(start: Solution | None, reports: Collection[object]) -> Iterator[None]:
    """Ctrl-C ends the search, and not more where there is something to return."""
    try:
        yield
    except KeyboardInterrupt:
        if start is None and not reports:
            raise


def prepare(
    problem: Problem,
    time_limit: float | None,
    seed: int,
    initial: Solution | None,
    more: Sequence[Fault] = (),
) -> Solution | None:
    """Refuses options out of range and a start that breaks rules; returns the start."""
    faults = [*limit_faults(time_limit, seed), *more]
    if time_limit is None:
        faults.append(Fault("bad-option", "a search needs one.", "time_limit", "Give seconds, above 0."))
    start = None if initial is None else Solution(problem, initial.routes)
    if start is not None:
        violations = check(problem, start).violations
        faults += [Fault("infeasible-start", v.message, "initial") for v in violations]
    if faults:
        raise ChainRouteError(faults)
    if start is None and (error := impossible(problem)):
        raise error
    return start


def judge(
    name: str,
    problem: Problem,
    begin: float,
    time_limit: float,
    start: Solution | None,
    reports: list[Found],
    stop: threading.Event | None = None,
) -> SearchResult:
    """The best of the start and the last report that the judge accepts."""
    latest_first = (Solution.of(problem, found.routes) for found in reversed(reports))
    accepted = next((s for s in latest_first if check(problem, s).feasible), None)
    best = min((s for s in (start, accepted) if s is not None), key=lambda s: s.cost, default=None)
    if best is None:
        stopped = stop is not None and stop.is_set()
        ending = "before it was stopped" if stopped else f"within {time_limit:g} s"
        message = f"{name} found no feasible solution {ending}."
        raise fail("no-plan-found", message, problem.name)
    last = reports[-1] if reports else Found([])
    return SearchResult(best, time.monotonic() - begin, last.iterations, last.bound)


def require(name: str, module: str, package: str) -> None:
    """Says how to install a solver that is not there."""
    if importlib.util.find_spec(module) is None:
        message = f"{name} is not installed: pip install '{package}'."
        raise fail("missing-extra", message, "solver")


def warm_up(
    load: Load, stop: threading.Event | None = None, kind: str = worker.SEARCH, count: int = 1
) -> None:
    """Has so many workers ready that have loaded the library, so that the next searches begin at once. What
    keeps them from it is for these to tell."""
    with suppress(ChainRouteError):
        worker.run_in_each(warm, (load,), count, Deadline.after(START_SECONDS), kind=kind, stop=stop)


# -- inside a worker, which alone loads the library


def search(load: Load, task: SearchTask, report: OnFound) -> None:
    """Searches by the library, and reports. Where no vehicle can go out, nobody has to be served."""
    p = task.problem
    if any(p.can_go_out(vehicle, depot) for vehicle in p.types for depot in vehicle.depots):
        _loaded(load)(task, report)
    else:
        report(Found([]))


def warm(load: Load, report: Callable[[object], None]) -> None:
    """Imports what takes long to import."""
    _loaded(load)


def _loaded(load: Load) -> Search:
    with loading("the solver", "evaluate"):
        return load()
