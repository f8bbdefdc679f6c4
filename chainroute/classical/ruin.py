"""Ruin and recreate: the search for large problems that bound nothing but loads and times."""

from __future__ import annotations

import importlib.util
from functools import partial

from chainroute.classical import library
from chainroute.problem import Problem


def load() -> library.Search:
    from chainroute.classical.ruin_search import get_ready, search

    get_ready()
    return search


def installed() -> bool:
    return importlib.util.find_spec("numba") is not None


def suits(problem: Problem) -> bool:
    """Whether nothing but loads and times bound routes, all of one depot, and there are roads everywhere."""
    p = problem
    bounded = p.distance_limit is not None or p.pickup.any()
    return not (p.extras or bounded or p.num_depots > 1) and p.has_all_roads


search = partial(library.search_in_worker, load)
warm_up = partial(library.warm_up, load)
