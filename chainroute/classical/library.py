"""What the solvers share: options, a start, a search in a process that can be ended, and the judge."""

from __future__ import annotations

import importlib.util
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from chainroute.check import check
from chainroute.classical.result import SearchResult
from chainroute.errors import ChainRouteError, Fault, fail
from chainroute.infeasible import impossible
from chainroute.options import limit_faults
from chainroute.problem import Problem
from chainroute.runtime import worker
from chainroute.runtime.deadline import OVERRUN, Deadline, judging
from chainroute.runtime.extras import loading
from chainroute.solution import Routes, Solution

START_SECONDS = 30.0  # seconds that a worker may take to start
KEPT_REPORTS = 10  # reports of a search, in case the judge refuses the last ones

Search = Callable[..., None]  # of the problem, a start, the seed, the deadline, ..., and who hears of routes
Load = Callable[[], Search]


class Found(NamedTuple):
    """What a search reports, in its worker."""

    routes: Routes
    iterations: int = 0
    bound: float | None = None


@dataclass(frozen=True)
class SolverLibrary:
    """A library that searches: its name, the module that must be installed, and how a worker loads it."""

    name: str
    module: str
    load: Load
    max_customers: int | None = None
    unknown: Callable[[Problem], Sequence[str]] = lambda problem: problem.extras  # what it has no model for

    def solve(
        self,
        problem: Problem,
        time_limit: float,
        seed: int = 0,
        initial: Solution | None = None,
        stop: threading.Event | None = None,
    ) -> SearchResult:
        """The best solution found within `time_limit` seconds, counted from this call to its return, or until
        `stop` is set or Ctrl-C comes.

        An `initial` solution must be feasible; the result is never worse. Seeds make no difference.
        """
        begin = time.monotonic()
        if self.max_customers is not None and problem.num_customers > self.max_customers:
            message = f"{problem.num_customers} customers; {self.name} takes at most {self.max_customers}."
            raise fail("too-large", message, problem.name)
        require(self.name, self.module, "chainroute[evaluate]")
        if unknown := self.unknown(problem):
            message = f"{self.name} does not know: {', '.join(unknown)}. PyVRP does."
            raise fail("unsupported-feature", message, problem.name)
        start = prepare(problem, time_limit, seed, initial)
        reports: deque[Found] = deque(maxlen=KEPT_REPORTS)
        wanted = Deadline.after(time_limit, begin).earlier(judging(problem.num_customers))
        with stoppable(start, reports):
            args = (self.load, problem, None if start is None else start.pairs(), seed, wanted)
            worker.run(search, args, wanted.later(OVERRUN), reports.append, stop=stop)
        return judge(self.name, problem, begin, time_limit, start, list(reports), stop)


@contextmanager
def stoppable(start: Solution | None, reports: Collection[object]) -> Iterator[None]:
    """Ctrl-C ends the search, and not more where there is something to return."""
    try:
        yield
    except KeyboardInterrupt:
        if start is None and not reports:
            raise


def prepare(
    problem: Problem, time_limit: float | None, seed: int, initial: Solution | None
) -> Solution | None:
    """Refuses options out of range and a start that breaks rules; returns the start."""
    faults = limit_faults(time_limit, seed)
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


def warm_up(load: Load, stop: threading.Event | None = None, kind: str = worker.SEARCH) -> None:
    """Has a worker ready that has loaded the library, so that the next search begins at once."""
    worker.run(warm, (load,), Deadline.after(START_SECONDS), lambda _: None, kind=kind, stop=stop)


# -- inside a worker, which alone loads the library


def search(load: Load, *args: Any) -> None:
    """Searches, and reports: `args` are those of the library's search."""
    _loaded(load)(*args)


def warm(load: Load, report: Callable[[object], None]) -> None:
    """Imports what takes long to import."""
    _loaded(load)


def _loaded(load: Load) -> Search:
    with loading("the solver", "evaluate"):
        return load()
