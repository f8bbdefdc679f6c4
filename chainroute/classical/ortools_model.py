"""A problem as a routing model of OR-Tools: its vehicles, and routes from one numbering to the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from chainroute.problem import Problem
from chainroute.solution import Routes


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
