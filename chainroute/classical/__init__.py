"""Classical solvers behind one small interface: `solve(problem, time_limit, seed, initial) -> SearchResult`.

Each runs in a process that can be ended, and what it returns has passed the judge.
"""

from chainroute.classical.result import SearchResult

# By name: the module whose `solve` it is, to be imported when it is needed.
SOLVERS: dict[str, str] = {
    name: f"{__name__}.{name}" for name in ("pyvrp", "ortools", "vroom", "milp", "lkh")
}

__all__ = ["SOLVERS", "SearchResult"]
