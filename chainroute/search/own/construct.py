"""Routes of our own making, for any problem and without any solver: first cut from a tour, then by insertion.

They are there within milliseconds, and a tenth to a third longer than a search makes them: what is returned
when nothing better was found in time, or when no solver is installed. Every way knows every attribute; the
judge has the last word, as with every solver.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from chainroute.plan.check import check
from chainroute.plan.insertion import insertions
from chainroute.plan.solution import Route, Solution
from chainroute.problem import Problem
from chainroute.problem.measure import planar
from chainroute.problem.variants import Backhaul
from chainroute.search.own.legs import Bounds, Legs, Locations
from chainroute.search.own.pieces import by_pieces

Routes = list[tuple[int, list[int]]]  # depots and visits

JUDGED_PLACES = 8  # places on routes at which the judge is asked about a customer
LONG_ROUTE_CUSTOMERS = 20  # on average, from which a plan by insertion is worth its time
REGION_CUSTOMERS = 1_000  # of a region, at most: plans of larger ones end higher from 5,000 customers on


def construct(problem: Problem, over: Callable[[], bool] = lambda: False) -> Solution | None:
    """The best of all constructions that the judge accepts; None if there is none."""
    accepted = (s for s in constructions(problem, over) if check(problem, s).feasible)
    return min(accepted, key=lambda s: s.cost, default=None)


def constructions(problem: Problem, over: Callable[[], bool] = lambda: False) -> Iterator[Solution]:
    """Plans that serve all customers, the quickest to make first; no more once it is `over`.

    Where the fleet is limited there may be none: a plan that needs too many vehicles is given up.
    """
    if quick := cut_tour(problem) or append_hardest_first(problem) or assign_vehicles(problem, over):
        yield quick
    yield from inserted(problem, over)


def cut_tour(problem: Problem) -> Solution | None:
    """The plan that takes no time: a tour in pieces. None if that takes too many vehicles, or the problem is
    beyond the 48 variants."""
    return None if problem.extras else _solution(problem, _cut(problem, _tour(problem)))


def append_hardest_first(problem: Problem) -> Solution | None:
    """A plan of few vehicles, made in a quarter of the time of an insertion: who is hardest to place first,
    each behind the last customer of a route. None if somebody fits behind nobody."""
    p, order = problem, hardest_first(problem)
    if p.backhaul is Backhaul.LINEHAULS_FIRST:
        order = order[np.argsort(p.pickups[order] > 0, kind="stable")]
    return None if p.extras else _solution(p, _cut(p, order, side_by_side=True))


def assign_vehicles(problem: Problem, over: Callable[[], bool] = lambda: False) -> Solution | None:
    """The plan that takes little time beyond the 48 variants: a tour in pieces among vehicles that differ.
    None if that takes too many vehicles, and once it is `over`."""
    return by_pieces(problem, _tour(problem), over) if problem.extras else None


def hardest_first(p: Problem) -> Locations:
    """All customers, in the order in which they close, or else the heaviest first."""
    hard = p.windows[p.num_depots :, 1] if p.time_windows is not None else -(p.delivery + p.pickup)
    return p.num_depots + np.argsort(hard, kind="stable")


def inserted(problem: Problem, over: Callable[[], bool] = lambda: False) -> Iterator[Solution]:
    """Plans made customer by customer, which takes hundreds of them tenths of a second; no more once it is
    `over`."""
    if problem.extras:
        yield from _judged(problem, over)
        return
    p, customers = problem, np.arange(problem.num_depots, problem.num_locations)
    found = 0
    few_vehicles = p.fleet is not None
    orders = [_tour(p), _farthest_first(p, customers)]
    if few_vehicles and p.time_windows is not None:  # who closes early goes first: few are needed so
        orders.insert(0, customers[np.argsort(p.windows[p.num_depots :, 1], kind="stable")])
    for order in orders:
        if plan := _solution(p, _insert_all(p, order, over)):
            found += 1
            yield plan
    heaviest = customers[np.argsort(-(p.delivery + p.pickup), kind="stable")]
    if few_vehicles and not found and (plan := _solution(p, _insert_all(p, heaviest, over))):
        yield plan


def inserted_by_regions(problem: Problem, over: Callable[[], bool] = lambda: False) -> Solution | None:
    """A plan of long routes for thousands of customers, which takes half a second for each thousand: by
    insertion, region by region, the farthest customers first. Regions that are not reached before it is
    `over` stay pieces of a tour. None if somebody fits nowhere, or if routes are short in the first region:
    then such pieces do as well."""
    p = problem
    if p.extras:
        return None
    routes: Routes = []
    for region in np.array_split(_tour(p), math.ceil(p.num_customers / REGION_CUSTOMERS)):
        own = _insert_all(p, _farthest_first(p, region), over) or _cut(p, region)
        if own is None or (not routes and len(region) < LONG_ROUTE_CUSTOMERS * len(own)):
            return None
        routes += own
    return Solution.of(p, routes)


def _farthest_first(p: Problem, customers: Locations) -> Locations:
    far = p.distance(np.arange(p.num_depots)[:, None], customers).min(axis=0)
    return customers[np.argsort(-far, kind="stable")]


def _judged(p: Problem, over: Callable[[], bool]) -> Iterator[Solution]:
    """A plan beyond the 48 variants: customers one after the other where the judge allows and it costs least.

    Customers that few vehicles may serve, that weigh much or close early go first; optional ones come last.
    """
    unfit = (~p.skilled).sum(axis=0)
    weight, closing = np.maximum(p.delivery, p.pickup), p.windows[p.num_depots :, 1]
    required = np.isinf(p.prizes[p.num_depots :])
    routes: list[Route] = []
    for i in np.lexsort((-weight, closing, -unfit, ~required)).tolist():
        ways = insertions(p, routes, p.num_depots + i, JUDGED_PLACES)
        more, before, after = min(ways, key=lambda way: way[0], default=(math.inf, None, None))
        if after is None or over() or (more >= p.prizes[p.num_depots + i] and not required[i]):
            if required[i]:
                return
            continue
        routes = [route for route in routes if route is not before] + [after]
    yield Solution(p, tuple(routes))


def _solution(p: Problem, routes: Routes | None) -> Solution | None:
    return None if routes is None else Solution.of(p, routes)


def _tour(p: Problem) -> Locations:
    """All customers, in strips up and down the map; without a map, each time on to the nearest."""
    customers = np.arange(p.num_depots, p.num_locations)
    if p.coords is not None:
        x, y = planar(p.metric, p.coords[customers]).T
        strips = max(1, round(math.sqrt(p.num_customers / 2)))
        strip = np.argsort(np.argsort(x, kind="stable")) * strips // p.num_customers
        return customers[np.lexsort((np.where(strip % 2, -y, y), strip))]
    free, tour, at = np.ones(p.num_customers, dtype=bool), [], 0
    for _ in customers:
        far = np.minimum(p.distance(at, customers), np.finfo(float).max)  # where there is no road, last
        at = int(customers[np.where(free, far, np.inf).argmin()])
        free[at - p.num_depots] = False
        tour.append(at)
    return np.array(tour)


# -- cut from a tour


@dataclass(frozen=True)
class _End:
    """How a vehicle leaves the last customer of its route so far."""

    time: float
    length: float = 0.0  # and service, where it counts towards the limit
    peak: float = 0.0  # the largest load so far, to which each delivery adds
    load: float = 0.0  # pickups on board
    picked_up: bool = False


def _cut(p: Problem, tour: Locations, side_by_side: bool = False) -> Routes | None:
    """The tour in pieces: each vehicle takes the next customers for as long as it can. A new one comes from
    the nearest depot that can send one. None if a customer is left without.

    Vehicles that are on their way `side_by_side` all may take the next customer, the nearest first.
    """
    bounds = Bounds(p)
    room, limit, closing = bounds.room, bounds.limit, bounds.closing.tolist()
    opening, service = p.windows[:, 0].tolist(), p.services.tolist()
    delivery, pickup = p.deliveries.tolist(), p.pickups.tolist()
    ordered = p.backhaul is Backhaul.LINEHAULS_FIRST
    depots = np.asarray(p.depots)[:, None]
    leg, leg_time = p.distance(tour[:-1], tour[1:]).tolist(), p.duration(tour[:-1], tour[1:]).tolist()
    out, out_time = p.distance(depots, tour).tolist(), p.duration(depots, tour).tolist()
    home, home_time = p.distance(tour, depots).tolist(), p.duration(tour, depots).tolist()

    def extended(end: _End, depot: int, i: int, length: float, time: float) -> _End | None:
        """The end after the i-th customer of the tour, if the vehicle may go on to it and then home."""
        c = int(tour[i])
        start = max(end.time + time, opening[c])
        leaves = start + service[c]
        far = end.length + length + (service[c] if p.limit_counts_service else 0.0)
        load = end.load + pickup[c]
        peak = max(end.peak + delivery[c], load)
        in_time = start <= closing[c] and (p.open or leaves + home_time[depot][i] <= closing[depot])
        way = far + (0.0 if p.open else home[depot][i])
        in_limit = way <= limit and way < math.inf
        in_order = not (ordered and end.picked_up and delivery[c] > 0)
        if not (in_time and in_limit and in_order and peak <= room and length < math.inf):
            return None
        return _End(leaves, far, peak, load, end.picked_up or pickup[c] > 0)

    def on_their_way(i: int) -> Iterable[tuple[int, float, float]]:
        """Routes that may take the i-th customer of the tour, with the length and time to it."""
        if not side_by_side:
            return [(len(routes) - 1, leg[i - 1], leg_time[i - 1])] if routes else []
        last = [visits[-1] for _, visits in routes]
        length, time = p.distance(last, tour[i]), p.duration(last, tour[i])
        nearest = np.argsort(length, kind="stable")
        return zip(nearest.tolist(), length[nearest].tolist(), time[nearest].tolist(), strict=True)

    vehicles = [math.inf if p.fleet is None else p.fleet] * p.num_depots
    routes: Routes = []
    ends: list[_End] = []
    for i, c in enumerate(tour.tolist()):
        for number, length, time in on_their_way(i):
            if end := extended(ends[number], routes[number][0], i, length, time):
                routes[number][1].append(c)
                ends[number] = end
                break
        else:
            for depot in sorted(p.depots, key=lambda d: out[d][i]):
                fresh = _End(opening[depot])
                if vehicles[depot] and (end := extended(fresh, depot, i, out[depot][i], out_time[depot][i])):
                    vehicles[depot] -= 1
                    routes.append((depot, [c]))
                    ends.append(end)
                    break
            else:
                return None
    return routes


# -- by insertion


def _insert_all(p: Problem, order: Locations, over: Callable[[], bool]) -> Routes | None:
    """Routes with each customer in its turn where it lengthens the plan least; None if one fits nowhere."""
    plan = _Plan(p)
    for customer in order.tolist():
        if over() or not plan.insert(customer):
            return None
    return plan.routes()


class _Plan:
    """A plan that grows. Each leg of each route has a row, in the order of their making; the first rows, one
    for each depot, stand for a vehicle that has not left yet."""

    def __init__(self, p: Problem):
        self.problem, self.bounds = p, Bounds(p)
        most = p.num_depots + 2 * p.num_customers
        self.legs, self.route = Legs.empty(most), np.zeros(most, np.intp)
        self.rows = p.num_depots
        self.members: list[list[int]] = []  # rows of each route, in the order of the legs
        self.vehicles = np.full(p.num_depots, np.inf if p.fleet is None else p.fleet)
        for depot in p.depots:
            self.legs.put([depot], Legs.of(self.bounds, np.array([depot])))

    def routes(self) -> Routes:
        start = self.legs.start
        return [(int(start[rows[0]]), start[rows[1:]].tolist()) for rows in self.members]

    def insert(self, customer: int) -> bool:
        """Whether there is a place for the customer; it takes the one that lengthens the plan least."""
        more = self.legs.first(self.rows).lengthening(self.bounds, customer)
        more[: self.problem.num_depots][self.vehicles == 0] = np.inf
        row = len(more) - 1 - int(more[::-1].argmin())  # the last of equals: a new vehicle only where it pays
        if more[row] == np.inf:
            return False
        if row < self.problem.num_depots:
            self.vehicles[row] -= 1
            self.members.append([self.new_row(row, len(self.members))])
            row = self.members[-1][0]
        rows = self.members[self.route[row]]
        rows.insert(rows.index(row) + 1, self.new_row(customer, int(self.route[row])))
        self.legs.put(rows, Legs.of(self.bounds, self.legs.start[rows]))
        return True

    def new_row(self, start: int, route: int) -> int:
        self.legs.start[self.rows], self.route[self.rows] = start, route
        self.rows += 1
        return self.rows - 1
