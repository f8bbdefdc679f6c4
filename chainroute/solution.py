"""Solution: routes with their depot, and the facts of each route on the problem's own numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from chainroute.errors import ChainRouteError, Fault, fail, printable
from chainroute.measure import SLACK
from chainroute.numerals import told
from chainroute.problem import Problem

Routes = list[tuple[int, list[int]]]  # (depot, visits), as locations of the problem: what processes exchange


@dataclass(frozen=True)
class Route:
    """Visits in order, as location numbers; the depot is left at the start and, unless open, returned to."""

    depot: int
    visits: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.visits)


@dataclass(frozen=True)
class Stop:
    """What happens at one visit."""

    location: int
    arrival: float
    waiting: float  # until the window opens
    start: float  # of service
    departure: float
    load: float  # on board when leaving
    distance: float  # driven since the depot


@dataclass(frozen=True)
class RouteFacts:
    length: float
    initial_load: float  # all deliveries of the route
    max_load: float
    stops: tuple[Stop, ...]
    start: float  # leaving the depot when it opens
    end: float  # back at the depot; for an open route, leaving the last customer

    @property
    def waiting(self) -> float:
        return sum(stop.waiting for stop in self.stops)


@dataclass(frozen=True, eq=False)
class Solution:
    problem: Problem
    routes: tuple[Route, ...]
    stated_cost: float | None = None  # what the file that they come from says; `cost` is what they cost

    def __post_init__(self) -> None:
        p = self.problem
        faults = []
        for r, route in enumerate(self.routes, 1):
            if route.depot not in p.depots:
                faults.append(Fault("unknown-location", f"{route.depot} is not a depot.", f"route {r}"))
            faults += [
                Fault("unknown-location", f"{v} is not a customer.", f"route {r}")
                for v in route.visits
                if v not in p.customers
            ]
        if faults:
            raise ChainRouteError(faults)

    @classmethod
    def of(
        cls, problem: Problem, routes: Iterable[tuple[int, Iterable[int]]], stated_cost: float | None = None
    ) -> Solution:
        """From (depot, visits) pairs."""
        try:
            pairs = tuple(Route(int(depot), tuple(map(int, visits))) for depot, visits in routes)
        except (TypeError, ValueError):
            message = "must be pairs of a depot and its visits, such as [(0, [3, 1, 2])]."
            raise fail("wrong-type", message, "routes") from None
        return cls(problem, pairs, stated_cost)

    def pairs(self) -> Routes:
        """The routes that visit anyone, for `of` in another process."""
        return [(route.depot, list(route.visits)) for route in self.routes if route.visits]

    @cached_property
    def cost(self) -> float:
        """The total length, in double precision on the problem's own numbers."""
        return math.fsum(facts.length for facts in self.facts)

    @property
    def misstated(self) -> bool:
        """Whether the stated cost is not that of the routes, to the last digit that it has."""
        if self.stated_cost is None:
            return False
        digit = 10.0 ** min(0, int(Decimal(repr(self.stated_cost)).normalize().as_tuple().exponent))
        under = self.cost - self.stated_cost  # less than a digit where it was cut off, half of one if rounded
        slack = SLACK * abs(self.cost)
        return not (-digit / 2 - slack <= under < digit or abs(under) <= slack)

    @cached_property
    def facts(self) -> tuple[RouteFacts, ...]:
        return tuple(_facts(self.problem, route) for route in self.routes)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: locations by name, and the facts of each route."""
        names = self.problem.names
        return {
            "problem": self.problem.name,
            "variant": self.problem.variant.name,
            "cost": self.cost,
            "routes": [
                {
                    "depot": names[route.depot],
                    "customers": [names[v] for v in route.visits],
                    "length": f.length,
                    "start": f.start,
                    "end": f.end,
                    "waiting": f.waiting,
                    "initial_load": f.initial_load,
                    "max_load": f.max_load,
                    "stops": [
                        {
                            "customer": names[s.location],
                            "arrival": s.arrival,
                            "waiting": s.waiting,
                            "start": s.start,
                            "departure": s.departure,
                            "load": s.load,
                            "distance": s.distance,
                        }
                        for s in f.stops
                    ],
                }
                for route, f in zip(self.routes, self.facts, strict=True)
            ],
        }

    def __str__(self) -> str:
        p = self.problem
        routes = "1 route" if len(self.routes) == 1 else f"{len(self.routes)} routes"
        lines = [f"{p.name}: {p.variant}, cost {told(self.cost, 10)}, {routes}"]
        for r, (route, f) in enumerate(zip(self.routes, self.facts, strict=True), 1):
            stops = [p.names[route.depot], *(p.names[v] for v in route.visits)]
            stops += [] if p.open else stops[:1]
            facts = f"length {told(f.length)}, load {told(f.max_load)}"
            if p.time_windows is not None:
                facts += f", ends {told(f.end)}, waits {told(f.waiting)}"
            lines.append(f"  {r}. {' - '.join(stops)}  ({facts})")
        return "\n".join(map(printable, lines))


def _legs(p: Problem, path: Sequence[int]) -> tuple[list[float], list[float]]:
    """Lengths and durations from place to place. Where there is no road, they are 0: what cannot be driven is
    not counted, and the judge names it."""
    length, time = p.distance(path[:-1], path[1:]), p.duration(path[:-1], path[1:])
    there = np.isfinite(length)
    return np.where(there, length, 0.0).tolist(), np.where(there, time, 0.0).tolist()


def _facts(p: Problem, route: Route) -> RouteFacts:
    path = [route.depot, *route.visits, *([] if p.open else [route.depot])]
    lengths, times = _legs(p, path)
    initial = load = math.fsum(p.deliveries[v] for v in route.visits)
    start = time = float(p.windows[route.depot, 0])
    stops = []
    for v, travel, driven in zip(route.visits, times, accumulate(lengths), strict=False):
        arrival = time + travel
        begin = max(arrival, float(p.windows[v, 0]))
        time = begin + float(p.services[v])
        load += float(p.pickups[v] - p.deliveries[v])
        stops.append(Stop(v, arrival, begin - arrival, begin, time, load, driven))
    return RouteFacts(
        length=math.fsum(lengths),
        initial_load=initial,
        max_load=max([initial, *(s.load for s in stops)]),
        stops=tuple(stops),
        start=start,
        end=time if p.open or not times else time + times[-1],
    )
