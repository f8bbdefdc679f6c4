"""Classical solvers behind one small interface: `solve(problem, time_limit, seed, initial) -> SearchResult`.

Each runs in a process that can be ended, and what it returns has passed the judge.
`solvers.SOLVERS` has them by name.
"""

from chainroute.search.result import SearchResult

__all__ = ["SearchResult"]
