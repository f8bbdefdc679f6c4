"""Why customers are left out that may be: no vehicle can serve them, or they have no place on the routes as
they are, or too dear a one. Other routes might have a cheaper place, which only a search would find.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from chainroute.plan.insertion import insertions
from chainroute.plan.solution import Solution
from chainroute.runtime.numerals import number_text

MOST_TRIES = 2_000  # places that are tried for all customers together, at some 0.1 ms each


@dataclass(frozen=True)
class Reason:
    customer: str
    prize: float
    code: str  # one of `servable.CODES`, or "no-room", "prize-too-small", "time-too-short"
    message: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.customer}: {self.message}"


def reasons(solution: Solution) -> tuple[Reason, ...]:
    """One for each customer that the plan leaves out."""
    p, left = solution.problem, solution.left_out
    return tuple(
        Reason(p.names[c], float(p.prizes[c]), *_reason(solution, c, 1 + MOST_TRIES // len(left)))
        for c in left
    )


def explained(solution: Solution) -> dict[str, Any]:
    """The solution as JSON has it, with the reason for each customer that it leaves out."""
    document = solution.as_dict()
    if solution.left_out:
        document["left_out"] = [reason.as_dict() for reason in reasons(solution)]
    return document


def _reason(solution: Solution, customer: int, tries: int) -> tuple[str, str]:
    p = solution.problem
    if not p.reach.possible[customer - p.num_depots]:
        return p.reach.reason(customer - p.num_depots)
    more = [cost for cost, _, _ in insertions(p, solution.routes, customer, tries)]
    if not more:
        if sum(len(route.visits) + 1 for route in solution.routes) <= tries:
            return "no-room", "it has no place on the routes as they are."
        return "no-room", f"it has no place at the {tries} shortest detours from the routes as they are."
    least, prize = min(more), float(p.prizes[customer])
    costs = (
        f"on the routes as they are it costs {number_text(least)} more, and its prize is {number_text(prize)}"
    )
    return (
        ("prize-too-small", f"{costs}.") if least >= prize else ("time-too-short", f"{costs}: search longer.")
    )
