"""Classical solvers, and our own front door, on the same tasks: the time is taken around the call."""

from __future__ import annotations

import importlib.metadata
import platform
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from chainroute.errors import FOR_ALL, USE_LISTED, ChainRouteError, Fault, fail
from chainroute.options import require_limits
from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.research.evaluate.results import TaskResult
from chainroute.research.evaluate.run import solved
from chainroute.research.evaluate.tasks import SMALL_CUSTOMERS, Task
from chainroute.runtime.cores import cores
from chainroute.search.solvers.milp import MAX_CUSTOMERS

LIMITS = ((50, 10.0), (100, 20.0))  # the paper's: customers, and seconds for each instance
PACKAGES = {"milp": "scipy", "vroom": "pyvroom"}  # where a solver's package has another name
FRONT_DOOR = "solve"  # the policy and PyVRP together, as `chainroute solve` runs them
ONE_CUSTOMER = Problem(capacity=1, delivery=np.ones(1), coords=np.eye(2))
WARM_UP_SECONDS = 2.0


@dataclass(frozen=True)
class Classical:
    """A solver by name, with its limit for each instance."""

    name: str
    time_limit: float | None = None  # seconds of a run; None: the paper's, by the number of customers
    seed: int = 0
    jobs: int = 1  # instances at a time: more where times do not matter
    runs: int = 1  # on each instance, with seeds one after the other; the best counts

    def __post_init__(self) -> None:
        solver(self.name)
        require_limits(self.time_limit, self.seed)
        for option, value in (("jobs", self.jobs), ("runs", self.runs)):
            if value < 1:
                raise fail("bad-option", f"must be at least 1, not {value}.", option)

    def at(self, customers: int | None) -> Classical:
        """The same with the limit that the paper has for so many customers, unless it has one of its own."""
        if self.name == "milp" and customers is not None and customers > MAX_CUSTOMERS:
            message = f"milp takes at most {MAX_CUSTOMERS} customers; --n {SMALL_CUSTOMERS} has so few."
            raise fail("bad-option", message, "solver", "Choose another solver, or fewer customers.")
        if self.time_limit is not None:
            return self
        few = customers is None or customers <= LIMITS[0][0]
        return replace(self, time_limit=LIMITS[0][1] if few else LIMITS[1][1])

    @property
    def label(self) -> str:
        limit = "" if self.time_limit is None else f"-{self.time_limit:g}s"
        several = f"-best-of-{self.runs}" * (self.runs > 1)
        return f"{self.name}{limit}{several}" + f"-seed{self.seed}" * bool(self.seed)

    def settings(self) -> dict[str, Any]:
        machine = f"{platform.machine()}, {cores()} cores"
        given = {"solver": self.name, "time_limit": self.time_limit, "seed": self.seed, "runs": self.runs}
        return {**given, "version": _version(self.name), "device": machine}

    def warm_up(self) -> None:
        """Solves a problem of one customer in every job, so that no instance pays for what happens once."""

        def solve(job: int) -> None:
            with suppress(ChainRouteError):  # which the first instance will end in as well
                solver(self.name)(ONE_CUSTOMER, WARM_UP_SECONDS, self.seed)

        with ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(solve, range(self.jobs)))

    def __call__(self, task: Task, first: int) -> Iterator[TaskResult]:
        over = threading.Event()
        with ThreadPoolExecutor(self.jobs) as pool:  # the work is done in processes of their own
            try:
                yield from pool.map(partial(self._solved, task, over), range(first, task.count))
            finally:
                over.set()  # or Ctrl-C would wait for what is under way

    def _solved(self, task: Task, over: threading.Event, i: int) -> TaskResult:
        problem, solve = task.problem(i), solver(self.name, over)
        limit = self.at(problem.num_customers).time_limit or 0.0
        began = time.perf_counter()
        best: Solution | Fault | None = None
        for seed in range(self.seed, self.seed + self.runs):
            found: Solution | Fault
            try:
                found = solve(problem, limit, seed)
            except ChainRouteError as error:
                found = error.faults[0]
                if found.code in FOR_ALL:
                    raise
            if not isinstance(best, Solution) or (isinstance(found, Solution) and found.cost < best.cost):
                best = found
        assert best is not None  # there is at least one run
        return solved(task, i, best, time.perf_counter() - began)


def _version(name: str) -> str | None:
    """The version of the package that the solver comes in, where there is one."""
    with suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(PACKAGES.get(name, name))
    return None


def solver(name: str, stop: threading.Event | None = None) -> Callable[[Problem, float, int], Solution]:
    """Solves a problem within a limit, with a seed, or until `stop` is set."""
    from chainroute.search.solvers.table import SOLVERS

    if name == FRONT_DOOR:
        from chainroute.solve import solve

        return lambda problem, limit, seed: solve(problem, limit, seed=seed, stop=stop).solution
    if name not in SOLVERS:
        message = f"'{name}' is not a solver; there are neural, {FRONT_DOOR}, {', '.join(SOLVERS)}."
        raise fail("bad-option", message, "solver", USE_LISTED)
    chosen = SOLVERS[name]
    return lambda problem, limit, seed: chosen.solve(problem, limit, seed, stop=stop).solution
