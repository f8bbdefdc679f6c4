"""What a classical solver returns."""

from dataclasses import dataclass

from chainroute.plan.solution import Solution

OPTIMALITY_GAP = 1e-6  # relative: how near to its bound a cost counts as optimal


@dataclass(frozen=True)
class SearchResult:
    solution: Solution  # feasible, by the judge
    seconds: float  # from call to return, without the start of a worker
    iterations: int  # of the solver's own loop, as far as it reported them
    bound: float | None = None  # no solution costs less, as an exact solver has proven

    @property
    def optimal(self) -> bool:
        """Whether an exact solver has proven that nothing better exists."""
        return self.bound is not None and self.solution.cost <= self.bound + OPTIMALITY_GAP * abs(self.bound)
