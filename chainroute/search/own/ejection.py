"""Few vehicles: who fits nowhere takes the place of somebody who is easier to place elsewhere.

Customers are inserted one after the other where they lengthen the plan least. One who fits nowhere is put
where only one other has to leave for it: one who was seldom hard to place so far (guided ejection, after
Nagata and Bräysy 2009). Now and then somebody moves to another place at random, so that the same few do not
put each other out for ever. It ends when everyone is served.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.problem.measure import FloatArray
from chainroute.search.own.construct import hardest_first
from chainroute.search.own.legs import Bounds, Legs, Locations

MATRIX_CUSTOMERS = 2_000  # up to which there is memory for all distances
MOVING_SHARE = 0.3  # of the times that somebody takes another's place: to move takes as long as to insert


def squeeze_in(p: Problem, over: Callable[[], bool], seed: int = 0) -> Solution | None:
    """A plan within the fleet; None if it is `over` before there is one. Who closes early is first, or who
    weighs most."""
    if p.num_customers <= MATRIX_CUSTOMERS:
        _ = p.distances  # made once, it is what all distances are looked up in
    plan, rng = _Vehicles(p), np.random.default_rng(seed)
    waiting = hardest_first(p)[::-1].tolist()
    hardness = np.zeros(p.num_locations)  # how often a customer fitted nowhere
    while waiting:
        if over():
            return None
        customer = waiting.pop()
        if plan.insert(customer):
            continue
        hardness[customer] += 1
        if plan.is_empty():  # there is a road to this one only by way of others: let them be first
            waiting.insert(0, customer)
            continue
        waiting += plan.force(customer, hardness, rng)
        if rng.random() < MOVING_SHARE:
            plan.move(rng)
    routes = ((int(path[0]), path[1:].tolist()) for path in plan.paths if len(path) > 1)
    return Solution.of(p, routes)


class _Vehicles:
    """All vehicles, each with its depot and visits, and their legs."""

    def __init__(self, p: Problem):
        assert p.fleet is not None  # or there is no need for any of this
        self.problem, self.bounds = p, Bounds(p)
        self.paths = [np.array([depot]) for depot in p.depots for _ in range(min(p.fleet, p.num_customers))]
        self.legs = _Joined([Legs.of(self.bounds, path) for path in self.paths])
        self.without = _Joined([Legs.empty(0)] * len(self.paths))  # legs if one visit is left out, each once
        self.changed = set[int]()  # routes whose legs without one are not up to date
        self.route = np.full(p.num_locations, -1)  # of each customer

    def is_empty(self) -> bool:
        return bool((self.route < 0).all())

    def put(self, route: int, path: Locations) -> None:
        self.paths[route] = path
        self.legs.replace(route, Legs.of(self.bounds, path))
        self.changed.add(route)
        self.route[path[1:]] = route

    def insert(self, customer: int, rng: np.random.Generator | None = None) -> bool:
        """Whether there is a place; the shortest detour's, or with `rng` any."""
        more = self.legs.all().lengthening(self.bounds, customer)
        fits = np.flatnonzero(np.isfinite(more))
        if not len(fits):
            return False
        row = fits[more[fits].argmin()] if rng is None else rng.choice(fits)
        route, place = _located(np.array([len(path) for path in self.paths]), row)
        self.put(int(route), np.insert(self.paths[route], place + 1, customer))
        return True

    def remove(self, customer: int) -> None:
        route = int(self.route[customer])
        self.put(route, self.paths[route][self.paths[route] != customer])
        self.route[customer] = -1

    def force(self, customer: int, hardness: FloatArray, rng: np.random.Generator) -> list[int]:
        """Puts the customer where one other has to leave, or all of a route; returns who has no place now."""
        for changed in self.changed:
            self.without.replace(changed, self.legs_without_one(changed))
        self.changed.clear()
        more = self.without.all().lengthening(self.bounds, customer)
        fits = np.flatnonzero(np.isfinite(more))
        if not len(fits):
            leaving = self.paths[rng.choice([r for r, path in enumerate(self.paths) if len(path) > 1])][1:]
            for one in leaving:
                self.remove(one)
            return [*leaving.tolist(), customer]
        sizes = np.array([len(path) - 1 for path in self.paths])  # who may leave, and then the legs
        route, leg = _located(sizes**2, fits)
        nth, place = np.divmod(leg, sizes[route])
        out = np.concatenate(self.paths)[np.cumsum(sizes + 1)[route] - sizes[route] + nth]
        best = np.lexsort((more[fits], hardness[out]))[0]
        path = self.paths[route[best]]
        self.route[out[best]] = -1
        self.put(int(route[best]), np.insert(path[path != out[best]], place[best] + 1, customer))
        return [int(out[best])]

    def legs_without_one(self, route: int) -> Legs:
        """The legs of a route with its first visit left out, then those with its second left out, and so
        on."""
        path = self.paths[route]
        if len(path) == 1:
            return Legs.empty(0)
        others = np.broadcast_to(path, (len(path), len(path)))[~np.eye(len(path), dtype=bool)]
        legs = Legs.of(self.bounds, others.reshape(len(path), len(path) - 1)[1:])
        legs.length[~legs.in_time(self.bounds)] = -np.inf  # so that nobody is inserted there
        return legs

    def move(self, rng: np.random.Generator) -> None:
        """Takes a customer to a place anywhere, perhaps its own."""
        if self.is_empty():
            return
        customer = int(rng.choice(np.flatnonzero(self.route >= 0)))
        route = int(self.route[customer])
        before = self.paths[route]
        self.remove(customer)
        if not (self.legs.parts[route].in_time(self.bounds) and self.insert(customer, rng)):
            self.put(route, before)


class _Joined:
    """The legs of several routes, one after another, of which few change at a time."""

    def __init__(self, parts: list[Legs]):
        self.parts = parts
        self.join()

    def join(self) -> None:
        self.legs, self.resized = Legs.joined(self.parts), False
        self.ends = np.cumsum([part.start.size for part in self.parts])

    def replace(self, number: int, part: Legs) -> None:
        size = part.start.size
        self.resized |= size != self.parts[number].start.size  # then they are to be joined again
        self.parts[number] = part
        if not self.resized:
            self.legs.put(slice(self.ends[number] - size, self.ends[number]), part)

    def all(self) -> Legs:
        if self.resized:
            self.join()
        return self.legs


def _located(sizes: Locations, row: Locations) -> tuple[Locations, Locations]:
    """Returns the part in which a row of them all is, by how many rows each has; and its number there."""
    ends = np.cumsum(sizes)
    part = np.searchsorted(ends, row, side="right")
    return part, row - (ends - sizes)[part]
