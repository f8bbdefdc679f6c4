"""The front door: any problem in, judged routes out, within a time limit."""

from chainroute.options import Effort
from chainroute.solve.attempt import Propose
from chainroute.solve.explanation import Explanation, Relaxation, explain
from chainroute.solve.many import solve_many
from chainroute.solve.portfolio import solve
from chainroute.solve.result import Outcome, Progress, Result

__all__ = [
    "Effort",
    "Explanation",
    "Outcome",
    "Progress",
    "Propose",
    "Relaxation",
    "Result",
    "explain",
    "solve",
    "solve_many",
]
