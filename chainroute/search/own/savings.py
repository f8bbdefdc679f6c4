"""A plan by savings: at first each customer has a route of its own, and routes are joined end to beginning,
those first for which that saves most (Clarke and Wright, 1964).

Where there are time windows, a vehicle that would have to wait between two customers saves less. Loads, times
and lengths of two routes say at once what they are of both in a row, so that a plan of ten thousand customers
takes a second or two. It is 1 to 5 % longer than a minute's search makes it, and a third where windows allow
long routes (docs/results.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.problem.measure import FloatArray, planar
from chainroute.search.own.legs import Bounds, Locations

NEAREST = 100  # customers to which the route of each may go on
NEAREST_WAITING = 0.5  # what waiting counts there, against a way
STRIP_CUSTOMERS = 1_500  # beside each other on the map, among whom these are looked for
BLOCK_CUSTOMERS = 250  # whose nearest are looked for together
JOINED_TOGETHER = 50_000  # pairs that are Python's numbers at a time, which need much memory

# What a way between two customers, and the waiting after it, count against the ways to the depot.
# With windows the better of two plans is taken: the first weights suit most of Homberger's problems,
# the others long days (docs/results.md).
WITHOUT_WINDOWS = ((1.0, 0.0),)
WITH_WINDOWS = ((1.0, 0.1), (0.8, 0.5))


def by_savings(problem: Problem, over: Callable[[], bool] = lambda: False) -> Solution | None:
    """The plan by savings, with as many vehicles as it takes, each from the depot that serves its customers
    best when alone. None beyond the 48 variants, and once it is `over`."""
    if problem.extras:
        return None
    alone = Alone.of(problem)
    plans, pairs = [], _Pairs.near(problem, alone, over)
    for way, waiting in WITH_WINDOWS if problem.time_windows is not None else WITHOUT_WINDOWS:
        routes, order = _Routes(problem, alone), pairs.best_first(way, waiting)
        for begin in range(0, len(order) + 1, JOINED_TOGETHER):
            if over():
                return None
            routes.join(pairs.some(order[begin : begin + JOINED_TOGETHER]))
        plans.append(Solution.of(problem, routes.visits()))
    return min(plans, key=lambda plan: plan.cost)


@dataclass(frozen=True)
class Alone:
    """Routes of a single customer, by location: the shortest that is in time and within the limit."""

    depot: Locations
    out: FloatArray
    home: FloatArray
    earliest: FloatArray  # when the service may begin, and must
    latest: FloatArray

    @staticmethod
    def of(p: Problem) -> Alone:
        bounds, everywhere, depots = Bounds(p), np.arange(p.num_locations), np.arange(p.num_depots)[:, None]
        out, there = p.distance(depots, everywhere), p.duration(depots, everywhere)
        home = np.zeros_like(out) if p.open else p.distance(everywhere, depots)
        earliest = np.maximum(p.windows[:, 0], p.windows[depots, 0] + there)
        latest = np.broadcast_to(bounds.closing, out.shape)
        if not p.open:
            latest = np.minimum(latest, bounds.closing[depots] - p.services - p.duration(everywhere, depots))
        length = out + home + (p.services if p.limit_counts_service else 0.0)
        allowed = (earliest <= latest) & (length <= bounds.limit)
        depot = np.where(allowed, out + home, np.inf).argmin(axis=0)
        chosen = (depot, everywhere)
        return Alone(depot, out[chosen], home[chosen], earliest[chosen], latest[chosen])


@dataclass(frozen=True)
class _Pairs:
    """Customers who may follow each other, and what is gained if they do."""

    first: Locations
    second: Locations
    way: FloatArray
    ends: FloatArray  # ways to the depot and from it that are saved
    waiting: FloatArray  # before the second can be served, at the least

    @staticmethod
    def near(p: Problem, alone: Alone, over: Callable[[], bool]) -> _Pairs:
        """Each customer with those nearest to it, if they have the same depot; fewer once it is `over`."""
        found = [_nearest(p, alone, *block) for block in _blocks(p) if not over()]
        pairs = np.concatenate([np.zeros((2, 0), np.intp), *found], axis=1)
        first, second = pairs[:, alone.depot[pairs[0]] == alone.depot[pairs[1]]]
        waiting = waiting_between(p, alone, first, second)
        ends = alone.home[first] + alone.out[second]
        return _Pairs(first, second, p.distance(first, second), ends, waiting)

    def some(self, which: Locations) -> _Pairs:
        """The pairs of these numbers."""
        return _Pairs(*(getattr(self, field.name)[which] for field in fields(self)))

    def best_first(self, way: float, waiting: float) -> Locations:
        """The numbers of the pairs that save anything by these weights, the most first."""
        with np.errstate(invalid="ignore"):  # where there is no road
            saving = self.ends - way * self.way - waiting * self.waiting
        saves = np.flatnonzero(np.isfinite(saving) & (saving > 0))
        return saves[np.argsort(-saving[saves], kind="stable")]


def _blocks(p: Problem) -> list[tuple[Locations, Locations]]:
    """All customers in blocks, each with those among whom its nearest are looked for."""
    customers = np.arange(p.num_depots, p.num_locations)
    strip = p.num_customers
    if p.coords is not None and p.distance_matrix is None:
        customers = customers[np.argsort(planar(p.metric, p.coords[customers])[:, 0], kind="stable")]
        strip = min(strip, STRIP_CUSTOMERS)
    blocks = []
    for begin in range(0, p.num_customers, BLOCK_CUSTOMERS):
        left = min(max(begin + (BLOCK_CUSTOMERS - strip) // 2, 0), p.num_customers - strip)
        blocks.append((customers[begin : begin + BLOCK_CUSTOMERS], customers[left : left + strip]))
    return blocks


def _nearest(p: Problem, alone: Alone, block: Locations, strip: Locations) -> Locations:
    """Each customer of the block with the nearest of the strip, in way and waiting, (2, pairs)."""
    rows = block[:, None]
    far = p.distance(rows, strip) + NEAREST_WAITING * waiting_between(p, alone, rows, strip)
    far[rows == strip] = np.inf
    count = min(NEAREST, len(strip) - 1)
    nearest = strip[np.argpartition(far, max(0, count - 1), axis=1)[:, :count]]
    return np.stack([np.repeat(block, count), nearest.ravel()])


def waiting_between(p: Problem, alone: Alone, first: Locations, second: Locations) -> FloatArray:
    """How long a vehicle waits at the least between two customers; infinite where it is too late."""
    if p.time_windows is None:
        return np.zeros(np.broadcast_shapes(first.shape, second.shape))
    between = p.services[first] + p.duration(first, second)
    waiting = np.maximum(alone.earliest[second] - alone.latest[first] - between, 0.0)
    in_time = (alone.earliest[first] + between <= alone.latest[second]) & (between < np.inf)
    return np.where(in_time, waiting, np.inf)


class _Routes:
    """Routes that become fewer, each known by the customer with whom it began, and what they are as a whole:
    times are those when the first customer is served."""

    def __init__(self, p: Problem, alone: Alone):
        self.problem, self.alone, bounds = p, alone, Bounds(p)
        self.room, self.limit, self.ordered = bounds.room, bounds.limit, bounds.ordered
        self.in_time, self.first_customer = p.time_windows is not None, p.num_depots
        # In either direction they are the same route.
        self.turns = not (self.in_time or p.pickup.any() or p.open or p.distance_matrix is not None)
        self.of = list(range(p.num_locations))
        self.customers = [[c] for c in self.of]
        self.delivery, self.pickup = p.deliveries.tolist(), p.pickups.tolist()
        self.peak = np.maximum(p.deliveries, p.pickups).tolist()
        self.length = (alone.out + alone.home + (p.services if p.limit_counts_service else 0.0)).tolist()
        self.earliest, self.latest = alone.earliest.tolist(), alone.latest.tolist()
        self.lasts = [0.0] * p.num_locations  # from the service of the first customer to that of the last

    def join(self, pairs: _Pairs) -> None:
        """Joins the routes of one pair after the other where the vehicle may go on."""
        p, of, customers = self.problem, self.of, self.customers
        times = p.services[pairs.first] + p.duration(pairs.first, pairs.second)
        columns = (pairs.first, pairs.second, pairs.way - pairs.ends, times)
        for first, second, more, time in zip(*(column.tolist() for column in columns), strict=True):
            a, b = of[first], of[second]
            if a == b:
                continue
            before, after = customers[a], customers[b]
            if self.turns:
                meet = first in (before[0], before[-1]) and second in (after[0], after[-1])
            else:
                meet = before[-1] == first and after[0] == second
            if not meet or not self._fit(a, b, more, time):
                continue
            if before[-1] != first:
                before.reverse()
            if after[0] != second:
                after.reverse()
            for customer in after:
                of[customer] = a
            before += after
            customers[b] = []

    def _fit(self, a: int, b: int, more: float, time: float) -> bool:
        """Whether one vehicle may serve route a and then b; a is then what both are."""
        on_board = max(self.peak[a] + self.delivery[b], self.pickup[a] + self.peak[b])
        length = self.length[a] + self.length[b] + more
        mixed = self.ordered and self.pickup[a] > 0 and self.delivery[b] > 0
        if on_board > self.room or length > self.limit or mixed:
            return False
        if self.in_time:
            later = self.lasts[a] + time
            if self.earliest[a] + later > self.latest[b]:
                return False
            waiting = max(self.earliest[b] - later - self.latest[a], 0.0)
            self.earliest[a] = max(self.earliest[b] - later, self.earliest[a]) - waiting
            self.latest[a] = min(self.latest[b] - later, self.latest[a])
            self.lasts[a] = later + waiting + self.lasts[b]
        self.peak[a], self.length[a] = on_board, length
        self.delivery[a] += self.delivery[b]
        self.pickup[a] += self.pickup[b]
        return True

    def visits(self) -> list[tuple[int, list[int]]]:
        """The depot of each route, and its customers."""
        depot = self.alone.depot
        return [(int(depot[route[0]]), route) for route in self.customers[self.first_customer :] if route]
