"""The classical solvers by name, as `--solver` and `evaluate` know them."""

from __future__ import annotations

import threading
from typing import Protocol

from chainroute.classical import lkh, milp, ortools, pyvrp, vroom
from chainroute.classical.library import Load
from chainroute.classical.result import SearchResult
from chainroute.problem import Problem
from chainroute.solution import Solution


class Solver(Protocol):
    """What the module of a solver has."""

    @property
    def load(self) -> Load | None:
        """Imports its library, in a worker; None where it is a program of its own."""

    def solve(
        self,
        problem: Problem,
        time_limit: float,
        seed: int = 0,
        initial: Solution | None = None,
        *,
        stop: threading.Event | None = None,
    ) -> SearchResult: ...


SOLVERS: dict[str, Solver] = {"pyvrp": pyvrp, "ortools": ortools, "vroom": vroom, "milp": milp, "lkh": lkh}
