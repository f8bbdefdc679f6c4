"""VROOM: many quick constructions, each improved by local search; often ends long before the limit.

It has loads of deliveries and pickups, time windows, several depots, and a limit on each vehicle's length, so
all 48 variants can be put to it: open routes end at a depot that is no way off, and where linehauls come
first the ways from a pickup to a delivery take for ever.
"""

from __future__ import annotations

import threading

from chainroute.classical import common
from chainroute.classical.result import SearchResult
from chainroute.problem import Problem
from chainroute.solution import Solution

SEARCH = "chainroute.classical.vroom_search:search"


def solve(
    problem: Problem,
    time_limit: float,
    seed: int = 0,
    initial: Solution | None = None,
    stop: threading.Event | None = None,
) -> SearchResult:
    """The best solution found within `time_limit` seconds, counted from this call to its return.

    An `initial` solution must be feasible; the result is never worse. The search is the same for every seed.
    """
    common.require("VROOM", "vroom", "chainroute[evaluate]")
    return common.solve("VROOM", SEARCH, problem, time_limit, seed, initial, stop)
