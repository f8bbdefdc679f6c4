"""An exact solver for small problems of all variants: a mixed-integer linear program, solved by HiGHS.

Beyond the variants it knows prizes, and costs of vehicles that are alike.
Its results have a bound; see `SearchResult.optimal`.
"""

from chainroute.problem import Problem
from chainroute.search.library import Search, library_solver

MAX_CUSTOMERS = 20  # ten take seconds; with many more the bound stays far from the cost for hours


def load() -> Search:
    from chainroute.search.solvers.milp_search import search

    return search


def unknown(problem: Problem) -> list[str]:
    """All but prizes, and costs of vehicles that are alike and whose time costs nothing."""
    found = [extra for extra in problem.extras if extra not in ("optional", "money")]
    return found + ["a cost per time"] * bool(problem.cost_per_time)


SOLVER = library_solver("HiGHS", "scipy", load, MAX_CUSTOMERS, unknown)
solve = SOLVER.solve
