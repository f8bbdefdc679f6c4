"""A problem as a routing model of OR-Tools: its vehicles and their loads, and routes in both numberings.

A dimension is a quantity that grows along a route. Deliveries and pickups are one each. Where backhauls are
mixed, a third is the load, which starts with all deliveries of the route on board. Where linehauls come
first, a third is the stage of the route: 0 for linehauls, 2 for backhauls, and 1 for a customer that is both,
of whom there is at most one between them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from chainroute.plan.solution import Routes
from chainroute.problem import Problem
from chainroute.problem.variants import Backhaul
from chainroute.search.solvers.scaling import IntArray


@dataclass(frozen=True)
class RoutingModel:
    problem: Problem
    manager: Any
    routing: Any
    homes: list[int]  # the depot of each vehicle
    kinds: list[int] = field(default_factory=list)  # its type, where there may be several

    def routes(self, following: Callable[[int], int]) -> Routes:
        return [
            (home, visits, *self.kinds[v : v + 1])
            for v, home in enumerate(self.homes)
            if (visits := list(self._visits(v, following)))
        ]

    def _visits(self, vehicle: int, following: Callable[[int], int]) -> Iterator[int]:
        at = following(self.routing.Start(vehicle))
        while not self.routing.IsEnd(at):
            yield self.manager.IndexToNode(at)
            at = following(at)

    def encode(self, routes: Routes) -> list[list[int]]:
        """For each vehicle, the visits of one of the routes from its depot for its type, or none."""
        waiting: defaultdict[tuple[int, int], list[list[int]]] = defaultdict(list)
        for depot, visits, *kind in routes:
            waiting[depot, kind[0] if kind else 0].append(visits)
        kinds = self.kinds or [0] * len(self.homes)
        lines = [waiting[vehicle] for vehicle in zip(self.homes, kinds, strict=True)]
        return [line.pop() if line else [] for line in lines]

    def add_loads(self, delivery: IntArray, pickup: IntArray, rooms: list[int]) -> None:
        """Adds the loads at all locations, within the room of each vehicle, in the order of the backhauls."""
        p, routing = self.problem, self.routing
        delivered = self._add("delivered", delivery, rooms)
        if p.backhaul is not Backhaul.NONE:
            self._add("picked up", pickup, rooms)
        if p.backhaul is Backhaul.MIXED:
            load = self._add("load", pickup - delivery, rooms, from_zero=False)
            for vehicle in range(len(rooms)):
                on_board = load.CumulVar(routing.Start(vehicle))
                routing.solver().Add(on_board == delivered.CumulVar(routing.End(vehicle)))
        if p.backhaul is Backhaul.LINEHAULS_FIRST:
            both = (p.deliveries > 0) & (p.pickups > 0)
            self._add("both", both.astype(np.int64), [1] * len(rooms))
            stage = self._add("stage", np.zeros_like(delivery), [2] * len(rooms), slack=2)
            for c in p.customers:
                if p.deliveries[c] > 0 or p.pickups[c] > 0:
                    at = 1 if both[c] else 2 * int(p.pickups[c] > 0)
                    stage.CumulVar(self.manager.NodeToIndex(c)).SetValue(at)

    def _add(
        self, name: str, amounts: IntArray, most: list[int], slack: int = 0, from_zero: bool = True
    ) -> Any:
        """A dimension that grows by so much at each location, and is at most so much on each vehicle."""
        nowhere = [0] * (self.manager.GetNumberOfNodes() - len(amounts))
        transit = self.routing.RegisterUnaryTransitVector([*amounts.tolist(), *nowhere])
        self.routing.AddDimensionWithVehicleCapacity(transit, slack, most, from_zero, name)
        return self.routing.GetDimensionOrDie(name)
