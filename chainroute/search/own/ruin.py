"""Ruin and recreate: the search for large problems of the 48 variants."""

from __future__ import annotations

import importlib.util
from functools import partial

from chainroute.problem import Problem
from chainroute.search import library


def load() -> library.Search:
    from chainroute.search.own.ruin_search import get_ready, search

    get_ready()
    return search


def installed() -> bool:
    return importlib.util.find_spec("numba") is not None


def suits(problem: Problem) -> bool:
    """Whether it is one of the 48 variants, with roads everywhere, and vehicles enough if there are several
    depots."""
    p = problem
    return not p.extras and p.has_all_roads and (p.num_depots == 1 or p.fleet is None)


search = partial(library.search_in_worker, load)
warm_up = partial(library.warm_up, load)
