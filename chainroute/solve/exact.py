"""A handful of customers: every plan is tried, so that nothing is left to search for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, permutations, product

from chainroute.check import check
from chainroute.problem import Problem
from chainroute.solution import Solution

MOST_CUSTOMERS = 4
MOST_DEPOTS = 4
ALL_TRIED = "every plan was tried, and each breaks a rule."

Tour = tuple[int, ...]


def is_tiny(problem: Problem) -> bool:
    return problem.num_customers <= MOST_CUSTOMERS and problem.num_depots <= MOST_DEPOTS


def optimum(problem: Problem) -> Solution | None:
    """The cheapest plan of all, of those with the fewest routes; None if none keeps the rules."""
    best: dict[tuple[Tour, int], tuple[float, Tour]] = {}  # the best order, by customers and depot
    for size in range(1, problem.num_customers + 1):
        for customers, depot in product(combinations(problem.customers, size), problem.depots):
            best[customers, depot] = min(
                (_cost(problem, depot, visits), visits) for visits in permutations(customers)
            )
    plans = (
        [(depot, part) for depot, part in zip(depots, parts, strict=True)]
        for parts in _partitions(tuple(problem.customers))
        for depots in product(problem.depots, repeat=len(parts))
        if problem.fleet is None or max(map(depots.count, depots)) <= problem.fleet
    )
    costs = [(math.fsum(best[part, depot][0] for depot, part in plan), len(plan), plan) for plan in plans]
    cost, _, plan = min(costs, default=(math.inf, 0, []))
    if cost == math.inf:
        return None
    return Solution.of(problem, [(depot, best[part, depot][1]) for depot, part in plan])


def _cost(problem: Problem, depot: int, visits: Tour) -> float:
    """Of one route; infinite where it breaks a rule."""
    verdict = check(problem, Solution.of(problem, [(depot, visits)]))
    return math.inf if any(v.route for v in verdict.violations) else verdict.cost


def _partitions(customers: Tour) -> Iterator[list[Tour]]:
    """All ways to share customers out among routes."""
    if not customers:
        yield []
        return
    first, *rest = customers
    for size in range(len(customers)):
        for others in combinations(rest, size):
            left = tuple(c for c in rest if c not in others)
            for more in _partitions(left):
                yield [(first, *others), *more]
