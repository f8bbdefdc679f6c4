"""PyVRP's side of the work: the problem in whole numbers, the search, and its routes in our numbering.

PyVRP counts in 64-bit integers. Each kind of quantity (length, time, load) is multiplied by a power of ten of
its own that brings its largest value to at most `LARGEST`. Lengths and times that a route uses up are rounded
up, what bounds them is rounded down, so that a route that is feasible in integers is feasible to the judge.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyvrp
from numpy.typing import NDArray
from pyvrp.search import NeighbourhoodParams

from chainroute.measure import LOAD_SLACK, FloatArray
from chainroute.problem import Problem
from chainroute.variants import Backhaul

LARGEST = 1e8
FORBIDDEN = 10**9  # length of an arc that must not be used
LARGEST_SUM = 1e18  # of all penalties in a solution: it must fit into 63 bits, with a margin
NEIGHBOURS = 20  # per customer; against PyVRP's 50, twice the iterations and better costs within seconds
NOISE = 1e-14  # relative: less is an error of double precision, as in 1.1 * 10 = 11.000000000000002
UNBOUNDED = int(np.iinfo(np.int64).max)  # PyVRP's own word for it
REPORT_INTERVAL = 0.1  # seconds between two reports

IntArray = NDArray[np.int64]
Routes = list[tuple[int, list[int]]]  # (depot, visits), as locations of the problem


def search(
    problem: Problem,
    initial: Routes | None,
    seed: int,
    deadline: float,
    max_iterations: int | None,
    report: Callable[[tuple[int, Routes]], None],
) -> None:
    """Searches until the deadline (on the monotonic clock); reports iterations and routes as they improve."""
    model = build(problem)
    reporter = _Reporter(model, report)
    # High enough that breaking a bound by a single unit costs more than the longest arc, where that fits.
    max_penalty = min(LARGEST, LARGEST_SUM / LARGEST / problem.num_locations)
    params = pyvrp.SolveParams(
        ils=pyvrp.IteratedLocalSearchParams(callbacks=reporter),
        penalty=pyvrp.PenaltyParams(max_penalty=max_penalty),
        neighbourhood=NeighbourhoodParams(num_neighbours=NEIGHBOURS),
    )

    def stop(best_cost: int) -> bool:
        return time.monotonic() >= deadline or reporter.iterations == max_iterations

    if initial is None and (quick := nearest_neighbours(model)) is not None:
        report((0, model.decode(quick)))  # for thousands of customers PyVRP needs seconds to its first routes
    start = None if initial is None else model.encode(initial)
    pyvrp.solve(model.data, stop, seed, collect_stats=False, params=params, initial_solution=start)


class _Reporter(pyvrp.IteratedLocalSearchCallbacks):
    """Reports the best routes now and then, so that little is lost when the search has to be ended."""

    def __init__(self, model: Model, report: Callable[[tuple[int, Routes]], None]):
        self.model, self.report = model, report
        self.iterations = 0
        self.news: pyvrp.Solution | None = None
        self.reported = -math.inf

    def on_start(self, ils: pyvrp.IteratedLocalSearch) -> None:
        self.news = ils.initial_solution
        self.tell()

    def on_best(self, best: pyvrp.Solution) -> None:
        self.news = best

    def on_iteration(self, current: Any, candidate: Any, best: Any, cost_evaluator: Any) -> None:
        self.iterations += 1
        if self.news is not None and time.monotonic() >= self.reported + REPORT_INTERVAL:
            self.tell()

    def on_end(self, result: pyvrp.Result) -> None:
        self.news = result.best
        self.tell()

    def tell(self) -> None:
        if self.news is not None and self.news.is_feasible():
            self.report((self.iterations, self.model.decode(self.news)))
        self.news, self.reported = None, time.monotonic()


def nearest_neighbours(model: Model) -> pyvrp.Solution | None:
    """Routes at once: each vehicle goes on to the nearest customer that it can still serve. None if that
    leaves some out."""
    data, m = model.data, model.problem.num_depots
    length = data.distance_matrix(0)
    free = np.ones(data.num_clients, dtype=bool)
    left = [vehicle_type.num_available for vehicle_type in data.vehicle_types()]

    def nearest(place: int) -> IntArray:
        return np.where(free, length[place, m:], FORBIDDEN)

    def following(visits: list[int], depot: int) -> int | None:
        near = nearest(m + visits[-1] if visits else depot)
        for client in np.argsort(near)[: NEIGHBOURS if visits else None].tolist():
            if near[client] >= FORBIDDEN:
                break
            if pyvrp.Route(data, [*visits, client], vehicle_type=depot).is_feasible():
                return int(client)
        return None

    routes = []
    while free.any():
        visits: list[int] = []
        for depot in sorted(model.problem.depots, key=lambda d: nearest(d).min()):
            while left[depot] and (client := following(visits, depot)) is not None:
                visits.append(client)
                group = data.client(client).group
                free[client if group is None else data.group(group).clients] = False
            if visits:
                break
        else:
            return None
        left[depot] -= 1
        routes.append(pyvrp.Route(data, visits, vehicle_type=depot))
    return pyvrp.Solution(data, routes)


# -- the problem in PyVRP's terms


@dataclass(frozen=True)
class Model:
    problem: Problem
    data: pyvrp.ProblemData
    places: Sequence[int]  # the location that each PyVRP client stands for

    def decode(self, solution: pyvrp.Solution) -> Routes:
        return [
            (route.start_depot(), [self.places[stop.idx] for stop in route if stop.is_client()])
            for route in solution.routes()
        ]

    def encode(self, routes: Routes) -> pyvrp.Solution:
        first = {place: client for client, place in reversed(list(enumerate(self.places)))}
        last = {place: client for client, place in enumerate(self.places)}
        encoded = []
        for depot, visits in routes:
            picked_up, clients = False, []
            for v in visits:
                picked_up |= bool(self.problem.pickups[v] > 0)
                clients.append(last[v] if picked_up else first[v])
            encoded.append(pyvrp.Route(self.data, clients, vehicle_type=depot))
        return pyvrp.Solution(self.data, encoded)


def build(problem: Problem) -> Model:
    p, m = problem, problem.num_depots
    twins = _either_half(p)
    places = np.array([*range(p.num_locations), *twins])
    length, limit = _lengths(p)
    duration, service, early, late = _times(p)
    delivery, pickup, capacity = _loads(p)

    first_half, second_half = p.deliveries[places] > 0, p.pickups[places] > 0
    first_half[twins], second_half[p.num_locations :] = True, True
    if twins:
        length, duration = length[np.ix_(places, places)], duration[np.ix_(places, places)]
    if p.backhaul is Backhaul.LINEHAULS_FIRST:
        length[np.ix_(second_half, first_half)] = FORBIDDEN

    group = {place: g for g, place in enumerate(twins)}
    clients = [
        pyvrp.Client(
            location=location,
            delivery=[int(delivery[place])],
            pickup=[int(pickup[place])],
            service_duration=int(service[place]),
            tw_early=int(early[place]),
            tw_late=int(late[place]),
            required=place not in group,
            group=group.get(place),
        )
        for location, place in enumerate(places.tolist())
        if place >= m
    ]
    groups = [pyvrp.ClientGroup([place - m, p.num_customers + g]) for place, g in group.items()]
    depots = [pyvrp.Depot(d, tw_early=int(early[d]), tw_late=int(late[d])) for d in p.depots]
    vehicles = p.num_customers if p.fleet is None else min(p.fleet, p.num_customers)
    types = [
        pyvrp.VehicleType(vehicles, [capacity], start_depot=d, end_depot=d, max_distance=limit)
        for d in p.depots
    ]
    nowhere = [pyvrp.Location(0, 0)] * len(places)
    lengths: Any = [length]  # PyVRP's stubs have no type for a matrix
    durations: Any = [duration]
    data = pyvrp.ProblemData(nowhere, clients, depots, types, lengths, durations, groups)
    return Model(p, data, places[m:].tolist())


def _either_half(p: Problem) -> list[int]:
    """Customers with no demand, where linehauls come first: they may be visited in either half of a route.
    Each becomes two clients, one for each half, of which one is visited; so forbidden arcs suffice."""
    if p.backhaul is not Backhaul.LINEHAULS_FIRST or not (p.delivery.any() and p.pickup.any()):
        return []
    return [c for c in p.customers if p.deliveries[c] == 0 == p.pickups[c]]


def _lengths(p: Problem) -> tuple[IntArray, int]:
    """The matrix of lengths, and the limit on a route's length."""
    m = p.num_depots
    length = p.distances + (p.services if p.limit_counts_service else 0.0)  # a constant in all costs
    if p.open:
        length[:, :m] = 0
    np.fill_diagonal(length, 0)
    far = length > 4 * (length[:m, m:] + length[m:, :m].T).max()  # longer than any way round by a depot
    length[far] = 0  # so that the numbers which stand for "no road" do not set the scale
    scale = _scale(length)
    whole = _up(length, scale)
    whole[far] = FORBIDDEN
    if p.distance_limit is None:
        return whole, UNBOUNDED
    limit = np.floor(np.minimum(p.distance_limit * scale * (1 + NOISE), whole.sum()))
    trips = whole[:m, m:] + whole[m:, :m].T
    return whole, int(_admit(limit, trips.ravel(), axis=0))


