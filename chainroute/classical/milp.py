"""An exact solver for small problems of all variants: a mixed-integer linear program, solved by HiGHS.

Its results have a bound; see `SearchResult.optimal`.
"""

from chainroute.classical.library import Search, SolverLibrary

MAX_CUSTOMERS = 20  # ten take seconds; with many more the bound stays far from the cost for hours


def load() -> Search:
    from chainroute.classical.milp_search import search

    return search


solve = SolverLibrary("HiGHS", "scipy", load, MAX_CUSTOMERS).solve
