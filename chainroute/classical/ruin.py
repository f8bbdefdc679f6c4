"""Ruin and recreate: the search for large problems that bound nothing but the load."""

from __future__ import annotations

import importlib.util
import threading

from chainroute.classical import library
from chainroute.classical.library import OnFound, SearchTask
from chainroute.problem import Problem
from chainroute.runtime import worker
from chainroute.runtime.deadline import Deadline


def load() -> library.Search:
    from chainroute.classical.ruin_search import get_ready, search

    get_ready()
    return search


def search(
    task: SearchTask,
    on_report: OnFound,
    stop: threading.Event | None = None,
    kind: str = worker.SEARCH,
    end: Deadline | None = None,
) -> bool:
    """Searches in a worker of that kind, as `search_in_worker` says."""
    return library.search_in_worker(load, task, on_report, stop, kind, end)


def installed() -> bool:
    return importlib.util.find_spec("numba") is not None


def warm_up(stop: threading.Event | None = None, kind: str = worker.SEARCH, count: int = 1) -> None:
    """Has so many workers of that kind ready, so that the next searches begin at once."""
    library.warm_up(load, stop, kind, count)


def suits(problem: Problem) -> bool:
    """Whether nothing but the load bounds routes, which all have the same depot, and all can be reached."""
    p = problem
    bounded = p.distance_limit is not None or p.time_windows is not None or p.pickup.any()
    return not (p.extras or bounded or p.num_depots > 1) and p.has_all_roads