def _times(p: Problem) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Durations, service times, and when windows open and close; no time passes where there are none."""
    n, m = p.num_locations, p.num_depots
    if p.time_windows is None:
        nothing = np.zeros(n, np.int64)
        return np.zeros((n, n), np.int64), nothing, nothing, nothing + UNBOUNDED
    origin = p.windows[:, 0].min()  # PyVRP's clock starts at 0
    opening, closing = (p.windows - origin).T
    last = np.max(closing, where=np.isfinite(closing), initial=0)
    after = 2 * last if last > 0 else np.inf  # all windows have closed; how long ago does not matter
    times = [np.minimum(x, after) for x in (p.durations, p.services, opening)]
    if p.open:
        times[0][:, :m] = 0
    scale = _scale(*times)
    travel, service, early = (_up(x, scale) for x in times)
    never = early.max() + service.sum() + travel.max(axis=1).sum()  # no vehicle is out so late
    late = np.floor(np.minimum(closing * scale * (1 + NOISE), never))
    start = np.maximum(early[:m, None] + travel[:m, m:], early[m:])
    late[m:] = _admit(late[m:], start, axis=0)
    late[:m] = never if p.open else _admit(late[:m], start + service[m:] + travel[m:, :m].T, axis=1)
    return travel, service, early, np.maximum(early, late).astype(np.int64)


def _loads(p: Problem) -> tuple[IntArray, IntArray, int]:
    """Deliveries, pickups, and the capacity, with half of the slack that the judge gives.

    Demands are rounded to the nearest: that makes the quotients of the benchmark whole again.
    """
    total = (p.deliveries + p.pickups).sum()
    scale = _scale(min(p.capacity, total))
    delivery, pickup = (np.rint(x * scale).astype(np.int64) for x in (p.deliveries, p.pickups))
    room = p.capacity * (1 + LOAD_SLACK / 2)
    return delivery, pickup, UNBOUNDED if total <= room else math.floor(room * scale)


def _scale(*values: FloatArray | float) -> float:
    """The power of ten that brings the largest value to at most LARGEST."""
    largest = max(float(np.max(v)) for v in values)
    return 10.0 ** min(math.floor(math.log10(LARGEST) - math.log10(largest)), 300) if largest > 0 else 1.0


def _up(values: FloatArray, scale: float) -> IntArray:
    return np.ceil(values * (scale * (1 - NOISE))).astype(np.int64)


def _admit(bound: FloatArray, trips: IntArray, axis: int) -> FloatArray:
    """Bounds raised to what each customer's own trip needs, where that exceeds them by no more than rounding
    may have added: a customer that can just be reached must not be lost to it."""
    rounding = 4  # units: out, waiting, service and back
    just = trips <= np.expand_dims(bound, axis) + rounding
    return np.asarray(np.maximum(bound, np.max(trips, axis=axis, initial=0, where=just)))
