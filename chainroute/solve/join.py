"""Fewer routes at no cost: where a way saves nothing, as between places at distance zero, no search looks."""

from __future__ import annotations

import numpy as np

from chainroute.plan.check import check
from chainroute.plan.solution import Route, Solution, course
from chainroute.problem import Problem
from chainroute.problem.measure import at_most

MOST_PAIRS = 20  # of routes that the judge is asked about, all at once: with many customers that takes ms
MOST_ROUTES = 100  # with more, the table of their pairs would take the time of the search


def joined(solution: Solution) -> Solution:
    """The plan with routes put end to end as long as that costs nothing and keeps the rules."""
    p = solution.problem
    if p.extras:  # cheaper vehicles or left-out customers may be behind a route
        return solution
    routes = [route for route in solution.routes if route.visits]
    while len(routes) <= MOST_ROUTES and (pair := _joinable(p, routes)):
        first, second = pair
        both = Route(first.depot, first.visits + second.visits)
        routes = [route for route in routes if route not in pair] + [both]
    return Solution(p, tuple(routes)) if len(routes) < len(solution.routes) else solution


def _joinable(p: Problem, routes: list[Route]) -> tuple[Route, Route] | None:
    """The first two routes that one vehicle can drive, one after the other, at no greater length."""
    visits = [v for route in routes for v in route.visits]
    begins = np.cumsum([0, *(len(route) for route in routes[:-1])])
    delivery, pickup = (np.add.reduceat(amounts[visits], begins) for amounts in (p.deliveries, p.pickups))
    depot, first, last = np.array([(r.depot, r.visits[0], r.visits[-1]) for r in routes]).T
    fits = (depot[:, None] == depot) & ~np.eye(len(routes), dtype=bool)
    for amount in (delivery, pickup):
        fits &= amount[:, None] + amount <= p.capacity
    one, other = np.nonzero(fits)
    home = 0.0 if p.open else p.distance(last[one], depot[one])
    free = p.distance(last[one], first[other]) <= home + p.distance(depot[other], first[other])
    if p.time_windows is not None and free.any():  # few pairs are left, then, to ask the judge about
        ready = np.array([_ready(p, route) for route in routes])
        arrival = ready[one] + p.duration(last[one], first[other])
        free &= at_most(arrival, p.windows[first[other], 1], p.time_slack)
    found = zip(one[free][:MOST_PAIRS], other[free][:MOST_PAIRS], strict=True)
    pairs = [(routes[i], routes[j]) for i, j in found]
    both = tuple(Route(a.depot, a.visits + b.visits) for a, b in pairs)
    refused = {violation.route for violation in check(p, Solution(p, both)).violations} if both else {}
    return next((pair for number, pair in enumerate(pairs, 1) if number not in refused), None)


def _ready(p: Problem, route: Route) -> float:
    """When a vehicle can leave the last customer of its route at the earliest."""
    vehicle, path = p.types[route.vehicle], [route.depot, *route.visits]
    stops = course(p, vehicle, path, p.ways(vehicle, path)[1])
    return stops.run(stops.hours[0]).end
