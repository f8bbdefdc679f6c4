"""Large problems by their parts: neighbouring routes of a plan are searched again and again, side by side.

A search slows down with every customer that it has in view, and its moves are local. So each core takes some
neighbouring routes of the plan that nobody else has in hand, searches them as a problem of their own for a
moment, and puts back what is better. The first time a part is only brought to where no single move helps,
so that all of a poor plan is soon a fair one. Which routes go together, and how many, changes every time, so
that no border lasts. Only matrices of parts are made for it. When another search has a better plan, parts of
that one are next.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from chainroute.options import SEEDS
from chainroute.plan.check import check
from chainroute.plan.solution import Route, Solution
from chainroute.problem import Problem
from chainroute.problem.fleet import VehicleType
from chainroute.runtime import worker
from chainroute.runtime.deadline import Deadline
from chainroute.search.library import Found, SearchTask
from chainroute.search.own import ruin
from chainroute.search.own.exact import VehicleKind
from chainroute.search.solvers import pyvrp

LEAST_CUSTOMERS = 1_000  # below, a search of the whole is better
LEAST_ANNEALED = 400  # customers; below, such a search is better than annealed parts, too
PART_SIZES = (100, 150, 200, 300)  # customers of a part, at most about: one of these, at random
PART_ROUTES = 8  # of a part, at least: with fewer, long routes have nobody to exchange customers with
MOST_CUSTOMERS = 600  # of a part with so many routes
CUSTOMER_SECONDS = (1 / 2_000, 1 / 300)  # that a part is searched for each of its customers, from and to
PASSES = 20  # over all customers, within these bounds
WAIT_SECONDS = 0.01  # seconds between looks at whether routes have become free
LEAST_GAIN = 1e-9  # relative: less is rounding
ANNEALED_SIZES = (300, 500, 700)  # customers of a part, where it is annealed
ANNEALED_CUSTOMER_SECONDS = (1 / 3_000, 1 / 100)  # to have one ready takes a twentieth of a second
HOT, COLD = 1.0, 0.03  # legs to a neighbour: the heat at first and at last
ANNEALED_SHARE = 0.7  # of the time; PyVRP, whose moves are others, has the rest
ANNEALED_ONLY_SECONDS = 1 / 150  # for each customer, of all cores: with less there is nothing for PyVRP

Locations = NDArray[np.intp]
Vehicles = dict[VehicleKind, float]  # how many of each kind; infinite for as many as needed


def suits(problem: Problem) -> bool:
    """Whether a problem is large, and all its customers are on routes, so that these divide it."""
    return (problem.num_customers >= LEAST_CUSTOMERS or anneals(problem)) and not problem.has_optional


def anneals(problem: Problem) -> bool:
    """Whether the parts of a problem are annealed at first."""
    return is_best_annealed(problem) and ruin.installed()


def is_best_annealed(problem: Problem) -> bool:
    """Whether they are better annealed, which takes numba."""
    return problem.num_customers >= LEAST_ANNEALED and ruin.suits(problem)


@dataclass(frozen=True)
class RouteGroup:
    """Some routes of a plan, as a plan for a problem of their own."""

    routes: tuple[Route, ...]  # of the whole
    customers: Locations  # of the whole, in the order of the part's own
    vehicles: Vehicles  # those of the routes and those to spare
    kinds: Sequence[VehicleKind]  # of the whole, that the part's types are
    start: Solution
    is_new: bool  # its customers have not been searched yet

    def whole(self, plan: Solution) -> list[Route]:
        """The routes of a plan for this part, as routes of the whole."""
        places = [*plan.problem.depots, *self.customers.tolist()]
        return [
            Route(route.depot, tuple(places[v] for v in route.visits), self.kinds[route.vehicle][0])
            for route in plan.routes
            if route.visits
        ]


class Sectors:
    """A plan whose parts several threads improve at the same time."""

    def __init__(
        self,
        plan: Solution,
        seed: int,
        cores: int,
        deadline: Deadline,
        is_rough: bool = True,
        best: Callable[[], Solution | None] = lambda: None,  # plan so far, whoever found it
        anneals: bool = False,  # by ruin and recreate at first; then a part may come back worse
    ):
        p = self.problem = plan.problem
        self.best = best
        self.held: set[Route] = set()  # in somebody's hands
        self.begin_with(plan)
        self.searched = np.full(p.num_locations, 0 if is_rough else 1)  # how often, by customer
        self.rng = np.random.default_rng(seed)
        self.lock = threading.Lock()
        self.deadline = deadline
        seconds = cores * deadline.left / p.num_customers
        self.pass_seconds = seconds / PASSES  # for each customer
        self.anneals = anneals
        self.cold = deadline.share(ANNEALED_SHARE) if seconds > ANNEALED_ONLY_SECONDS else deadline
        self.seconds = self.cold.left

    def begin_with(self, plan: Solution) -> None:
        """Takes all routes of a plan, while nobody has any in hand."""
        self.cost = plan.cost
        self.free = {route for route in plan.routes if route.visits}
        used = Counter(map(kind_of, self.free))
        types = enumerate(self.problem.types)
        self.vehicles = {  # that are in nobody's hands
            (number, depot): t.count - used[number, depot] for number, t in types for depot in t.depots
        }

    @property
    def plan(self) -> Solution:
        with self.lock:
            return Solution(self.problem, (*self.free, *self.held))

    def work(self, on_better: Callable[[], None], stop: threading.Event, kind: str = worker.SEARCH) -> None:
        """Improves parts on one core until the deadline."""
        while not self.deadline.passed and not stop.is_set():
            if (part := self.take()) is None:
                time.sleep(WAIT_SECONDS)
                continue
            found: Solution | None = None
            try:
                found = self.search(part, stop, kind)
            finally:
                self.give_back(part, found)
            if found is not None:
                on_better()

    def take(self) -> RouteGroup | None:
        """Neighbouring routes that are nobody's, around a customer who was searched least; None if there are
        none, or if they have to come back first, since there is a better plan to go on from."""
        with self.lock:
            annealing = self.is_annealing()
            best = None if annealing else self.best()
            if best is not None and best.cost < self.cost * (1 - LEAST_GAIN):
                if self.held:
                    return None
                self.begin_with(best)
                self.searched = np.maximum(self.searched, 1)  # by whoever found it
            routes = sorted(self.free, key=lambda route: route.visits)
            if not routes:
                return None
            at = np.concatenate([route.visits for route in routes])
            at = at[at >= self.problem.num_depots]
            least = self.searched[at].min()
            seed = self.rng.choice(at[self.searched[at] == least])
            size = int(self.rng.choice(ANNEALED_SIZES if annealing else PART_SIZES))
            chosen = [routes[i] for i in nearest(self.problem, routes, seed, size)]
            self.free -= set(chosen)
            self.held |= set(chosen)
            vehicles = self.vehicles
            self.vehicles = {kind: math.inf if count == math.inf else 0 for kind, count in vehicles.items()}
        return part_of(self.problem, chosen, vehicles, is_new=bool(least == 0))

    def is_annealing(self) -> bool:
        return self.anneals and (self.cold is self.deadline or not self.cold.passed)

    def search(self, part: RouteGroup, stop: threading.Event, kind: str) -> Solution | None:
        """A better plan for the part, if one is found; from annealing, the one that it ends with."""
        reports: list[Found] = []
        small, end, share = part.start.problem, self.deadline, pyvrp.SHORT_HISTORY_SHARE
        with self.lock:
            seed = int(self.rng.integers(SEEDS))
        if self.is_annealing():
            until = min(self.turn(part, ANNEALED_CUSTOMER_SECONDS), self.cold)
            heat = (self.heat(self.cold.left), self.heat(self.cold.left - until.left))
            task = SearchTask(small, until, seed, part.start.pairs(), heat=heat)
            ruin.search(task, reports.append, stop, kind, end)
            plan = Solution.of(small, reports[-1].routes) if reports else None
            return plan if plan is not None and check(small, plan).feasible else None
        if part.is_new and small.extras:  # only until no single move helps, however long that takes
            task = SearchTask(small, end, seed, part.start.pairs(), 1, share)
        elif part.is_new:  # PyVRP's first plan is better
            task = SearchTask(small, end, seed, None, 0, share)
        else:
            until = min(self.turn(part, CUSTOMER_SECONDS), end)
            task = SearchTask(small, until, seed, part.start.pairs(), None, share)
        pyvrp.search(task, reports.append, stop, kind, end)
        plans = (Solution.of(small, found.routes) for found in reversed(reports[-2:]))
        best = next((plan for plan in plans if check(plan.problem, plan).feasible), None)
        return best if best is not None and best.cost < part.start.cost * (1 - LEAST_GAIN) else None

    def turn(self, part: RouteGroup, customer_seconds: tuple[float, float]) -> Deadline:
        """Until when a part is searched that begins now."""
        return Deadline.after(float(np.clip(self.pass_seconds, *customer_seconds)) * len(part.customers))

    def heat(self, left: float) -> float:
        """How hot it is with so many seconds of annealing left."""
        return float(HOT * (COLD / HOT) ** (1 - left / self.seconds))

    def give_back(self, part: RouteGroup, found: Solution | None) -> None:
        """Puts the part into the plan again, in its new form if there is one."""
        routes = part.routes if found is None else tuple(part.whole(found))
        with self.lock:
            self.held -= set(part.routes)
            self.free |= set(routes)
            self.searched[part.customers] += 1
            self.cost += 0.0 if found is None else found.cost - part.start.cost
            used = Counter(map(kind_of, routes))
            for kind, count in part.vehicles.items():
                self.vehicles[kind] += count - used[kind]


def nearest(p: Problem, routes: list[Route], seed: int, customers: int) -> Locations:
    """The routes that pass nearest to a customer, up to so many customers, or to PART_ROUTES of them if these
    have not too many; at least one route."""
    sizes = np.array([len(route) for route in routes])
    far = p.distance(seed, np.concatenate([route.visits for route in routes]))
    order = np.argsort(np.minimum.reduceat(far, np.cumsum(sizes) - sizes), kind="stable")
    fitting, most = np.searchsorted(np.cumsum(sizes[order]), [customers, MOST_CUSTOMERS], side="right")
    return order[: max(1, fitting, min(most, PART_ROUTES))]


def kind_of(route: Route) -> VehicleKind:
    return route.vehicle, route.depot


def part_of(
    p: Problem, routes: list[Route], spare: Mapping[VehicleKind, float], is_new: bool = False
) -> RouteGroup:
    """The customers of some routes, with all depots and the vehicles to spare, as a problem of its own."""
    used = Counter(map(kind_of, routes))
    vehicles = {kind: count + used[kind] for kind, count in spare.items()}
    visits = np.sort(np.concatenate([route.visits for route in routes]))
    customers = visits[visits >= p.num_depots]
    kinds = [kind for kind, count in vehicles.items() if count]
    alike = not p.vehicle_types and len(set(vehicles.values())) == 1  # as many at each depot
    types = [] if alike else [_some(p, kind, vehicles[kind]) for kind in kinds]
    fleet = min(vehicles.values()) if alike else math.inf
    small = p.part(customers, fleet=None if fleet == math.inf else int(fleet), vehicle_types=types, names=())
    number = {place: i for i, place in enumerate([*p.depots, *customers.tolist()])}
    start = tuple(
        Route(r.depot, tuple(number[v] for v in r.visits), 0 if alike else kinds.index(kind_of(r)))
        for r in routes
    )
    return RouteGroup(tuple(routes), customers, vehicles, kinds, Solution(small, start), is_new)


def _some(p: Problem, kind: VehicleKind, count: float) -> VehicleType:
    """So many vehicles of a kind."""
    number, depot = kind
    given = p.vehicle_types[number] if p.vehicle_types else VehicleType()
    return replace(
        given,
        name="",
        count=None if count == math.inf else int(count),
        depot=depot,
    )
