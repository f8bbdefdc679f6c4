"""What `solve` tells on its way and at its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from chainroute.errors import ChainRouteError, Fault
from chainroute.plan.check import check
from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.search.own.reassign import reassigned
from chainroute.solve.join import joined

CONSTRUCTION = "construction"
UNSEARCHED = {"given", CONSTRUCTION}  # sources that are no search's
SOURCES = ("given", "exact", "policy", "polish", "search", CONSTRUCTION)  # where a solution can come from


@dataclass(frozen=True)
class Progress:
    """A solution that is better than all before it, and has passed the judge."""

    seconds: float  # since the call, without the start of workers
    solution: Solution
    source: str  # one of SOURCES


@dataclass(frozen=True)
class Result:
    solution: Solution
    seconds: float  # from call to return, without the start of workers
    history: tuple[Progress, ...]  # costs strictly decrease
    notes: tuple[str, ...] = ()  # what the user should know, in plain sentences
    stopped: bool = False  # by the caller or Ctrl-C, before its time
    faults: tuple[Fault, ...] = ()  # of the policy or a search
    failed: bool = False  # a search broke off, and no other search made up for it

    @property
    def source(self) -> str:
        return self.history[-1].source


@dataclass(frozen=True)
class Outcome:
    """What became of one problem: its result, or why there is none."""

    index: int  # of the problem, counted from 0
    problem: Problem
    result: Result | None
    error: ChainRouteError | None = None


def tidied(solution: Solution) -> Solution:
    """A plan that keeps the rules with fewer routes, or by other vehicles, where that costs no more."""
    return reassigned(joined(solution))


class Board:
    """The best solutions so far, in the order in which they came."""

    def __init__(self, problem: Problem, on_progress: Callable[[Progress], None] | None):
        self.problem, self.on_progress = problem, on_progress
        self.begin = time.monotonic()
        self.history: list[Progress] = []
        self.last: dict[str, Solution] = {}  # the latest of each source

    @property
    def best(self) -> Solution | None:
        return self.history[-1].solution if self.history else None

    def offer(self, solution: Solution, source: str) -> bool:
        """Whether the judge accepts it; it is kept if it is better than what there is."""
        if not check(self.problem, solution).feasible:
            return False
        if source != CONSTRUCTION and (self.best is None or solution.cost <= self.best.cost):
            solution = tidied(solution)  # not of a first plan, whose many routes would take long
        self.post(solution, source)
        return True

    def post(self, solution: Solution, source: str) -> None:
        """Takes a solution that the judge has accepted, and tells of it if it is the best."""
        self.last[source] = solution
        if self.best is None or solution.cost < self.best.cost:
            news = Progress(time.monotonic() - self.begin, solution, source)
            self.history.append(news)
            if self.on_progress:
                self.on_progress(news)

    def settle(self) -> None:
        """Ends with the last word of the best source, the first of SOURCES where they cost the same: that
        does not depend on who was faster, or on when reports came."""
        source = min(self.last, key=lambda s: (self.last[s].cost, SOURCES.index(s)))
        last = Progress(self.history[-1].seconds, self.last[source], source)
        self.history = [h for h in self.history if h.solution.cost > last.solution.cost] + [last]
