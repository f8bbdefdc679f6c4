"""OR-Tools: constraint programming with guided local search, on all 48 variants."""

from chainroute.classical.library import Search, SolverLibrary


def load() -> Search:
    from chainroute.classical.ortools_search import search

    return search


solve = SolverLibrary("OR-Tools", "ortools", load).solve
