"""A problem of the 48 variants that stands for one beyond them, so that the network can take part.

Vehicle types that differ in name, number and depot alone are vehicles that are alike; a price of distance
alone changes no plan; and where a search has decided whom to leave out, the others are all to be served.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from chainroute.errors import ChainRouteError
from chainroute.plan.solution import Route, Solution
from chainroute.problem import Problem
from chainroute.problem.fleet import SHARED
from chainroute.problem.problem import OF_CUSTOMERS

TOO_FEW = {"fleet-too-small"}  # codes of a problem whose vehicles cannot serve all who remain
REDUCIBLE = {"mixed fleet", "optional", "money"}  # where vehicles are alike, and only distance costs


def is_reducible(problem: Problem) -> bool:
    """Whether a problem of the 48 variants can stand for this one, or is this one."""
    if not problem.extras:
        return True
    first = problem.types[0]
    alike = all(getattr(t, field) == getattr(first, field) for t in problem.types for field in SHARED)
    everywhere = {depot for t in problem.types for depot in t.depots} == set(problem.depots)
    free = first.fixed_cost == first.cost_per_time == 0 and first.cost_per_distance > 0
    return set(problem.extras) <= REDUCIBLE and alike and everywhere and free


def known_ahead(problem: Problem) -> Reduction | None:
    """What stands for the problem before any search; None where nothing does, or a search has to decide first
    whom to leave out."""
    return reduction(problem) if is_reducible(problem) and not problem.has_optional else None


@dataclass(frozen=True)
class Reduction:
    """The problem that stands for another one, and the way back from its plans."""

    original: Problem
    problem: Problem
    places: Sequence[int]  # the location of the original that each of its locations is

    def ready(self) -> None:
        """Is pickled here and now, once for all processes that it will be sent to."""
        given = self.original, self.problem, self.places
        vars(self)["message"] = pickle.dumps(given, pickle.HIGHEST_PROTOCOL)

    def __reduce__(self) -> tuple[Callable[..., Reduction], tuple[object, ...]]:
        if message := vars(self).get("message"):
            return _received, (message,)
        return Reduction, (self.original, self.problem, self.places)

    def plan(self, solution: Solution) -> Solution | None:
        """A plan for the original; None where it has too few vehicles for that."""
        if self.problem is self.original:
            return solution
        p, used, routes = self.original, Counter[tuple[int, int]](), []
        for route in solution.routes:
            depot = self.places[route.depot]
            kinds = (k for k, t in enumerate(p.types) if depot in t.depots and used[k, depot] < t.count)
            if (kind := next(kinds, None)) is None:
                return None
            used[kind, depot] += 1
            routes.append(Route(depot, tuple(self.places[v] for v in route.visits), kind))
        return Solution(p, tuple(routes))


def _received(message: bytes) -> Reduction:
    return Reduction(*pickle.loads(message))


def reduction(problem: Problem, left_out: Collection[int] = ()) -> Reduction | None:
    """What stands for a reducible problem if those customers are left out, and all who cannot be served; None
    if nobody remains, or if the vehicles are too few for those who do."""
    p, first = problem, problem.types[0]
    if not p.extras:  # then nobody may be left out
        return Reduction(p, p, range(p.num_locations))
    unservable = np.flatnonzero(~p.reach.possible) + p.num_depots if p.has_optional else ()
    gone = {*left_out, *unservable}
    places = tuple(place for place in range(p.num_locations) if place not in gone)
    if len(places) == p.num_depots:
        return None
    counts = {sum(t.count for t in p.types if depot in t.depots) for depot in p.depots}
    most = counts.pop() if len(counts) == 1 else np.inf  # unequal numbers are for `plan` to count
    try:
        plain = p.part(
            places[p.num_depots :],
            vehicle_types=(),
            capacity=first.capacity,
            open=first.open,
            distance_limit=None if np.isinf(first.distance_limit) else first.distance_limit,
            cost_per_distance=1.0,
            fleet=None if np.isinf(most) else int(most),
            **{a.name: () for a in OF_CUSTOMERS if a.beyond in REDUCIBLE},
        )
    except ChainRouteError as error:
        if {fault.code for fault in error.faults} <= TOO_FEW:
            return None
        raise
    return Reduction(p, plain, places)
