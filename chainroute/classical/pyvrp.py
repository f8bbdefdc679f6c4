"""PyVRP: an iterated local search that solves all 48 variants well within seconds."""

from __future__ import annotations

import importlib.util
import math
import time
from collections import deque

from chainroute.check import check
from chainroute.classical import worker
from chainroute.classical.result import Result
from chainroute.errors import ChainRouteError, Fault, fail
from chainroute.problem import Problem
from chainroute.solution import Solution

SEARCH = "chainroute.classical.pyvrp_search:search"
OVERRUN = 0.1  # seconds that a search which does not stop in time is waited for
KEPT = 10  # reports of the search, in case the judge refuses the last ones


def solve(
    problem: Problem,
    time_limit: float,
    seed: int = 0,
    initial: Solution | None = None,
    max_iterations: int | None = None,
) -> Result:
    """The best solution found within `time_limit` seconds, counted from this call to its return.

    An `initial` solution must be feasible; the result is never worse. With `max_iterations` the search ends
    after so many iterations if that is earlier, and is then the same for the same seed.
    """
    begin = time.monotonic()
    _check_options(time_limit, seed, max_iterations)
    start = None if initial is None else _judged_start(problem, initial)
    if importlib.util.find_spec("pyvrp") is None:
        message = "PyVRP is not installed: pip install 'chainroute[solvers]'."
        raise fail("missing-extra", message, "solver")

    routes = None if start is None else [(r.depot, list(r.visits)) for r in start.routes if r.visits]
    reports: deque[tuple[int, list[tuple[int, list[int]]]]] = deque(maxlen=KEPT)
    wanted = begin + time_limit - (0.01 + 2e-5 * problem.num_customers)  # leaves time for the judge
    args = (problem, routes, seed, wanted, max_iterations)
    worker.run(SEARCH, args, wanted + OVERRUN, reports.append)

    latest_first = (Solution.of(problem, found) for _, found in reversed(reports))
    accepted = next((s for s in latest_first if check(problem, s).feasible), None)
    best = min((s for s in (start, accepted) if s is not None), key=lambda s: s.cost, default=None)
    if best is None:
        raise fail("no-solution", f"PyVRP found no feasible solution within {time_limit:g} s.", problem.name)
    return Result(best, time.monotonic() - begin, reports[-1][0] if reports else 0)


def _judged_start(problem: Problem, initial: Solution) -> Solution:
    start = Solution(problem, initial.routes)
    violations = check(problem, start).violations
    if violations:
        raise ChainRouteError([Fault("infeasible-start", v.message, "initial") for v in violations])
    return start


def _check_options(time_limit: float, seed: int, max_iterations: int | None) -> None:
    faults = []
    if not (isinstance(time_limit, int | float) and 0 < time_limit < math.inf):
        message = f"must be a number of seconds above 0, not {time_limit!r}."
        faults.append(Fault("bad-option", message, "time_limit"))
    if not (isinstance(seed, int) and 0 <= seed < 2**32):
        message = f"must be a whole number from 0 to 2^32 - 1, not {seed!r}."
        faults.append(Fault("bad-option", message, "seed"))
    if not (max_iterations is None or (isinstance(max_iterations, int) and max_iterations >= 0)):
        message = f"must be a whole number of at least 0, not {max_iterations!r}."
        faults.append(Fault("bad-option", message, "max_iterations"))
    if faults:
        raise ChainRouteError(faults)
