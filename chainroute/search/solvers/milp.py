"""An exact solver for small problems of all variants: a mixed-integer linear program, solved by HiGHS.

Beyond the variants it knows prizes, and costs of vehicles that are alike.
Its results have a bound; see `SearchResult.optimal`.
"""

from chainroute.problem import Problem
from chainroute.problem.attributes import Beyond
from chainroute.search.library import Search, library_solver

KNOWS = frozenset({Beyond.OPTIONAL, Beyond.MONEY})  # beyond the 48 variants
MAX_CUSTOMERS = 20  # ten take seconds; with many more the bound stays far from the cost for hours


def load() -> Search:
    from chainroute.search.solvers.milp_search import search

    return search


def beyond(problem: Problem) -> list[str]:
    """What it cannot hold of these: its vehicles are alike, and their time costs nothing."""
    return ["a cost per time"] * bool(problem.cost_per_time)


SOLVER = library_solver("HiGHS", "scipy", load, MAX_CUSTOMERS, KNOWS, beyond)
solve = SOLVER.solve
