"""VROOM: many quick constructions, each improved by local search; often ends long before the limit.

It has loads of deliveries and pickups, time windows, several depots, and a limit on each vehicle's length, so
all 48 variants can be put to it: open routes end at a depot that is no way off, and where linehauls come
first the ways from a pickup to a delivery take for ever.
"""

from chainroute.classical.library import Search, SolverLibrary


def load() -> Search:
    from chainroute.classical.vroom_search import search

    return search


solve = SolverLibrary("VROOM", "vroom", load).solve
