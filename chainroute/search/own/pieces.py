"""A tour in pieces for vehicles that differ: a plan beyond the 48 variants, also for thousands of customers.

Each piece begins with the next customer of the tour who has no vehicle yet, and goes to the vehicle that
serves it at the least cost for each customer. How far a vehicle gets is for the judge to say, so that no rule
is written twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from chainroute.plan.check import route_cost
from chainroute.plan.insertion import extensions
from chainroute.plan.solution import Route, Solution
from chainroute.problem import Problem
from chainroute.problem.measure import FloatArray
from chainroute.problem.variants import Backhaul
from chainroute.search.own.legs import Flags, Locations

AHEAD_CUSTOMERS = 200  # without a vehicle, among whom those of a piece are looked for
TRIED_KINDS = 6  # of vehicles, for each piece
TRIED_ROUTES = 20  # at a time, for a customer for whom there was no vehicle
TRIED_PLACES = 8  # on these routes, at which the judge is asked


@dataclass(frozen=True)
class VehicleGroup:
    """Vehicles of a type at a depot."""

    number: int  # of the type
    depot: int
    room: float
    trips: int  # that each may make
    count: float
    able: Flags  # by location: whether such a vehicle may serve it
    price: FloatArray  # by location: of the way there and back, for each unit of capacity
    facts: tuple[object, ...]  # what sets one type from one depot apart from another


def by_pieces(p: Problem, tour: Locations, over: Callable[[], bool]) -> Solution | None:
    """The tour in pieces; or, if that leaves somebody without a vehicle, whom few can serve first. None if
    that does so, too, or once it is `over`."""
    kinds = list(_kinds(p))
    vehicles = np.sum([np.where(kind.able, kind.count, 0) for kind in kinds], axis=0)
    scarce = tour[np.argsort(vehicles[tour], kind="stable")]
    for order in (tour, scarce):
        required_first = order[np.argsort(p.prizes[order] < math.inf, kind="stable")]
        pieces = Pieces(p, kinds, required_first)
        if pieces.cut(over) and pieces.insert_others(over):
            return Solution(p, tuple(pieces.worth()))
    return None


class Pieces:
    """The pieces of a tour, each the route of a vehicle."""

    def __init__(self, p: Problem, kinds: Sequence[VehicleGroup], tour: Locations):
        self.problem, self.tour = p, tour.tolist()
        self.kinds = {(kind.number, kind.depot): kind for kind in kinds}
        self.left = {key: kind.count for key, kind in self.kinds.items()}  # that have not set out yet
        self.free = np.ones(p.num_locations, dtype=bool)
        self.routes: list[Route] = []
        self.others: list[int] = []  # for whom there was no vehicle
        self.rank = _ranks(p, tour)

    def cut(self, over: Callable[[], bool]) -> bool:
        """Cuts the tour, unless it is over before."""
        for at, customer in enumerate(self.tour):
            if over():
                return False
            if self.free[customer] and not self.cut_at(at):
                self.others.append(customer)
        return True

    def cut_at(self, at: int) -> bool:
        """Whether there is a vehicle for a piece that begins here."""
        ahead = list(islice((c for c in self.tour[at:] if self.free[c]), AHEAD_CUSTOMERS))
        pieces = (self.longest(kind, [c for c in ahead if kind.able[c]]) for kind in self.suited(ahead[0]))
        found = islice((piece for piece in pieces if piece is not None), TRIED_KINDS)
        _, route = min(found, key=lambda piece: piece[0], default=(0.0, None))
        if route is None:
            return False
        self.left[route.vehicle, route.depot] -= 1
        self.routes.append(route)
        self.free[list(route.visits)] = False
        return True

    def suited(self, customer: int) -> list[VehicleGroup]:
        """The kinds that may serve a customer, of those that are alike one, what promises most first."""
        left = (kind for key, kind in self.kinds.items() if self.left[key])
        able = {kind.facts: kind for kind in left if kind.able[customer]}
        return sorted(able.values(), key=lambda kind: float(kind.price[customer]))

    def longest(self, kind: VehicleGroup, ahead: Sequence[int]) -> tuple[float, Route] | None:
        """The route of as many of the next customers as the judge allows, and before it the cost for each."""
        p = self.problem
        loads = np.maximum(p.deliveries[ahead].cumsum(), p.pickups[ahead].cumsum())
        most = int((loads <= kind.room).sum())
        found, least, count = None, 0, most
        while count > least:
            visits = sorted(ahead[:count], key=self.rank.__getitem__)
            route = Route(kind.depot, tuple(visits), kind.number)
            if (cost := route_cost(p, route)) is None:
                most = count - 1
            else:
                found, least = (cost / count, route), count
            count = (least + most + 1) // 2
        return found

    def insert_others(self, over: Callable[[], bool]) -> bool:
        """Whether all for whom there was no vehicle have a place on a route now, or need none."""
        for customer in self.others:
            if over() or not (self.insert(customer) or self.problem.prizes[customer] < math.inf):
                return False
        return True

    def insert(self, customer: int) -> bool:
        """Whether one of the routes can take the customer; the nearest are tried first, some at a time."""
        p = self.problem
        places = np.array([c for route in self.routes for c in route.visits], np.intp)
        owners = np.repeat(np.arange(len(self.routes)), [len(route) for route in self.routes])
        nearest = owners[np.argsort(p.distance(places, customer), kind="stable")].tolist()
        routes = (self.routes[i] for i in dict.fromkeys(nearest))
        with_room = (route for route in routes if self.has_room(route, customer))
        while some := list(islice(with_room, TRIED_ROUTES)):
            if ways := list(extensions(p, some, customer, TRIED_PLACES)):
                _, before, after = min(ways, key=lambda way: way[0])
                self.routes[self.routes.index(before)] = after
                return True
        return False

    def has_room(self, route: Route, customer: int) -> bool:
        p, kind, visits = self.problem, self.kinds[route.vehicle, route.depot], [*route.visits, customer]
        load = max(p.deliveries[visits].sum(), p.pickups[visits].sum())
        return bool(kind.able[customer] and load <= kind.room * kind.trips)

    def worth(self) -> Iterator[Route]:
        """The routes, without those that cost more than to leave their customers out."""
        p = self.problem
        for route in self.routes:
            served = [c for c in route.visits if c >= p.num_depots]
            if (route_cost(p, route) or 0.0) < p.prizes[served].sum():
                yield route


def _kinds(p: Problem) -> Iterator[VehicleGroup]:
    every, depots = np.arange(p.num_locations), np.ones(p.num_depots, dtype=bool)
    for number, t in enumerate(p.types):
        room = t.capacity * (1 + p.load_slack)
        able = np.concatenate([depots, p.eligible[number]])
        for depot in t.depots:
            end = t.end_of(depot)
            way = p.distance(depot, every) + (0.0 if end is None else p.distance(every, end))
            cost = t.fixed_cost + (t.cost_per_distance + t.cost_per_time) * np.nan_to_num(way, posinf=0.0)
            price = np.where(np.isinf(way), np.inf, cost / t.capacity)
            own = {**vars(t), "name": "", "count": 0, "depots": depot}
            facts = tuple(own.values())
            yield VehicleGroup(number, depot, room, t.max_trips, t.count, able, price, facts)


def _ranks(p: Problem, tour: Locations) -> list[int]:
    """The turn of each location on the route of its piece: as it closes, or else as on the tour; where
    linehauls come first, pickups follow them."""
    ranks = np.zeros(p.num_locations)
    ranks[tour] = np.arange(p.num_customers)
    last = (p.pickups > 0) & (p.backhaul is Backhaul.LINEHAULS_FIRST)
    turns: list[int] = np.lexsort((ranks, p.windows[:, 1], last)).argsort().tolist()
    return turns
