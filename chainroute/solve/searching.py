"""Lanes that search: each a function that runs in a thread of its own and drives worker processes."""

from __future__ import annotations

import time
from collections.abc import Callable

from chainroute.errors import ChainRouteError
from chainroute.options import rules
from chainroute.plan.solution import Solution
from chainroute.runtime.deadline import Deadline, judging
from chainroute.search.library import Found, SearchTask
from chainroute.search.solvers import pyvrp
from chainroute.solve.asking import ask
from chainroute.solve.attempt import Attempt
from chainroute.solve.first_plans import construct, plan_by_savings
from chainroute.solve.lanes import Lane
from chainroute.solve.sectors import Sectors

REPORT_FACTOR = 10  # times the checker's time, in seconds between two plans that are made of sectors
WATCH_SECONDS = 0.02  # seconds between looks at whether the caller wants to stop


def improve(attempt: Attempt, start: Solution | None, seed: int, source: str, share: float) -> None:
    """Runs PyVRP from those routes; should it fail, the other lanes go on."""

    def on_report(found: Found) -> None:
        attempt.found(source, Solution.of(attempt.problem, found.routes))

    wanted = attempt.deadline.earlier(judging(attempt.problem.num_customers))
    routes = None if start is None else start.pairs()
    task = SearchTask(attempt.problem, wanted, seed, routes, attempt.effort.iterations, share)
    try:
        attempt.searched |= pyvrp.search(task, on_report, attempt.should_stop, attempt.kind)
    except ChainRouteError as error:
        attempt.failed.set()
        attempt.report("PyVRP", error)


def search(attempt: Attempt) -> None:
    """Runs PyVRP from the given routes, from a plan by savings where there is little time for many windows,
    or from nothing, on a core of its own for the whole time."""
    polishes = attempt.start is not None and attempt.source == "policy"
    start = plan_by_savings(attempt) if attempt.start is None else attempt.start
    source = "polish" if polishes else "search"
    improve(attempt, start, attempt.seed, source, pyvrp.SHORT_HISTORY_SHARE)


def other_search(attempt: Attempt) -> None:
    """Runs PyVRP with another seed and more patience, on the second core: from nothing, or beyond the 48
    variants from the first plan, which with many customers is ahead."""
    start = attempt.first if attempt.start is None and attempt.problem.extras else attempt.start
    improve(attempt, start, attempt.other_seed, "search", pyvrp.LONGER_HISTORY_SHARE)


def network_first(attempt: Attempt) -> None:
    """Asks the network, then runs PyVRP from its routes; or, without good ones in time, from nothing too."""
    answer, best = ask(attempt), attempt.board.best
    if not attempt.searches or attempt.should_stop.is_set():
        return
    if answer is not None and (
        not attempt.timed  # what is done must not depend on which was faster
        or best is None
        or answer.cost <= best.cost * (1 + rules.POLISHING_GAP)
    ):
        improve(attempt, answer, attempt.other_seed, "polish", pyvrp.SHORT_HISTORY_SHARE)
    elif attempt.timed:
        other_search(attempt)
        if attempt.failed.is_set() and not attempt.answered.is_set():
            ask(attempt)


def rescue(attempt: Attempt) -> None:
    """Asks the network where the search fails, or has found nothing for long."""
    if not attempt.timed or attempt.start is not None:
        return
    enough = Deadline.after(attempt.limit * rules.RESCUE_SHARE)
    while not (attempt.failed.is_set() or enough.passed):
        if attempt.answered.wait(WATCH_SECONDS) or attempt.should_stop.is_set():
            return
    if not attempt.answered.is_set() and not attempt.should_stop.is_set():
        network_first(attempt)


def constructing(attempt: Attempt) -> None:
    """Constructs plans; a plan by ejection, where vehicles are few, is searched from."""
    plan = construct(attempt)
    if plan is not None and attempt.searches:
        improve(attempt, plan, attempt.other_seed, "search", pyvrp.SHORT_HISTORY_SHARE)
    attempt.core_free.set()


def once_the_core_is_free(attempt: Attempt, lane: Callable[[Attempt], None]) -> None:
    """Runs a lane once ejection does not need its core: on two cores it would take twice as long."""
    stops = attempt.should_stop
    while not attempt.core_free.wait(WATCH_SECONDS) and not attempt.deadline.passed and not stops.is_set():
        pass
    if not attempt.deadline.passed and not stops.is_set():
        lane(attempt)


def search_parts(attempt: Attempt, sectors: Sectors, wanted: Deadline) -> None:
    """Improves parts of a plan until the deadline, by annealing at first where that can be."""
    pause, reported, improved = (
        REPORT_FACTOR * judging(attempt.problem.num_customers),
        time.monotonic(),
        False,
    )

    def on_better() -> None:
        nonlocal reported, improved
        improved = True
        if time.monotonic() - reported > pause or wanted.passed:
            reported = time.monotonic()
            attempt.found("search", sectors.plan)

    if sectors.anneals:
        try:
            sectors.work(on_better, attempt.should_stop, attempt.kind)
        except ChainRouteError as error:
            sectors.anneals = False  # from now on PyVRP searches
            attempt.report("annealing", error)
    try:
        sectors.work(on_better, attempt.should_stop, attempt.kind)
    except ChainRouteError as error:
        attempt.failed.set()
        attempt.report("PyVRP", error)
        if not improved:
            return
    attempt.found("search", sectors.plan)


LANES: dict[Lane, Callable[[Attempt], None]] = {
    Lane.CONSTRUCT: constructing,
    Lane.NETWORK: network_first,
    Lane.SEARCH: search,
    Lane.OTHER_SEARCH: lambda attempt: once_the_core_is_free(attempt, other_search),
    Lane.NETWORK_FIRST: lambda attempt: once_the_core_is_free(attempt, network_first),
    Lane.RESCUE: rescue,
}
