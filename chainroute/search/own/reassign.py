"""The same visits by other vehicles: a search that moves customers one by one seldom gives a whole route to
another type or depot, as every step on the way would cost more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import combinations

from chainroute.plan.solution import Route, Solution
from chainroute.problem import Problem
from chainroute.problem.measure import SLACK
from chainroute.search.own.exact import VehicleKind, cost_of, vehicle_kinds

MOST_PRICES = 600  # of routes by vehicles, at some 0.1 ms each
Plan = dict[tuple[int, ...], VehicleKind]  # by the visits of a route
Price = Callable[[tuple[int, ...], VehicleKind], float]


def reassigned(solution: Solution) -> Solution:
    """The plan with routes given to other vehicles, and exchanged between them, as long as that saves."""
    p = solution.problem
    if not p.extras:
        return solution
    kinds = vehicle_kinds(p)
    routes = [route for route in solution.routes if route.visits]
    if len(kinds) == 1 or len(kinds) * len(routes) > MOST_PRICES:
        return solution

    @cache
    def price(visits: tuple[int, ...], kind: VehicleKind) -> float:
        return cost_of(p, kind, visits)

    plan = {route.visits: (route.vehicle, route.depot) for route in routes}
    while change := _change(p, plan, kinds, price):
        plan |= change
    if len(plan) < len(routes) or list(plan.values()) == [(r.vehicle, r.depot) for r in routes]:
        return solution
    return Solution(p, tuple(Route(depot, visits, kind) for visits, (kind, depot) in plan.items()))


def _change(p: Problem, plan: Plan, kinds: list[VehicleKind], price: Price) -> Plan:
    """The one that saves most: routes with their new kind of vehicle; nothing where none saves."""
    used = Counter(plan.values())
    free = [kind for kind in kinds if used[kind] < p.types[kind[0]].count]
    changes: list[Plan] = [{visits: kind} for visits in plan for kind in free]
    changes += [{a: plan[b], b: plan[a]} for a, b in combinations(plan, 2) if plan[a] != plan[b]]

    def saved(change: Plan) -> float:
        return sum(price(visits, plan[visits]) - price(visits, kind) for visits, kind in change.items())

    best = max(changes, key=saved, default={})
    total = sum(price(visits, kind) for visits, kind in plan.items())
    return best if saved(best) > SLACK * total else {}
