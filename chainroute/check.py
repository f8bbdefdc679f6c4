"""The judge: is a solution feasible, and what does it cost?

Written from the rules alone, in double precision, sharing no code with the environment or any solver:

- every customer is visited exactly once, by a route that starts at a depot;
- there is a road from each place to the next;
- the load, deliveries still on board plus pickups so far, never exceeds the capacity;
- where linehauls come first, no delivery follows a pickup on the same route;
- service starts inside the window (waiting is free), and a closed route is back before its depot closes;
- a route is no longer than the limit, the return leg counted unless routes are open;
- no depot sends out more vehicles than it has.

Whole numbers are compared exactly; where there are fractions, within a slack (docs/solving.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from chainroute.errors import printable
from chainroute.numerals import told
from chainroute.problem import Problem
from chainroute.solution import Route, Solution
from chainroute.variants import Backhaul


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

    @property
    def feasible(self) -> bool:
        return not self.violations

    def as_dict(self) -> dict[str, Any]:
        return {
            "feasible": self.feasible,
            "cost": self.cost,
            "violations": [asdict(v) for v in self.violations],
        }

    def __str__(self) -> str:
        head = f"{'feasible' if self.feasible else 'infeasible'}, cost {told(self.cost, 10)}"
        return "\n".join([head, *(printable(f"  [{v.code}] {v.message}") for v in self.violations)])


def check(problem: Problem, solution: Solution) -> Verdict:
    """Judges the routes of `solution` as a plan for `problem`."""
    solution = Solution(problem, solution.routes)  # made for another problem, it may name unknown locations
    violations = list(_coverage(problem, solution.routes))
    lengths = []
    for number, route in enumerate(solution.routes, 1):
        if not route.visits:
            continue
        path = [route.depot, *route.visits] + ([] if problem.open else [route.depot])
        legs = problem.distance(path[:-1], path[1:]).tolist()
        travel = problem.duration(path[:-1], path[1:]).tolist()
        for i, leg in enumerate(legs):
            if leg == math.inf:  # what cannot be driven is not counted
                legs[i] = travel[i] = 0.0
                violations.append(_no_road(problem, number, *path[i : i + 2]))
        lengths.extend(legs)
        violations += _load(problem, route, number)
        violations += _order(problem, route, number)
        violations += _time(problem, route, number, travel)
        violations += _limit(problem, route, number, legs)
    return Verdict(math.fsum(lengths), tuple(violations))


def _beyond(value: float, bound: float, slack: float) -> float:
    """The amount by which the value is over the bound; 0 within the slack, a share of the bound."""
    allowed = bound + slack * abs(bound) if slack else bound
    return value - bound if value > allowed else 0.0


def _coverage(p: Problem, routes: tuple[Route, ...]) -> Iterator[Violation]:
    visits = Counter(v for route in routes for v in route.visits)
    for c in p.customers:
        if visits[c] == 0:
            yield Violation("customer-missing", f"{p.names[c]} is not visited.", 1, None, p.names[c])
        elif visits[c] > 1:
            message = f"{p.names[c]} is visited {visits[c]} times."
            yield Violation("customer-repeated", message, visits[c] - 1, None, p.names[c])
    if p.fleet is not None:
        used = Counter(route.depot for route in routes if route.visits)
        for d in p.depots:
            if used[d] > p.fleet:
                message = f"{p.names[d]} sends out {used[d]} vehicles and has {p.fleet}."
                yield Violation("fleet-exceeded", message, used[d] - p.fleet, None, p.names[d])


def _no_road(p: Problem, number: int, start: int, end: int) -> Violation:
    message = f"route {number} goes from {p.names[start]} to {p.names[end]}, where there is no road."
    return Violation("no-road", message, 1, number, p.names[end])


def _load(p: Problem, route: Route, number: int) -> Iterator[Violation]:
    load = math.fsum(p.deliveries[v] for v in route.visits)
    worst, at = load, route.depot
    for v in route.visits:
        load += p.pickups[v] - p.deliveries[v]
        if load > worst:
            worst, at = load, v
    if over := _beyond(worst, p.capacity, p.load_slack):
        carries = f"carries {told(worst)} when leaving {p.names[at]}"
        message = f"route {number} {carries}, capacity {told(p.capacity)}."
        yield Violation("capacity-exceeded", message, float(over), number, p.names[at])


def _order(p: Problem, route: Route, number: int) -> Iterator[Violation]:
    if p.backhaul is not Backhaul.LINEHAULS_FIRST:
        return
    picked_up = False
    for v in route.visits:
        if picked_up and p.deliveries[v] > 0:
            message = f"route {number} delivers to {p.names[v]} after a pickup."
            yield Violation("linehaul-after-backhaul", message, float(p.deliveries[v]), number, p.names[v])
        picked_up |= bool(p.pickups[v] > 0)


def _time(p: Problem, route: Route, number: int, travel: list[float]) -> Iterator[Violation]:
    if p.time_windows is None:
        return
    time = p.windows[route.depot, 0]
    for v, leg in zip(route.visits, travel, strict=False):
        opening, closing = p.windows[v]
        start = max(time + leg, opening)
        if late := _beyond(start, closing, p.time_slack):
            reaches = f"reaches {p.names[v]} at {told(start)}"
            message = f"route {number} {reaches}, which closes at {told(closing)}."
            yield Violation("window-missed", message, float(late), number, p.names[v])
        time = start + p.services[v]
    if not p.open:
        time, closing = time + travel[-1], p.windows[route.depot, 1]
        if late := _beyond(time, closing, p.time_slack):
            name = p.names[route.depot]
            message = f"route {number} is back at {name} at {told(time)}, which closes at {told(closing)}."
            yield Violation("depot-closed", message, float(late), number, name)


def _limit(p: Problem, route: Route, number: int, legs: list[float]) -> Iterator[Violation]:
    if p.distance_limit is None:
        return
    service = [p.services[v] for v in route.visits] if p.limit_counts_service else []
    length = math.fsum(legs + service)
    if over := _beyond(length, p.distance_limit, p.length_slack):
        message = f"route {number} has length {told(length)}, the limit is {told(p.distance_limit)}."
        yield Violation("limit-exceeded", message, over, number)
