"""The judge: is a solution feasible, and what does it cost?

Written from the rules alone, in double precision, sharing no code with the environment or any solver:

- every customer is visited exactly once, or not at all where it has a prize, which is then part of the cost;
- there is a road from each place to the next;
- the load, deliveries still on board plus pickups so far, never exceeds the vehicle's capacity;
- where linehauls come first, no delivery follows a pickup on the same trip;
- a vehicle leaves before its depot closes, service starts inside a window, and a closed route ends before the
  depot there closes;
- a route is no longer than the limit, the return leg counted unless routes are open;
- no depot sends out more vehicles of a type than it has;
- a vehicle starts at a depot of its type, ends within its shift, is out no longer than it may, has the skills
  that its customers need, and goes out again only as often, and from where, as it may.

The cost is what all routes are long, unless the problem says otherwise: then costs per distance, per time
from departure to the end, and for each vehicle used.

Whole numbers are compared exactly; where there are fractions, within a slack (docs/solving.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from chainroute.errors import printable
from chainroute.plan.solution import Parts, Route, Solution
from chainroute.plan.timetable import Course, Timetable
from chainroute.problem import Problem
from chainroute.problem.fleet import Vehicle
from chainroute.problem.variants import Backhaul
from chainroute.runtime.numerals import number_text, number_texts_apart


@dataclass(frozen=True)
class Violation:
    """One broken rule."""

    code: str
    message: str
    amount: float  # by how much: units of load, time or length, or a number of visits or vehicles
    route: int | None = None  # counted from 1
    location: str | None = None  # name of the customer or depot


@dataclass(frozen=True)
class Verdict:
    cost: float
    violations: tuple[Violation, ...]
    parts: Parts = field(default_factory=Parts)  # what makes up the cost

    @property
    def feasible(self) -> bool:
        return not self.violations

    @property
    def has_parts(self) -> bool:
        """Whether anything but distance is part of the cost."""
        return bool(self.parts.time or self.parts.fixed or self.parts.prizes)

    def as_dict(self) -> dict[str, Any]:
        return {
            "feasible": self.feasible,
            "cost": self.cost,
            **({"parts": asdict(self.parts)} if self.has_parts else {}),
            "violations": [asdict(v) for v in self.violations],
        }

    def __str__(self) -> str:
        head = f"{'feasible' if self.feasible else 'infeasible'}, cost {number_text(self.cost, 10)}"
        parts = [f"  cost = {self.parts}"] * self.has_parts
        return "\n".join([head, *parts, *(printable(f"  [{v.code}] {v.message}") for v in self.violations)])


def check(problem: Problem, solution: Solution) -> Verdict:
    """Judges the routes of `solution` as a plan for `problem`."""
    if solution.problem is not problem:  # then it may name locations that are unknown here
        solution = Solution(problem, solution.routes)
    violations, lengths, times, fixed = _driven(problem, solution.routes)
    prizes = _prizes(problem, solution.routes)
    parts = Parts(math.fsum(lengths), math.fsum(times), math.fsum(fixed), math.fsum(prizes))
    violations = [*_coverage(problem, solution.routes), *violations]
    return Verdict(math.fsum([*lengths, *times, *fixed, *prizes]), tuple(violations), parts)


def route_cost(problem: Problem, route: Route) -> float | None:
    """What a route costs by itself, whoever else there is; None if it breaks a rule."""
    violations, *costs = _driven(problem, (route,))
    return None if violations else math.fsum(chain(*costs))


def _driven(
    problem: Problem, routes: tuple[Route, ...]
) -> tuple[list[Violation], list[float], list[float], list[float]]:
    """What the routes break, each for itself, and their costs: of lengths, times and vehicles."""
    violations: list[Violation] = []
    lengths, times, fixed = [], [], []
    rides = _rides(problem, routes)
    ways = _ways(problem, rides)
    for ride in rides:
        vehicle, (legs, travel) = ride.vehicle, ways[ride.number]
        for i, leg in enumerate(legs):
            if leg == math.inf:  # what cannot be driven is not counted
                legs[i] = travel[i] = 0.0
                violations.append(_no_road(problem, ride.number, *ride.path[i : i + 2]))
        violations += _load(ride)
        violations += _order(ride)
        violations += _time(ride, travel)
        violations += _limit(ride, legs)
        violations += _suited(ride)
        lengths += [vehicle.cost_per_distance * leg for leg in legs]
        fixed.append(vehicle.fixed_cost)
        if vehicle.cost_per_time or vehicle.max_duration < math.inf:
            duration = _timetable(ride, travel).duration
            times.append(vehicle.cost_per_time * duration)
            violations += _duration(ride, duration)
    return violations, lengths, times, fixed


class _Ride(NamedTuple):
    """A route on trial."""

    problem: Problem
    vehicle: Vehicle
    route: Route
    number: int  # of the route, counted from 1
    path: list[int]  # all places, from the depot where it starts to where it ends

    @property
    def trips(self) -> list[list[int]]:
        """The customers of each trip."""
        trips: list[list[int]] = [[]]
        for v in self.route.visits:
            if v < self.problem.num_depots:
                trips.append([])
            else:
                trips[-1].append(v)
        return trips


def _rides(p: Problem, routes: tuple[Route, ...]) -> list[_Ride]:
    """Returns the routes that visit anyone."""
    rides = []
    for number, route in enumerate(routes, 1):
        if route.visits:
            vehicle = p.types[route.vehicle]
            end = vehicle.end_of(route.depot)
            path = [route.depot, *route.visits] + ([] if end is None else [end])
            rides.append(_Ride(p, vehicle, route, number, path))
    return rides


def _ways(p: Problem, rides: list[_Ride]) -> dict[int, tuple[list[float], list[float]]]:
    """Returns lengths and durations from place to place, by the number of the route.

    All vehicles of a type are asked about at once: route by route, thousands would take many times as long.
    """
    found = {}
    for number in {ride.route.vehicle for ride in rides}:
        own = [ride for ride in rides if ride.route.vehicle == number]
        lengths, times = p.ways(p.types[number], [place for ride in own for place in ride.path])
        at = 0
        for ride in own:
            end = at + len(ride.path) - 1  # the way after it would lead to the next route
            found[ride.number] = lengths[at:end], times[at:end]
            at = end + 1
    return found


def _beyond(value: float, bound: float, slack: float) -> float:
    """The amount by which the value is over the bound; 0 within the slack, a share of the bound."""
    allowed = bound + slack * abs(bound) if slack else bound
    return value - bound if value > allowed else 0.0


def _coverage(p: Problem, routes: tuple[Route, ...]) -> Iterator[Violation]:
    visits = Counter(v for route in routes for v in route.visits)
    for c in p.customers:
        if visits[c] == 0 and p.prizes[c] == math.inf:
            yield Violation("customer-missing", f"{p.names[c]} is not visited.", 1, None, p.names[c])
        elif visits[c] > 1:
            message = f"{p.names[c]} is visited {visits[c]} times."
            yield Violation("customer-repeated", message, visits[c] - 1, None, p.names[c])
    used = Counter((route.vehicle, route.depot) for route in routes if route.visits)
    for (number, depot), count in sorted(used.items()):
        vehicle = p.types[number]
        if count > vehicle.count:
            kind = f" of {vehicle.name}" if len(p.types) > 1 else ""
            message = f"{p.names[depot]} sends out {count} vehicles{kind} and has {vehicle.count:g}."
            yield Violation("fleet-exceeded", message, count - vehicle.count, None, p.names[depot])


def _prizes(p: Problem, routes: tuple[Route, ...]) -> list[float]:
    """Returns the prizes of the customers that are left out."""
    visited = {v for route in routes for v in route.visits}
    prizes = enumerate(p.prizes.tolist()) if len(p.prize) else ()
    return [prize for c, prize in prizes if prize < math.inf and c not in visited]


def _no_road(p: Problem, number: int, start: int, end: int) -> Violation:
    message = f"route {number} goes from {p.names[start]} to {p.names[end]}, where there is no road."
    return Violation("no-road", message, 1, number, p.names[end])


def _load(ride: _Ride) -> Iterator[Violation]:
    p, capacity = ride.problem, ride.vehicle.capacity
    for trip, begin in zip(ride.trips, _begins(ride), strict=True):
        deliveries, pickups = p.deliveries[trip].tolist(), p.pickups[trip].tolist()
        load = math.fsum(deliveries)
        worst, at = load, begin
        for v, delivery, pickup in zip(trip, deliveries, pickups, strict=True):
            load += pickup - delivery
            if load > worst:
                worst, at = load, v
        if over := _beyond(worst, capacity, p.load_slack):
            carried, most = number_texts_apart(worst, capacity)
            message = f"route {ride.number} carries {carried} when leaving {p.names[at]}, capacity {most}."
            yield Violation("capacity-exceeded", message, float(over), ride.number, p.names[at])


def _begins(ride: _Ride) -> list[int]:
    """The depot from which each trip starts."""
    return [ride.route.depot, *(v for v in ride.route.visits if v < ride.problem.num_depots)]


def _order(ride: _Ride) -> Iterator[Violation]:
    p = ride.problem
    if p.backhaul is not Backhaul.LINEHAULS_FIRST:
        return
    for trip in ride.trips:
        picked_up = False
        for v in trip:
            if picked_up and p.deliveries[v] > 0:
                message = f"route {ride.number} delivers to {p.names[v]} after a pickup."
                amount = float(p.deliveries[v])
                yield Violation("linehaul-after-backhaul", message, amount, ride.number, p.names[v])
            picked_up |= bool(p.pickups[v] > 0)


def _time(ride: _Ride, travel: list[float]) -> Iterator[Violation]:
    """Judges times from the earliest departure: who leaves later is nowhere sooner."""
    p, vehicle, path = ride.problem, ride.vehicle, ride.path
    if p.time_windows is None and vehicle.shift == (-math.inf, math.inf):
        return
    slack, service = p.time_slack, p.services[path].tolist()
    opens, closes = p.windows[path[0]].tolist()
    time = max(opens, vehicle.shift[0])
    if late := _beyond(time, closes, slack):
        home, words = p.names[path[0]], p.moments(time, closes)
        message = f"route {ride.number} leaves {home} at {words[0]}, which closes at {words[1]}."
        yield Violation("depot-closed", message, float(late), ride.number, home)
    for v, leg, stay in zip(path[1:], travel, service[1:], strict=True):
        arrival, windows = time + leg, p.windows_of(v)
        opening, closing = windows[0]
        if len(windows) > 1:  # the first that is still open, or the last
            opening, closing = next((w for w in windows if not _beyond(arrival, w[1], slack)), windows[-1])
        start = max(arrival, opening)
        if late := _beyond(start, closing, slack):
            yield _missed(ride, v, float(start), float(closing), float(late))
        time = start + stay
    if late := _beyond(time, vehicle.shift[1], p.time_slack):
        end, shift = p.moments(time, vehicle.shift[1])
        message = f"route {ride.number} ends at {end}, its shift at {shift}."
        yield Violation("shift-exceeded", message, float(late), ride.number)


def _missed(ride: _Ride, place: int, start: float, closing: float, late: float) -> Violation:
    p, name, number = ride.problem, ride.problem.names[place], ride.number
    when = "at {}, which closes at {}".format(*p.moments(start, closing))
    if place in p.depots:
        message = f"route {number} is back at {name} {when}."
        return Violation("depot-closed", message, late, number, name)
    message = f"route {number} reaches {name} {when}."
    return Violation("window-missed", message, late, number, name)


def _timetable(ride: _Ride, travel: list[float]) -> Timetable:
    p, places = ride.problem, ride.path[1:]
    opening, closing = p.windows[ride.path[0]].tolist()
    hours = (max(opening, ride.vehicle.shift[0]), closing)
    windows, service = [p.windows_of(v) for v in places], [float(p.services[v]) for v in places]
    return Course(hours, travel, windows, service, p.time_slack, ride.vehicle.shift[1]).best()


def _duration(ride: _Ride, duration: float) -> Iterator[Violation]:
    p, most = ride.problem, ride.vehicle.max_duration
    if over := _beyond(duration, most, p.time_slack):
        takes, at_most = (
            number_texts_apart(duration, most) if p.day is None else (p.span(duration), p.span(most))
        )
        message = f"route {ride.number} takes a time of {takes}, at most {at_most}."
        yield Violation("duration-exceeded", message, over, ride.number)


def _limit(ride: _Ride, legs: list[float]) -> Iterator[Violation]:
    p, limit = ride.problem, ride.vehicle.distance_limit
    if limit == math.inf:
        return
    service = [p.services[v] for v in ride.route.visits] if p.limit_counts_service else []
    length = math.fsum(legs + service)
    if over := _beyond(length, limit, p.length_slack):
        message = "route {} has length {}, the limit is {}.".format(
            ride.number, *number_texts_apart(length, limit)
        )
        yield Violation("limit-exceeded", message, over, ride.number)


def _suited(ride: _Ride) -> Iterator[Violation]:
    """Whether this vehicle may be used for this route."""
    p, vehicle, number = ride.problem, ride.vehicle, ride.number
    if ride.route.depot not in vehicle.depots:
        name = p.names[ride.route.depot]
        message = f"route {number} starts at {name}, where there is no {vehicle.name}."
        yield Violation("wrong-depot", message, 1, number, name)
    for v in ride.route.visits if p.skills else ():
        if v >= p.num_depots and (missing := set(p.skills_of(v)) - vehicle.skills):
            needs = f"{p.names[v]} needs {', '.join(sorted(missing))}"
            message = f"{needs}, which {vehicle.name} of route {number} has not."
            yield Violation("skill-missing", message, len(missing), number, p.names[v])
    reloads = _begins(ride)[1:]
    if len(reloads) >= vehicle.max_trips:
        message = f"route {number} goes out {len(reloads) + 1} times, at most {vehicle.max_trips}."
        yield Violation("trips-exceeded", message, len(reloads) + 1 - vehicle.max_trips, number)
    for depot in reloads:
        if vehicle.max_trips > 1 and depot not in vehicle.reloads_at(ride.route.depot):
            message = f"route {number} reloads at {p.names[depot]}, where {vehicle.name} may not."
            yield Violation("wrong-depot", message, 1, number, p.names[depot])
