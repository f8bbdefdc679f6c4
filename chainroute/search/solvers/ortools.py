"""OR-Tools: constraint programming with guided local search, on all 48 variants and beyond them."""

from chainroute.problem.attributes import Beyond
from chainroute.search.library import Search, library_solver

# What its model holds beyond the 48 variants. Trips would take a node for each time that a vehicle reloads.
KNOWS = frozenset(
    {
        Beyond.MIXED_FLEET,
        Beyond.OTHER_END,
        Beyond.FREE_START,
        Beyond.OWN_ROADS,
        Beyond.SHIFTS,
        Beyond.OPTIONAL,
        Beyond.SEVERAL_WINDOWS,
        Beyond.SKILLS,
        Beyond.BOTH_AT_ONCE,
        Beyond.LEAST_TIME,
        Beyond.MONEY,
    }
)


def load() -> Search:
    from chainroute.search.solvers.ortools_search import search

    return search


SOLVER = library_solver("OR-Tools", "ortools", load, knows=KNOWS)
solve = SOLVER.solve
