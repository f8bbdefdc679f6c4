"""Classical solvers behind one small interface: `solve(problem, time_limit, seed, initial) -> Result`.

Each runs in a worker process that can be ended, and what it returns has passed the judge.
"""

from chainroute.classical.result import Result

__all__ = ["Result"]
