"""Solution: routes with their depot, and the facts of each route on the problem's own numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import cached_property
from itertools import accumulate, islice
from typing import Any

from chainroute.errors import ChainRouteError, Fault, fail, printable
from chainroute.plan.timetable import ROUNDING_ERROR, Course
from chainroute.problem import Problem
from chainroute.problem.fleet import Vehicle
from chainroute.problem.measure import SLACK
from chainroute.runtime.numerals import number_text

# What processes exchange: (depot, visits), as locations of the problem, and the type where there are several.
Routes = list[Any]


@dataclass(frozen=True)
class Route:
    """Visits in order, as location numbers; the depot is left at the start and, unless open, returned to.

    Where vehicles may go out several times, a depot among the visits is where this one reloads.
    """

    depot: int
    visits: tuple[int, ...]
    vehicle: int = 0  # its type, one of the problem's `types`

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
    start: float  # leaving the depot, as late as saves waiting
    end: float  # back at the depot; for an open route, leaving the last customer
    trips: int = 1  # that serve somebody

    @property
    def waiting(self) -> float:
        return sum(stop.waiting for stop in self.stops)

    @property
    def duration(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class Parts:
    """What a plan costs, part by part."""

    distance: float = 0.0
    time: float = 0.0
    fixed: float = 0.0
    prizes: float = 0.0  # of customers that are left out

    @property
    def total(self) -> float:
        return math.fsum((self.distance, self.time, self.fixed, self.prizes))

    def __str__(self) -> str:
        return " + ".join(f"{name} {number_text(value, 10)}" for name, value in asdict(self).items() if value)


@dataclass(frozen=True, eq=False)
class Solution:
    problem: Problem
    routes: tuple[Route, ...]
    stated_cost: float | None = None  # what the file that they come from says; `cost` is what they cost

    def __post_init__(self) -> None:
        p = self.problem
        reloads = any(vehicle.max_trips > 1 for vehicle in p.types)
        visited = range(p.num_locations) if reloads else p.customers
        faults = []
        for r, route in enumerate(self.routes, 1):
            if route.depot not in p.depots:
                faults.append(Fault("unknown-location", f"{route.depot} is not a depot.", f"route {r}"))
            if not 0 <= route.vehicle < len(p.types):
                message = f"there is no vehicle type {route.vehicle}."
                faults.append(Fault("unknown-vehicle", message, f"route {r}"))
            faults += [
                Fault("unknown-location", f"{v} is not a customer.", f"route {r}")
                for v in route.visits
                if v not in visited
            ]
        if faults:
            raise ChainRouteError(faults)

    @classmethod
    def of(
        cls, problem: Problem, routes: Iterable[Sequence[Any]], stated_cost: float | None = None
    ) -> Solution:
        """A solution made of pairs (depot, visits), or triples with the number of the vehicle type."""
        try:
            found = tuple(
                Route(int(depot), tuple(map(int, visits)), *map(int, vehicle))
                for depot, visits, *vehicle in routes
            )
        except (TypeError, ValueError):
            message = "must be pairs of a depot and its visits, such as [(0, [3, 1, 2])]."
            raise fail("wrong-type", message, "routes") from None
        return cls(problem, found, stated_cost)

    def path(self, route: Route) -> list[int]:
        """All places of a route, from where it starts to where it ends."""
        vehicle = self.problem.types[route.vehicle]
        return _path(vehicle, route)[vehicle.open_start :]

    @property
    def cost(self) -> float:
        """The total length, as a rule, in double precision on the problem's own numbers; see `parts`."""
        return self.parts.total

    def pairs(self) -> Routes:
        """The routes that visit anyone, for `of` in another process."""
        several = len(self.problem.types) > 1
        return [(r.depot, list(r.visits), *[r.vehicle] * several) for r in self.routes if r.visits]

    @cached_property
    def parts(self) -> Parts:
        """What makes up the cost."""
        p = self.problem
        used = [(p.types[route.vehicle], r) for r, route in enumerate(self.routes) if route.visits]
        lengths = self._lengths([self.routes[r] for _, r in used])
        timed = any(vehicle.cost_per_time for vehicle, _ in used)  # else no timetable is needed
        return Parts(
            math.fsum(v.cost_per_distance * length for (v, _), length in zip(used, lengths, strict=True)),
            math.fsum(v.cost_per_time * self.facts[r].duration for v, r in used) if timed else 0.0,
            math.fsum(vehicle.fixed_cost for vehicle, _ in used),
            math.fsum(p.prizes[c] for c in self.left_out),
        )

    def _lengths(self, routes: Sequence[Route]) -> list[float]:
        """The length of each route; all vehicles of a type are asked about at once, which is faster."""
        legs: dict[int, Iterator[float]] = {}
        paths = [_path(self.problem.types[route.vehicle], route) for route in routes]
        for number in {route.vehicle for route in routes}:
            own = (path for route, path in zip(routes, paths, strict=True) if route.vehicle == number)
            places = [place for path in own for place in path]
            legs[number] = iter(_legs(self.problem, self.problem.types[number], places)[0] + [0.0])
        found = []
        for route, path in zip(routes, paths, strict=True):
            *own_legs, _ = islice(legs[route.vehicle], len(path))  # the last leads to the next route
            found.append(math.fsum(own_legs))
        return found

    @property
    def left_out(self) -> tuple[int, ...]:
        """Customers that need not be served and are not."""
        p = self.problem
        if not p.has_optional:
            return ()
        visited = {v for route in self.routes for v in route.visits}
        return tuple(c for c in p.customers if p.prizes[c] < math.inf and c not in visited)

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
        """The solution as JSON has it: locations by name, and the facts of each route."""
        p = self.problem
        beyond = {"parts": asdict(self.parts), "left_out": [p.names[c] for c in self.left_out]}
        return {
            "problem": p.name,
            "variant": p.kind,
            "cost": self.cost,
            **(beyond if p.extras else {}),
            "routes": [self._route(route, f) for route, f in zip(self.routes, self.facts, strict=True)],
        }

    def _route(self, route: Route, f: RouteFacts) -> dict[str, Any]:
        names, vehicle = self.problem.names, self.problem.types[route.vehicle]
        end = vehicle.end_of(route.depot)
        beyond = {
            "vehicle": vehicle.name,
            "end_depot": None if end is None else names[end],
            "duration": f.duration,
        }
        return {
            "depot": names[route.depot],
            **(beyond if self.problem.extras else {}),
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

    def __str__(self) -> str:
        p = self.problem
        routes = "1 route" if len(self.routes) == 1 else f"{len(self.routes)} routes"
        lines = [f"{p.name}: {p.kind}, cost {number_text(self.cost, 10)}, {routes}"]
        for r, (route, f) in enumerate(zip(self.routes, self.facts, strict=True), 1):
            vehicle = p.types[route.vehicle]
            path = self.path(route)
            facts = f"length {number_text(f.length)}, load {number_text(f.max_load)}"
            if p.time_windows is not None:
                facts += f", ends {p.moment(f.end)}, waits {p.span(f.waiting)}"
            by = f"{vehicle.name}: " if len(p.types) > 1 else ""
            lines.append(f"  {r}. {by}{' - '.join(p.names[v] for v in path)}  ({facts})")
        if p.extras:
            lines.append(f"  cost = {self.parts}")
        return "\n".join(map(printable, lines))


def _path(vehicle: Vehicle, route: Route) -> list[int]:
    """All places of a route, in order."""
    end = vehicle.end_of(route.depot)
    return [route.depot, *route.visits, *([] if end is None else [end])]


def _legs(p: Problem, vehicle: Vehicle, path: Sequence[int]) -> tuple[list[float], list[float]]:
    """Lengths and durations from place to place. Where there is no road, they are 0: what cannot be driven is
    not counted, and the judge names it."""
    lengths, times = p.ways(vehicle, path)
    lengths = [0.0 if length == math.inf else length for length in lengths]
    return lengths, [0.0 if time == math.inf else time for time in times]


def _waiting(arrival: float, start: float) -> float:
    """How long a vehicle waits at a stop; what rounding leaves where it left as late as it could is none."""
    return 0.0 if math.isclose(arrival, start, rel_tol=ROUNDING_ERROR) else start - arrival


def _facts(p: Problem, route: Route) -> RouteFacts:
    vehicle = p.types[route.vehicle]
    path = _path(vehicle, route)
    lengths, times = _legs(p, vehicle, path)
    table = course(p, vehicle, path, times).best()
    trips = _trips(p, route.visits)
    initial, loads = _loads(p, trips)
    stops = tuple(
        Stop(v, arrival, _waiting(arrival, start), start, start + float(p.services[v]), load, driven)
        for v, arrival, start, load, driven in zip(
            route.visits, table.arrivals, table.starts, loads, accumulate(lengths), strict=False
        )
    )
    return RouteFacts(
        length=math.fsum(lengths),
        initial_load=initial[0],
        max_load=max([*initial, *(stop.load for stop in stops)]),
        stops=stops,
        start=table.departure,
        end=table.end,
        trips=len(trips),
    )


def course(p: Problem, vehicle: Vehicle, path: Sequence[int], times: Sequence[float]) -> Course:
    """What the timetable of a vehicle on a path, which begins at its depot, follows from."""
    opening, closing = p.windows[path[0]].tolist()
    return Course(
        hours=(max(opening, vehicle.shift[0]), closing),
        travel=times,
        windows=[p.windows_of(v) for v in path[1:]],
        service=[float(p.services[v]) for v in path[1:]],
        slack=p.time_slack,
        shift_end=vehicle.shift[1],
    )


def _trips(p: Problem, visits: Sequence[int]) -> list[list[int]]:
    """Visits between reloads; each trip but the last ends with the depot."""
    trips: list[list[int]] = [[]]
    for v in visits:
        trips[-1].append(v)
        if v < p.num_depots:
            trips.append([])
    return trips


def _loads(p: Problem, trips: Sequence[Sequence[int]]) -> tuple[list[float], list[float]]:
    """What is on board when each trip begins, and when each of all visits is left."""
    initial = [math.fsum(p.deliveries[v] for v in trip) for trip in trips]
    loads = []
    for number, trip in enumerate(trips):
        load = initial[number]
        for v in trip:
            load = load + float(p.pickups[v] - p.deliveries[v]) if v >= p.num_depots else initial[number + 1]
            loads.append(load)
    return initial, loads
