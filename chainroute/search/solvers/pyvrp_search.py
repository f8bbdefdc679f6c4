"""PyVRP's side of the work: the problem in whole numbers, the search, and its routes in our numbering.

PyVRP counts in 64-bit integers; `scaling` has the problem in them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyvrp
from pyvrp.search import NeighbourhoodParams

from chainroute.plan.solution import Routes
from chainroute.problem import Problem
from chainroute.problem.variants import Backhaul
from chainroute.search.library import REPORT_SECONDS, Found, OnFound, SearchTask
from chainroute.search.own.construct import cut_tour
from chainroute.search.solvers import pyvrp_fleet, scaling
from chainroute.search.solvers.pyvrp_fleet import FleetModel
from chainroute.search.solvers.pyvrp_penalties import NeighbourPenalties
from chainroute.search.solvers.scaling import MAX_INTEGER

FORBIDDEN_LENGTH = scaling.FORBIDDEN_FACTOR * int(MAX_INTEGER)
MAX_PENALTY_SUM = 1e18  # of all penalties in a solution: it must fit into 63 bits, with a margin
NEIGHBOURS = 20  # per customer; against PyVRP's 50, twice the iterations and better costs within seconds

# PyVRP accepts routes that are better than those of so many iterations ago. The longer that is, the later it
# settles: 300 suits minutes. A small share of all iterations is better within seconds (docs/solving.md).
HISTORY_ITERATIONS, LEAST_HISTORY_ITERATIONS = 300, 3


def search(task: SearchTask, report: OnFound) -> None:
    """Searches until the deadline; reports iterations and routes as they improve."""
    problem, deadline = task.problem, task.deadline
    model = pyvrp_fleet.build(problem) if problem.extras else build(problem)
    reporter = _Reporter(model, report)
    # High enough that breaking a bound by a single unit costs more than the longest arc, where that fits.
    most = max(MAX_INTEGER, *(int(times.max()) for times in model.data.duration_matrices()))
    max_penalty = min(MAX_INTEGER, MAX_PENALTY_SUM / most / problem.num_locations)
    history, penalty = HISTORY_ITERATIONS, pyvrp.PenaltyParams(max_penalty=max_penalty)
    if task.history_share is not None:
        per_second = 2000 * (100 / problem.num_customers) ** 0.45  # measured on one slow core
        iterations = min(deadline.left * per_second, task.max_iterations or math.inf)
        history = round(
            min(max(iterations * task.history_share, LEAST_HISTORY_ITERATIONS), HISTORY_ITERATIONS)
        )
        penalty = NeighbourPenalties(max_penalty, iterations)
    params = pyvrp.SolveParams(
        ils=pyvrp.IteratedLocalSearchParams(callbacks=reporter, history_length=history),
        penalty=penalty,
        neighbourhood=NeighbourhoodParams(num_neighbours=NEIGHBOURS),
    )

    def stop(best_cost: int) -> bool:
        return deadline.passed or reporter.iterations == task.max_iterations

    if task.start is None and (quick := cut_tour(problem)):
        # For thousands of customers PyVRP needs seconds to its first routes.
        report(Found(quick.pairs()))
    start = None if task.start is None else model.encode(task.start)
    pyvrp.solve(model.data, stop, task.seed, collect_stats=False, params=params, initial_solution=start)


class _Reporter(pyvrp.IteratedLocalSearchCallbacks):
    """Reports the best routes now and then, so that little is lost when the search has to be ended."""

    reported: float  # when, on the monotonic clock; what it starts from is reported at once

    def __init__(self, model: PyVRPModel | FleetModel, report: OnFound):
        self.model, self.report = model, report
        self.iterations = 0
        self.news: pyvrp.Solution | None = None

    def on_start(self, ils: pyvrp.IteratedLocalSearch) -> None:
        self.news = ils.initial_solution
        self.tell()

    def on_best(self, best: pyvrp.Solution) -> None:
        self.news = best

    def on_iteration(self, current: Any, candidate: Any, best: Any, cost_evaluator: Any) -> None:
        self.iterations += 1
        if self.news is not None and time.monotonic() >= self.reported + REPORT_SECONDS:
            self.tell()

    def on_end(self, result: pyvrp.Result) -> None:
        self.news = result.best
        self.tell()

    def tell(self) -> None:
        if self.news is not None and self.news.is_feasible():
            self.report(Found(self.model.decode(self.news), self.iterations))
        self.news, self.reported = None, time.monotonic()


# -- the problem in PyVRP's terms


@dataclass(frozen=True)
class PyVRPModel:
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


def build(problem: Problem) -> PyVRPModel:
    p, m = problem, problem.num_depots
    twins = _either_half(p)
    places = np.array([*range(p.num_locations), *twins])
    length, limit = scaling.lengths(p)
    duration, service, early, late = scaling.times(p)
    delivery, pickup, capacity = scaling.loads(p)

    first_half, second_half = p.deliveries[places] > 0, p.pickups[places] > 0
    first_half[twins], second_half[p.num_locations :] = True, True
    if twins:
        length, duration = length[np.ix_(places, places)], duration[np.ix_(places, places)]
    if p.backhaul is Backhaul.LINEHAULS_FIRST:
        length[np.ix_(second_half, first_half)] = FORBIDDEN_LENGTH

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
    return PyVRPModel(p, data, places[m:].tolist())


def _either_half(p: Problem) -> list[int]:
    """Customers with no demand, where linehauls come first: they may be visited in either half of a route.
    Each becomes two clients, one for each half, of which one is visited; so forbidden arcs suffice."""
    if p.backhaul is not Backhaul.LINEHAULS_FIRST or not (p.delivery.any() and p.pickup.any()):
        return []
    return [c for c in p.customers if p.deliveries[c] == 0 == p.pickups[c]]
