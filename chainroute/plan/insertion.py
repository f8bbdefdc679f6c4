"""One more customer on a plan: where it could go, and what that costs by the judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from chainroute.plan.check import route_cost
from chainroute.plan.solution import Route
from chainroute.problem import Problem


def insertions(
    p: Problem, routes: Sequence[Route], customer: int, tries: int
) -> Iterator[tuple[float, Route | None, Route]]:
    """What each way to serve the customer costs more, the route before (None: a new vehicle) and after."""
    yield from extensions(p, routes, customer, tries)
    used = Counter((route.vehicle, route.depot) for route in routes if route.visits)
    for number, vehicle in enumerate(p.types):
        for depot in vehicle.depots:
            alone = Route(depot, (customer,), number)
            if used[number, depot] < vehicle.count and (cost := route_cost(p, alone)) is not None:
                yield cost, None, alone


def extensions(
    p: Problem, routes: Sequence[Route], customer: int, tries: int
) -> Iterator[tuple[float, Route, Route]]:
    """The same without a new vehicle: the places of the shortest detours are tried, and a vehicle that may go
    out once more goes to the customer last."""
    detours = _detours(p, routes, customer)[:tries]
    inserted = [(r, (*r.visits[:place], customer, *r.visits[place:])) for r, place in detours]
    for route, visits in [*inserted, *_trips(p, routes, customer)[:tries]]:
        longer = Route(route.depot, visits, route.vehicle)
        if (after := route_cost(p, longer)) is not None:
            yield after - (route_cost(p, route) or 0.0), route, longer


def _trips(p: Problem, routes: Sequence[Route], customer: int) -> list[tuple[Route, tuple[int, ...]]]:
    """Routes, and their visits with one more trip at the end, to the customer."""
    found = []
    for route in routes:
        vehicle = p.types[route.vehicle]
        reloads = sum(v < p.num_depots for v in route.visits)
        if route.visits and reloads + 1 < vehicle.max_trips:
            depots = vehicle.reloads_at(route.depot)
            found += [(route, (*route.visits, depot, customer)) for depot in depots]
    return found


def _detours(p: Problem, routes: Sequence[Route], customer: int) -> list[tuple[Route, int]]:
    """Routes, and before which of their visits the customer could come; the shortest detours first.

    All vehicles of a type are asked about at once, which is faster.
    """
    gaps = [(route, place) for route in routes if route.visits for place in range(len(route.visits) + 1)]
    detour = [0.0] * len(gaps)
    for number in {route.vehicle for route, _ in gaps}:
        vehicle = p.types[number]
        own = [i for i, (route, _) in enumerate(gaps) if route.vehicle == number]
        around: list[int] = []  # from before the gap to the customer, and on
        direct: list[int] = []
        for i in own:
            route, place = gaps[i]
            before = route.visits[place - 1] if place else route.depot
            after = route.visits[place] if place < len(route.visits) else vehicle.end_of(route.depot)
            around += (before, customer, customer if after is None else after)
            direct += (before, before if after is None else after)
        ways, without = p.ways(vehicle, around)[0], p.ways(vehicle, direct)[0]
        for i, to, on, saved in zip(own, ways[::3], ways[1::3], without[::2], strict=True):
            detour[i] = to + on - saved
    return [gaps[i] for i in sorted(range(len(gaps)), key=detour.__getitem__)]
