"""Trajectories become routes, in double precision, on the problem's own numbers.

A trajectory says which customers share a route, and in which order. Its depots are chosen here, when the
routes are complete: each route takes the one that makes it shortest, as far as the judge and the fleet allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chainroute.plan.check import Verdict, check
from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.problem.measure import FloatArray

Actions = NDArray[np.integer[Any]]
Tour = tuple[int, ...]  # the customers of a route
Nodes = NDArray[np.intp]  # locations of a problem


def tours(problem: Problem, actions: Actions) -> list[Tour]:
    """The routes of one trajectory (T,), without their depots."""
    breaks = np.flatnonzero(actions < problem.num_depots)
    parts = (part[part >= problem.num_depots] for part in np.split(actions, breaks))
    return [tuple(part.tolist()) for part in parts if len(part)]


def trajectory(plan: Sequence[Tour]) -> Actions:
    """One trajectory (1, T) that makes these tours."""
    return np.array([[v for tour in plan for v in (*tour, 0)]])


def least_costs(problem: Problem, actions: Actions) -> FloatArray:
    """What each trajectory (C, T) costs if every route may have the depot that makes it shortest, (C,).

    With one depot that is its cost, with several at most that. Infinite where the vehicles do not suffice.
    """
    path = np.pad(actions, ((0, 0), (1, 1))).astype(np.intp)  # from a depot to a depot
    here, there = path[:, :-1], path[:, 1:]
    leaves, arrives = here < problem.num_depots, there < problem.num_depots
    between = np.where(leaves | arrives, 0.0, problem.distances[here, there])
    row = np.nonzero(leaves & ~arrives)[0]
    legs = end_legs(problem, there[leaves & ~arrives], here[~leaves & arrives])
    costs = between.sum(1) + np.bincount(row, legs.min(0), minlength=len(path))
    if problem.fleet is not None:
        costs[np.bincount(row, minlength=len(path)) > problem.fleet * problem.num_depots] = np.inf
    return np.asarray(costs)


def with_depots(problem: Problem, plan: Sequence[Tour]) -> tuple[Solution, Verdict]:
    """The tours with the depots that cost least in all and, where that can be, break no rule; judged."""
    costs = end_legs(problem, [tour[0] for tour in plan], [tour[-1] for tour in plan])
    fleet = len(plan) if problem.fleet is None else problem.fleet
    while True:
        solution = Solution.of(problem, zip(assign(costs, fleet), plan, strict=True))
        verdict = check(problem, solution)
        broken = [v.route - 1 for v in verdict.violations if v.route is not None]
        pairs = [(solution.routes[r].depot, r) for r in broken]
        if not any(np.isfinite(costs[pair]) for pair in pairs):
            return solution, verdict
        for pair in pairs:  # not from this depot, then
            costs[pair] = np.inf


def assign(costs: FloatArray, fleet: int) -> list[int]:
    """The depot of each tour, given costs (M, R), that costs least in all while no depot exceeds its fleet.

    Tours are placed one by one. A depot that is full may hand one of its tours on to another depot, and that
    one of its own, and so forth: the cheapest such chain is taken (shortest augmenting paths). Infinite
    costs, and more tours than there are vehicles, are avoided as long as possible.
    """
    if fleet >= costs.shape[1]:  # no depot can be full
        return [int(d) for d in costs.argmin(0)]
    finite = costs[np.isfinite(costs)]
    costs = np.where(np.isfinite(costs), costs, 1 + 2 * costs.shape[1] * finite.max(initial=0.0))
    depots = range(len(costs))
    at = np.full(costs.shape[1], -1)  # the depot of each tour so far
    for tour in range(costs.shape[1]):
        full = [d for d in depots if (at == d).sum() >= fleet]
        reach = costs[:, tour].copy()  # what it costs to end the chain at each depot
        moves = [[(tour, d)] for d in depots]
        for _ in full:
            for a, b in ((a, b) for a in full for b in depots if a != b):
                own = np.flatnonzero(at == a)
                more = costs[b, own] - costs[a, own]
                handed = int(more.argmin())
                if reach[a] + more[handed] < reach[b] * (1 - 1e-12):
                    reach[b] = reach[a] + more[handed]
                    moves[b] = [*moves[a], (int(own[handed]), b)]
        free = [d for d in depots if d not in full] or depots
        for moved, depot in moves[min(free, key=lambda d: float(reach[d]))]:
            at[moved] = depot
    return [int(d) for d in at]


def end_legs(problem: Problem, first: Any, last: Any) -> FloatArray:
    """First and last legs of routes (R,) from each depot, (M, R)."""
    ends = problem.distances[: problem.num_depots, first]
    return ends.copy() if problem.open else ends + problem.distances[last, : problem.num_depots].T
