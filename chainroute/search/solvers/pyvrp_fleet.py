"""What lies beyond the 48 variants in PyVRP's terms: vehicle types, money, prizes, several windows, trips.

PyVRP has vehicle types, prizes and reloads of its own. The rest are tricks: a customer with several windows
is a group of clients of which one is visited; whom a vehicle may not serve lies behind forbidden ways in a
matrix of its own; an open route ends at a depot that is no way off; lengths are counted in money.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyvrp
from numpy.typing import NDArray
from pyvrp import Activity, ActivityType

from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.problem.fleet import Vehicle
from chainroute.problem.measure import FloatArray
from chainroute.problem.variants import Backhaul
from chainroute.search.solvers import scaling
from chainroute.search.solvers.fleet_scaling import MAX_WAY_COST, Clock, Money, finite, loads
from chainroute.search.solvers.scaling import FORBIDDEN_FACTOR, IntArray, scale, up

FleetRoutes = list[tuple[int, list[int], int]]  # (depot, visits, type of vehicle), as the problem counts them


@dataclass(frozen=True)
class ServiceChoice:
    """A way to serve a customer: in one of its windows, in one half of a route."""

    customer: int  # as a location of the problem
    place: int  # as a location of PyVRP's
    window: tuple[float, float]
    second_half: bool


@dataclass(frozen=True)
class FleetModel:
    problem: Problem
    data: pyvrp.ProblemData
    clients: Sequence[ServiceChoice]
    kinds: Sequence[tuple[int, int]]  # our type and the depot of each of PyVRP's types
    ways: Mapping[int, Sequence[int]]  # the clients that stand for each customer

    def decode(self, solution: pyvrp.Solution) -> FleetRoutes:
        found = []
        for route in solution.routes():
            kind, depot = self.kinds[route.vehicle_type()]
            path = [depot]
            for stop in list(route)[1:-1]:
                place = self.clients[stop.idx].customer if stop.is_client() else stop.idx
                path += [place] if place != path[-1] else []  # else a trip that goes nowhere
            if path[-1] == self.problem.types[kind].end_of(depot):
                path.pop()
            if any(place >= self.problem.num_depots for place in path):
                found.append((depot, path[1:], kind))
        return found

    def encode(self, routes: Sequence[Sequence[Any]]) -> pyvrp.Solution:
        plan = Solution.of(self.problem, routes)
        encoded = []
        for route, facts in zip(plan.routes, plan.facts, strict=True):
            picked_up, activities = False, []
            for stop in facts.stops:
                if stop.location < self.problem.num_depots:
                    activities.append(Activity(ActivityType.DEPOT, stop.location))
                    picked_up = False
                    continue
                picked_up |= bool(self.problem.pickups[stop.location] > 0)
                chosen = self._client(stop.location, stop.start, picked_up)
                activities.append(Activity(ActivityType.CLIENT, chosen))
            kind = self.kinds.index((route.vehicle, route.depot))
            encoded.append(pyvrp.Route(self.data, activities, kind))
        return pyvrp.Solution(self.data, encoded)

    def _client(self, customer: int, start: float, second_half: bool) -> int:
        """The client that stands for a customer who is served at that time, in that half of a route."""

        def misfit(number: int) -> tuple[bool, float]:
            client = self.clients[number]
            late = max(client.window[0] - start, start - client.window[1], 0.0)
            return client.second_half is not second_half, late

        return min(self.ways[customer], key=misfit)


def build(problem: Problem) -> FleetModel:
    p = problem
    clients, places = _clients(p)
    clock, money = Clock(p), Money(p)
    delivery, pickup, capacities = loads(p)
    worth = p.prizes + _paid_as_way(p)
    prizes = [0 if prize == math.inf else money.whole(prize) for prize in worth.tolist()]
    profiles = _Profiles(p, clients, places, clock, money, sum(prizes))

    ways: dict[int, list[int]] = {}
    for i, client in enumerate(clients):
        ways.setdefault(client.customer, []).append(i)
    group = {c: g for g, c in enumerate(c for c, some in ways.items() if len(some) > 1)}
    groups = [pyvrp.ClientGroup(ways[c], required=p.prizes[c] == math.inf) for c in group]
    theirs = [
        pyvrp.Client(
            location=client.place,
            delivery=[int(delivery[client.customer])],
            pickup=[int(pickup[client.customer])],
            service_duration=clock.up(p.services[client.customer]),
            tw_early=opening,
            tw_late=closing,
            prize=prizes[client.customer],
            required=p.prizes[client.customer] == math.inf and client.customer not in group,
            group=group.get(client.customer),
        )
        for client in clients
        for opening, closing in [clock.window(*client.window)]
    ]
    hours = [clock.window(*window) for window in p.windows[: p.num_depots].tolist()]
    depots = [pyvrp.Depot(d, tw_early=a, tw_late=b) for d, (a, b) in enumerate(hours)]
    depots.append(pyvrp.Depot(len(places), tw_late=clock.never))  # nowhere
    kinds, types = [], []
    for number, vehicle in enumerate(p.types):
        for depot in filter(partial(p.can_go_out, vehicle), vehicle.depots):
            end = vehicle.end_of(depot)
            # Rounded, a shift may just miss hours that it touches.
            touched = [hours[depot], hours[depot if end is None else end]]
            first = min(clock.early(vehicle.shift[0]), *(closing for _, closing in touched))
            last = max(clock.late(vehicle.shift[1]), *(opening for opening, _ in touched))
            matrix, per_length, limit = profiles.of(vehicle)
            kinds.append((number, depot))
            types.append(
                pyvrp.VehicleType(
                    int(min(vehicle.count, p.num_customers)),
                    [capacities[number]],
                    start_depot=depot,
                    end_depot=p.num_depots if end is None else end,
                    fixed_cost=money.whole(vehicle.fixed_cost),
                    tw_early=first,
                    tw_late=last,
                    shift_duration=clock.down(vehicle.max_duration),
                    max_distance=limit,
                    unit_distance_cost=per_length,
                    unit_duration_cost=money.of_time(vehicle, clock.unit),
                    profile=matrix,
                    reload_depots=list(vehicle.reloads_at(depot)),
                    max_reloads=vehicle.max_trips - 1,
                )
            )
    nowhere = [pyvrp.Location(0, 0)] * (len(places) + 1)
    lengths: Any = profiles.lengths  # PyVRP's stubs have no type for a matrix
    durations: Any = profiles.durations
    data = pyvrp.ProblemData(nowhere, theirs, depots, types, lengths, durations, groups)
    return FleetModel(p, data, clients, kinds, ways)


def _paid_as_way(p: Problem) -> FloatArray:
    """What serving each customer costs too much, whoever comes: where service counts towards a limit, lengths
    contain it, and these are paid for. Between vehicles of different rates that is not made up for."""
    if not p.limit_counts_service:
        return np.zeros(p.num_locations)
    return p.services * min(0.0 if v.distance_limit == math.inf else v.cost_per_distance for v in p.types)


def _clients(p: Problem) -> tuple[list[ServiceChoice], list[int]]:
    """The clients, and the location of the problem that each of PyVRP's is.

    Where linehauls come first, customers without demand may be visited in either half of a route: they have
    two places, one for each half, so that forbidden ways suffice.
    """
    places = list(range(p.num_locations))
    clients = [
        ServiceChoice(c, c, window, bool(p.pickups[c] > 0)) for c in p.customers for window in p.windows_of(c)
    ]
    if p.backhaul is Backhaul.LINEHAULS_FIRST and p.delivery.any() and p.pickup.any():
        for c in p.customers:
            if p.deliveries[c] == 0 == p.pickups[c]:
                clients += [ServiceChoice(c, len(places), window, True) for window in p.windows_of(c)]
                places.append(c)
    return clients, places


class _Profiles:
    """Matrices of lengths in money, and of durations: one of each for vehicles that share them."""

    def __init__(
        self,
        p: Problem,
        clients: Sequence[ServiceChoice],
        places: Sequence[int],
        clock: Clock,
        money: Money,
        prizes: int,
    ):
        self.problem, self.clock, self.money = p, clock, money
        self.places = np.array(places)
        self.prohibitive = prizes  # what nobody would pay
        self.first_half, self.second_half = p.deliveries[self.places] > 0, p.pickups[self.places] > 0
        for client in clients:
            if client.place >= p.num_locations:
                self.first_half[client.customer], self.second_half[client.place] = True, True
        self.lengths: list[IntArray] = []
        self.durations: list[IntArray] = []
        self.known: dict[tuple[Any, ...], tuple[int, int, int]] = {}

    def of(self, vehicle: Vehicle) -> tuple[int, int, int]:
        """The number of the profile, the cost of a unit of length in it, and the limit."""
        p = self.problem
        unfit = ~p.skilled[p.types.index(vehicle)]
        own = (id(vehicle.distances), id(vehicle.durations))
        key = (*own, vehicle.cost_per_distance, vehicle.distance_limit < math.inf, unfit.tobytes())
        if key not in self.known:
            self.known[key] = self._made(vehicle, unfit)
        number, per_length, _ = self.known[key]
        return number, per_length, self._limit(vehicle)

    def _unit(self, vehicle: Vehicle) -> float:
        """Returns the factor on lengths: into money, unless they cost nothing and are limited."""
        p, rate = self.problem, vehicle.cost_per_distance
        if rate > 0 or vehicle.distance_limit == math.inf:
            return rate * self.money.scale
        return scale(MAX_WAY_COST, finite(p.distances if vehicle.distances is None else vehicle.distances))

    def _limit(self, vehicle: Vehicle) -> int:
        if vehicle.distance_limit == math.inf:
            return scaling.UNBOUNDED
        return math.floor(vehicle.distance_limit * self._unit(vehicle) * (1 + scaling.NOISE))

    def _made(self, vehicle: Vehicle, unfit: NDArray[np.bool_]) -> tuple[int, int, int]:
        p, m, clock = self.problem, self.problem.num_depots, self.clock
        length = p.distances if vehicle.distances is None else vehicle.distances
        time = p.durations if vehicle.durations is None else vehicle.durations
        gone = np.isinf(length) | np.isinf(time)
        gone[:, m:] |= unfit
        if p.limit_counts_service and vehicle.distance_limit < math.inf:
            length = length + p.services
        at = np.ix_(self.places, self.places)
        gone, length, time = gone[at], finite(length)[at], finite(time)[at]
        if p.backhaul is Backhaul.LINEHAULS_FIRST:
            gone[np.ix_(self.second_half, self.first_half)] = True
        np.fill_diagonal(gone, False)
        np.fill_diagonal(length, 0.0)
        unit = self._unit(vehicle)
        lengths, durations = up(length, unit), up(time, clock.unit) * clock.runs
        if unit > 0 or vehicle.distance_limit == math.inf:
            lengths[gone] = FORBIDDEN_FACTOR * max(int(lengths.max()), int(MAX_WAY_COST)) + self.prohibitive
        durations[gone] = clock.never + 1 if clock.runs else 0
        self.lengths.append(np.pad(lengths, (0, 1)))  # nowhere is no way off
        self.durations.append(np.pad(durations, (0, 1)))
        free = vehicle.cost_per_distance == 0 and vehicle.distance_limit < math.inf
        return len(self.lengths) - 1, 0 if free else 1, 0
