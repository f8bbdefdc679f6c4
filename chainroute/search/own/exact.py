"""A handful of customers: every plan is tried, so that nothing is left to search for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import chain, combinations, islice, permutations, product

from chainroute.plan.check import route_cost
from chainroute.plan.solution import Route, Solution
from chainroute.problem import Problem

MAX_TRIED_CUSTOMERS = 4
MAX_TRIED_KINDS = 4  # of vehicles: types, each at each of its depots
MAX_TRIED_TOURS = 5_000  # of all vehicles, with their reloads
ALL_TRIED = "every plan was tried, and each breaks a rule."

Tour = tuple[int, ...]
VehicleKind = tuple[int, int]  # a type of vehicle, and the depot where it starts


def is_tiny(problem: Problem) -> bool:
    if problem.num_customers > MAX_TRIED_CUSTOMERS or len(vehicle_kinds(problem)) > MAX_TRIED_KINDS:
        return False
    tours = (1 for kind, customers in _pairs(problem) for _ in _tours(problem, kind, customers))
    return sum(islice(tours, MAX_TRIED_TOURS + 1)) <= MAX_TRIED_TOURS


def optimum(problem: Problem) -> Solution | None:
    """The cheapest plan of all, of those with the fewest routes; None if none keeps the rules."""
    best: dict[tuple[Tour, VehicleKind], tuple[float, Tour]] = {}  # the best order, by customers and vehicle
    for kind, customers in _pairs(problem):
        cost, _, visits = min(
            (cost_of(problem, kind, visits), len(visits), visits)
            for visits in _tours(problem, kind, customers)
        )
        best[customers, kind] = cost, visits
    costs = [
        (math.fsum([*(best[part, kind][0] for kind, part in plan), *prizes]), len(plan), plan)
        for plan, prizes in _plans(problem)
    ]
    cost, _, plan = min(costs, default=(math.inf, 0, []))
    if cost == math.inf:
        return None
    return Solution.of(problem, [(depot, best[part, (t, depot)][1], t) for (t, depot), part in plan])


def vehicle_kinds(problem: Problem) -> list[VehicleKind]:
    """Every type of vehicle at every depot where it starts."""
    return [(number, depot) for number, t in enumerate(problem.types) for depot in t.depots]


def _pairs(problem: Problem) -> Iterator[tuple[VehicleKind, Tour]]:
    """Every kind of vehicle with any of the customers."""
    sizes = range(1, problem.num_customers + 1)
    some = chain.from_iterable(combinations(problem.customers, size) for size in sizes)
    return product(vehicle_kinds(problem), some)


def _plans(problem: Problem) -> Iterator[tuple[list[tuple[VehicleKind, Tour]], list[float]]]:
    """Who goes with whom in which vehicle, as far as there are so many; and the prizes of those left out."""
    kinds = vehicle_kinds(problem)
    counts = {kind: problem.types[kind[0]].count for kind in kinds}
    optional = [c for c in problem.customers if problem.prizes[c] < math.inf]
    for left in chain.from_iterable(combinations(optional, size) for size in range(len(optional) + 1)):
        prizes = [float(problem.prizes[c]) for c in left]
        for parts in _partitions(tuple(c for c in problem.customers if c not in left)):
            for chosen in product(kinds, repeat=len(parts)):
                if all(used <= counts[kind] for kind, used in Counter(chosen).items()):
                    yield list(zip(chosen, parts, strict=True)), prizes


def _tours(problem: Problem, kind: VehicleKind, customers: Tour) -> Iterator[Tour]:
    """All orders, with all ways to reload; also before the first visit and after the last, or twice in a row,
    since a way by other depots may be shorter than the direct one."""
    number, depot = kind
    vehicle = problem.types[number]
    for order in permutations(customers):
        yield from _with_reloads(order, vehicle.reloads_at(depot), vehicle.max_trips - 1)


def _with_reloads(order: Tour, depots: Tour, most: int) -> Iterator[Tour]:
    """The visits with up to so many reloads, none twice between two visits."""
    for count in range(min(most, len(depots)) + 1):
        for stops in permutations(depots, count):
            if not order:
                yield stops
                continue
            for rest in _with_reloads(order[1:], depots, most - count):
                yield (*stops, order[0], *rest)


def cost_of(problem: Problem, kind: VehicleKind, visits: Tour) -> float:
    """The cost of one route; infinite where it breaks a rule."""
    number, depot = kind
    cost = route_cost(problem, Route(depot, visits, number))
    return math.inf if cost is None else cost


def _partitions(customers: Tour) -> Iterator[list[Tour]]:
    """All ways to share customers out among routes."""
    if not customers:
        yield []
        return
    first, *rest = customers
    for size in range(len(customers)):
        for others in combinations(rest, size):
            left = tuple(c for c in rest if c not in others)
            for more in _partitions(left):
                yield [(first, *others), *more]
