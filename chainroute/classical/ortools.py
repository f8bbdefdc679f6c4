"""OR-Tools: constraint programming with guided local search, on all 48 variants."""

from chainroute.classical.common import Library, Search


def load() -> Search:
    from chainroute.classical.ortools_search import search

    return search


solve = Library("OR-Tools", "ortools", load).solve
