"""OR-Tools: constraint programming with guided local search, on all 48 variants and beyond them."""

from chainroute.problem import Problem
from chainroute.search.library import Search, library_solver


def load() -> Search:
    from chainroute.search.solvers.ortools_search import search

    return search


def unknown(problem: Problem) -> list[str]:
    """What would take a node for each time that a vehicle reloads."""
    return [extra for extra in problem.extras if extra == "several trips"]


SOLVER = library_solver("OR-Tools", "ortools", load, unknown=unknown)
solve = SOLVER.solve
