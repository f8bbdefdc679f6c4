"""VROOM: many quick constructions, each improved by local search; often ends long before the limit.

It has loads of deliveries and pickups, time windows, several depots, and a limit on each vehicle's length, so
all 48 variants can be put to it: open routes end at a depot that is no way off, and where linehauls come
first the ways from a pickup to a delivery take for ever. Beyond these, vehicle types have a profile each.
"""

import math

from chainroute.problem import Problem
from chainroute.problem.attributes import Beyond
from chainroute.search.library import Search, library_solver

# What its model holds beyond the 48 variants. It has no trips, and its priorities are no prizes.
KNOWS = frozenset(
    {
        Beyond.MIXED_FLEET,
        Beyond.OTHER_END,
        Beyond.FREE_START,
        Beyond.OWN_ROADS,
        Beyond.SHIFTS,
        Beyond.SEVERAL_WINDOWS,
        Beyond.SKILLS,
        Beyond.BOTH_AT_ONCE,
        Beyond.LEAST_TIME,
        Beyond.MONEY,
    }
)


def load() -> Search:
    from chainroute.search.solvers.vroom_search import search

    return search


def beyond(problem: Problem) -> list[str]:
    """What it cannot hold of that: its time counts only while a vehicle drives."""
    found = ["a cost per time"] * any(vehicle.cost_per_time for vehicle in problem.types)
    return found + ["a longest duration"] * any(v.max_duration < math.inf for v in problem.types)


SOLVER = library_solver("VROOM", "vroom", load, knows=KNOWS, beyond=beyond)
solve = SOLVER.solve
