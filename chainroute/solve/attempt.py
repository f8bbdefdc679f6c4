"""One call of `solve`: what was asked, what is known, and the signals between its lanes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from queue import Queue

from chainroute.errors import ChainRouteError
from chainroute.options import SEEDS, Effort
from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.runtime import worker
from chainroute.runtime.deadline import Deadline
from chainroute.solve.messages import Failed, Message, PlanFound
from chainroute.solve.reduction import Reduction
from chainroute.solve.result import Board

Propose = Callable[[Reduction, Deadline], Solution | None]  # routes of the problem that stands for the given
OTHER_SEED = 1_000_003  # what is added to the seed for the second search


@dataclass(kw_only=True)
class Attempt:
    problem: Problem
    seed: int
    effort: Effort
    board: Board
    cores: int
    limit: float  # seconds
    timed: bool  # without a limit, counted iterations and the network alone take the time they take
    deadline: Deadline
    searches: bool  # PyVRP searches
    reducible: bool  # one of the 48 variants stands for the problem, as far as is decided before any search
    asks: bool  # the network is asked
    start: Solution | None = None
    source: str = "given"  # of the start
    propose: Propose | None = None
    kind: str = worker.SEARCH  # of the workers that search
    first: Solution | None = None  # a plan that was there before any search
    insertions: Iterator[Solution] = field(default_factory=lambda: iter(()))
    searched: bool = False  # a search has come to its end
    # No SimpleQueue: in Python 3.11 it waits for ever if a signal is handled as its wait runs out.
    messages: Queue[Message] = field(default_factory=Queue)
    should_stop: threading.Event = field(default_factory=threading.Event)  # the lanes are to stop at once
    failed: threading.Event = field(default_factory=threading.Event)  # the search has failed
    answered: threading.Event = field(default_factory=threading.Event)  # a search or the network has routes
    core_free: threading.Event = field(default_factory=threading.Event)  # ejection leaves the second core
    # The caller's, which may be set after the lanes have ended: then nothing is prepared any more.
    stop_requested: threading.Event = field(default_factory=threading.Event)

    @property
    def other_seed(self) -> int:
        return (self.seed + OTHER_SEED) % SEEDS

    def found(self, source: str, plan: Solution) -> None:
        self.messages.put(PlanFound(source, plan))

    def report(self, solver: str, error: ChainRouteError) -> None:
        """Reports why a solver has no routes."""
        for fault in error.faults:
            self.messages.put(Failed(fault.moved(field=solver)))

    def is_settled(self) -> bool:
        """Whether there is no point in constructing more."""
        late = self.timed and (self.answered.is_set() or self.deadline.passed)
        return late or self.should_stop.is_set() or self.stop_requested.is_set()
