"""One more customer on a plan: where it could go, and what that costs by the judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from chainroute.check import check
from chainroute.problem import Problem
from chainroute.solution import Route, Solution


def cost_of(p: Problem, route: Route) -> float | None:
    """What a route costs by itself; None if it breaks a rule."""
    verdict = check(p, Solution(p, (route,)))
    if any(violation.route for violation in verdict.violations):
        return None
    return verdict.cost - verdict.parts.prizes


def insertions(
    p: Problem, routes: Sequence[Route], customer: int, tries: int
) -> Iterator[tuple[float, Route | None, Route]]:
    """What each way to serve the customer costs more, the route before (None: a new vehicle) and after.

    Of places on the routes there are, those of the shortest detours are tried.
    """
    for route, place in _detours(p, routes, customer)[:tries]:
        visits = (*route.visits[:place], customer, *route.visits[place:])
        longer = Route(route.depot, visits, route.vehicle)
        if (after := cost_of(p, longer)) is not None:
            yield after - (cost_of(p, route) or 0.0), route, longer
    used = Counter((route.vehicle, route.depot) for route in routes if route.visits)
    for number, vehicle in enumerate(p.types):
        for depot in vehicle.depots:
            alone = Route(depot, (customer,), number)
            if used[number, depot] < vehicle.count and (cost := cost_of(p, alone)) is not None:
                yield cost, None, alone


def _detours(p: Problem, routes: Sequence[Route], customer: int) -> list[tuple[Route, int]]:
    """Routes, and before which of their visits the customer could come; the shortest detours first."""
    found: list[tuple[float, int, Route, int]] = []
    for route in routes:
        vehicle = p.types[route.vehicle]
        end = vehicle.end_of(route.depot)
        path = [route.depot, *route.visits, *([] if end is None else [end])]
        direct, _ = p.ways(vehicle, path)
        to, _ = p.ways(vehicle, [place for before in path for place in (before, customer)])
        for place in range(len(route.visits) + 1 if route.visits else 0):
            on = to[2 * place + 1] if 2 * place + 1 < len(to) else 0.0
            before = direct[place] if place < len(direct) else 0.0
            found.append((to[2 * place] + on - before, len(found), route, place))
    return [(route, place) for _, _, route, place in sorted(found)]
