"""What is known about one problem: the best solution so far, the routes met on the way, why others failed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from chainroute.errors import Fault
from chainroute.neural.assembly.recombine import Pool
from chainroute.neural.assembly.routes import (
    Actions,
    Nodes,
    Tour,
    least_costs,
    tours,
    trajectory,
    with_depots,
)
from chainroute.plan.check import Verdict
from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.problem.measure import FloatArray

NAMED_VIOLATIONS = 5  # violations that a message names
KEPT_VISITS = 20_000  # of customers on the trajectories that are recombined; more take longer and help little


@dataclass(frozen=True)
class Draft:
    """Trajectories of a problem, from which its plan is still to be made."""

    pieces: tuple[tuple[Actions, NDArray[np.bool_]], ...]  # trajectories (C, T), and which have finished (C,)
    tried: int  # trajectories; not all of them may be here
    recombine: bool  # whether the best plan of their routes is still to be found


def joined(drafts: Sequence[Draft]) -> Draft:
    """One draft of the trajectories of several, all of one problem."""
    if len(drafts) == 1:
        return drafts[0]
    pieces = tuple(piece for draft in drafts for piece in draft.pieces)
    return Draft(pieces, sum(draft.tried for draft in drafts), any(draft.recombine for draft in drafts))


def promising(costs: FloatArray, customers: int) -> Nodes:
    """Which trajectories of those costs (C,) are worth recombining."""
    return np.argsort(costs, kind="stable")[: most_promising(customers)]


def most_promising(customers: int) -> int:
    """How many of the best trajectories are recombined, so that it takes milliseconds."""
    return max(1, KEPT_VISITS // customers)


def assembled(problem: Problem, draft: Draft) -> Solution | Fault:
    """The best plan of a draft, or why there is none."""
    best = Incumbent(problem)
    best.take(draft)
    if draft.recombine:
        best.recombine()
    return best.outcome()


class Incumbent:
    def __init__(self, problem: Problem, on_better: Callable[[Solution], None] | None = None):
        self.problem, self.on_better = problem, on_better
        self.solution: Solution | None = None
        self.cost = math.inf
        self.unpooled: list[Solution] = []  # whose routes are not in the pool yet
        self.failure: Verdict | None = None
        self.refusal: Fault | None = None
        self.tried = 0

    @cached_property
    def pool(self) -> Pool:
        """The routes met on the way, where they are recombined."""
        return Pool(self.problem)

    def take(self, draft: Draft) -> None:
        """Takes the best of a draft, and its routes into the pool where these are recombined."""
        self.tried += draft.tried
        for actions, finished in draft.pieces:
            self.consider(actions, finished)
            if draft.recombine:
                self.pool.add(actions)

    def consider(self, actions: Actions, finished: NDArray[np.bool_]) -> None:
        """Takes the best of trajectories (C, T), if it is better than what there is."""
        p, complete = self.problem, actions[finished]
        costs = least_costs(p, complete)
        for i in np.argsort(costs, kind="stable"):
            if costs[i] >= self.cost:
                break
            self.adopt(tours(p, complete[i]))
        if self.solution is None:
            self.explain(actions)

    def adopt(self, plan: Sequence[Tour]) -> bool:
        """Takes these tours, if the judge accepts them and they cost less than what there is."""
        solution, verdict = with_depots(self.problem, plan)
        if not verdict.feasible or verdict.cost >= self.cost:
            return False
        self.begin(solution)
        if self.on_better:
            self.on_better(solution)
        return True

    def begin(self, solution: Solution) -> None:
        """Takes a solution that the judge has accepted, as it is but for empty routes."""
        used = tuple(route for route in solution.routes if route.visits)
        as_it_is = used == solution.routes and solution.problem is self.problem  # its cost is known, then
        self.solution = solution if as_it_is else Solution(self.problem, used)
        self.cost = self.solution.cost
        self.unpooled.append(self.solution)

    def recombine(self) -> None:
        """Takes the best plan of the routes in the pool, if it is better than what there is."""
        while self.unpooled:
            self.pool.add(trajectory([route.visits for route in self.unpooled.pop().routes]))
        if found := self.pool.best(self.cost):
            self.adopt(found[1])

    def explain(self, actions: Actions) -> None:
        """Keeps what is wrong with the trajectory that serves most customers with fewest routes."""
        p, away = self.problem, actions >= self.problem.num_depots
        routes = (np.diff(away, axis=1, prepend=False) & away).sum(1)
        nearest = np.lexsort((routes, -away.sum(1)))[0]
        _, verdict = with_depots(p, tours(p, actions[nearest]))
        if self.failure is None or len(verdict.violations) < len(self.failure.violations):
            self.failure = verdict

    def outcome(self) -> Solution | Fault:
        if self.solution is not None:
            return self.solution
        if self.refusal is not None:
            return self.refusal
        if self.failure is None:
            return Fault(
                "no-plan-found", "the time was over before any trajectory had ended.", self.problem.name
            )
        wrong = [v.message for v in self.failure.violations]
        more = f" And {len(wrong) - NAMED_VIOLATIONS} more." if len(wrong) > NAMED_VIOLATIONS else ""
        nearest = " ".join(wrong[:NAMED_VIOLATIONS])
        message = f"none of {self.tried} trajectories keeps all rules. The nearest: {nearest}"
        return Fault("no-plan-found", message + more, self.problem.name)
