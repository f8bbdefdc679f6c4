"""What a classical solver returns."""

from dataclasses import dataclass

from chainroute.solution import Solution


@dataclass(frozen=True)
class Result:
    solution: Solution  # feasible, by the judge
    seconds: float  # from call to return
    iterations: int  # of the solver's own loop, as far as it reported them
