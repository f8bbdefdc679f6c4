"""Classical solvers, and our own front door, on the same tasks: the time is taken around the call."""

from __future__ import annotations

import importlib
import os
import platform
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from chainroute.errors import ChainRouteError, Fault, fail
from chainroute.evaluate.results import TaskResult
from chainroute.evaluate.run import solved
from chainroute.evaluate.tasks import Task
from chainroute.problem import Problem
from chainroute.solution import Solution

FRONT_DOOR = "solve"  # the policy and PyVRP together, as `chainroute solve` runs them
NEXT_DOOR = Problem(capacity=1, delivery=np.ones(1), coords=np.eye(2))
WARM_UP = 2.0  # seconds
HOPELESS = {"bad-option", "missing-extra"}  # codes that the next instance would end in as well


@dataclass(frozen=True)
class Classical:
    """A solver by name, with its limit for each instance."""

    name: str
    time_limit: float
    seed: int = 0
    jobs: int = 1  # instances at a time: more where times do not matter

    def __post_init__(self) -> None:
        solver(self.name)
        if not 0 < self.time_limit < float("inf"):
            raise fail("bad-option", f"must be above 0 seconds, not {self.time_limit}.", "--time-limit")
        if self.jobs < 1:
            raise fail("bad-option", f"must be at least 1, not {self.jobs}.", "--jobs")

    @property
    def label(self) -> str:
        return f"{self.name}-{self.time_limit:g}s" + f"-seed{self.seed}" * bool(self.seed)

    def settings(self) -> dict[str, Any]:
        machine = f"{platform.machine()}, {os.cpu_count()} cores"
        given = {"solver": self.name, "time_limit": self.time_limit, "seed": self.seed}
        return {**given, "device": machine}

    def warm_up(self) -> None:
        """Solves a problem of one customer in every job, so that no instance pays for what happens once."""

        def solve(job: int) -> None:
            with suppress(ChainRouteError):  # which the first instance will end in as well
                solver(self.name)(NEXT_DOOR, WARM_UP, self.seed)

        with ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(solve, range(self.jobs)))

    def __call__(self, task: Task, first: int) -> Iterator[TaskResult]:
        with ThreadPoolExecutor(self.jobs) as pool:  # the work is done in processes of their own
            yield from pool.map(partial(self._solved, task), range(first, task.count))

    def _solved(self, task: Task, i: int) -> TaskResult:
        problem, solve = task.problem(i), solver(self.name)
        began = time.perf_counter()
        found: Solution | Fault
        try:
            found = solve(problem, self.time_limit, self.seed)
        except ChainRouteError as error:
            found = error.faults[0]
            if found.code in HOPELESS:
                raise
        return solved(task, i, found, time.perf_counter() - began)


def solver(name: str) -> Callable[[Problem, float, int], Solution]:
    from chainroute.classical import SOLVERS

    if name == FRONT_DOOR:
        from chainroute.solve import solve

        return lambda problem, limit, seed: solve(problem, limit, seed=seed).solution
    if name not in SOLVERS:
        message = f"'{name}' is not a solver; there are neural, {FRONT_DOOR}, {', '.join(SOLVERS)}."
        raise fail("bad-option", message, "--solver")
    module = importlib.import_module(SOLVERS[name])
    return lambda problem, limit, seed: module.solve(problem, limit, seed).solution
