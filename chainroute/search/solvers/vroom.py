"""VROOM: many quick constructions, each improved by local search; often ends long before the limit.

It has loads of deliveries and pickups, time windows, several depots, and a limit on each vehicle's length, so
all 48 variants can be put to it: open routes end at a depot that is no way off, and where linehauls come
first the ways from a pickup to a delivery take for ever. Beyond these, vehicle types have a profile each.
"""

import math

from chainroute.problem import Problem
from chainroute.search.library import Search, library_solver


def load() -> Search:
    from chainroute.search.solvers.vroom_search import search

    return search


def unknown(problem: Problem) -> list[str]:
    """Prizes are not its priorities, time counts only while a vehicle drives, and it has no trips."""
    found = [extra for extra in problem.extras if extra in ("optional", "several trips")]
    found += ["a cost per time"] * any(vehicle.cost_per_time for vehicle in problem.types)
    return found + ["a longest duration"] * any(v.max_duration < math.inf for v in problem.types)


SOLVER = library_solver("VROOM", "vroom", load, unknown=unknown)
solve = SOLVER.solve
