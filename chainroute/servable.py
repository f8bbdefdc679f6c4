"""Who can be served at all: what the fields of a problem mean together.

In a sound problem every customer could be served by a route of its own; each fault of that kind names the
customer and the reason. A problem asks for this while it is constructed, so the functions here take what they
need of its fields, and nothing is imported from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chainroute.errors import Fault, Place
from chainroute.measure import FloatArray, at_most
from chainroute.numerals import told
from chainroute.validate import told_of_each
from chainroute.variants import Backhaul

Places = Callable[[int], Place]  # of a customer, counted from 0


@dataclass(frozen=True)
class Trips:
    """What it takes vehicles from each depot (row) to serve each customer (column) alone.

    The way back takes nothing where routes are open. Where there is no road, a way is infinite.
    """

    go_time: FloatArray
    back_time: FloatArray
    go_length: FloatArray  # with what else counts towards the limit
    back_length: FloatArray
    leaves: FloatArray  # (M, 1) when the vehicles may leave their depot
    returns: FloatArray  # (M, 1) when they must be back; infinite where routes are open
    windows: FloatArray  # (N, 2) of the customers
    service: FloatArray  # (N,)
    limit: float  # of the length; infinite where there is none
    time_slack: float
    length_slack: float

    @property
    def length(self) -> FloatArray:
        return self.go_length + self.back_length

    @property
    def arrival(self) -> FloatArray:
        return self.leaves + self.go_time

    def in_time(self) -> NDArray[np.bool_]:
        opening, closing = self.windows.T
        start = np.maximum(self.arrival, opening)
        home = start + self.service + self.back_time
        timely = at_most(start, closing, self.time_slack) & at_most(home, self.returns, self.time_slack)
        return np.asarray(timely & np.isfinite(home))

    def in_limit(self) -> NDArray[np.bool_]:
        return np.asarray(at_most(self.length, self.limit, self.length_slack) & np.isfinite(self.length))

    def possible(self) -> NDArray[np.bool_]:
        """Which customers can be served from some depot."""
        return np.asarray((self.in_time() & self.in_limit()).any(axis=0))


def unservable(trips: Trips, customer: Places) -> list[Fault]:
    """A fault for each customer that no vehicle can serve, not even alone."""
    reasons = {i: _reason(trips, i) for i in np.flatnonzero(~trips.possible()).tolist()}
    every = range(trips.go_time.shape[1])
    faults: list[Fault] = []
    for code in ("no-road", "limit-too-short", "window-unreachable"):
        lost = np.array([i in reasons and reasons[i][0] == code for i in every])
        faults += told_of_each("customers", lost, code, lambda i: (reasons[i][1], customer(i)))
    return faults


def _reason(trips: Trips, i: int) -> tuple[str, str]:
    if not np.isfinite(trips.length[:, i]).any():
        to, back = (np.isfinite(way[:, i]).any() for way in (trips.go_length, trips.back_length))
        if to and back:
            return "no-road", "no depot has both a road to it and one back, not even by way of others."
        ends = "back from it to a depot" if to else "to it from a depot"
        return "no-road", f"there is no road {ends}, not even by way of others."
    if not trips.in_limit()[:, i].any():
        need = told(trips.length[:, i].min())
        return "limit-too-short", f"the shortest trip takes {need}, the limit is {told(trips.limit)}."
    if trips.in_time()[:, i].any():
        return "window-unreachable", "no depot reaches it both inside the windows and within the limit."
    opening, closing = trips.windows[i]
    arrival = trips.arrival[:, i].min()
    if not at_most(arrival, closing, trips.time_slack):
        reached = f"is reached at {told(arrival)} at the earliest"
        return "window-unreachable", f"{reached}, but closes at {told(closing)}."
    when = f"after service in [{told(opening)}, {told(closing)}]"
    return "window-unreachable", f"{when} no vehicle is back before its depot closes."


def unloadable(
    delivery: FloatArray,
    pickup: FloatArray,
    backhaul: Backhaul,
    capacity: float,
    vehicles: int | None,
    slack: float,
    customer: Places,
) -> Iterator[Fault]:
    """A fault for what vehicles cannot carry, or not in this order."""
    both = (delivery > 0) & (pickup > 0) & (backhaul is Backhaul.LINEHAULS_FIRST)
    message = "has both a delivery and a pickup, where linehauls come first."
    yield from told_of_each("customers", both, "delivery-and-pickup", lambda i: (message, customer(i)))
    if backhaul is Backhaul.NONE and (pickup > 0).any():
        some = customer(int(np.argmax(pickup > 0)))
        yield Fault("backhaul-rule-missing", f"{some} has a pickup, but the rule is 'none'.", "backhaul")
    demand = np.maximum(delivery, pickup)

    def above(i: int) -> tuple[str, Place]:
        return f"has a demand of {told(demand[i])}; a vehicle holds {told(capacity)}.", customer(i)

    yield from told_of_each("customers", demand > capacity * (1 + slack), "demand-above-capacity", above)
    full = float(max(delivery.sum(), pickup.sum()) / capacity * (1 - slack))
    if vehicles is not None and full > vehicles:
        message = f"{vehicles} vehicles, but the demand fills {math.ceil(full)}."
        yield Fault("fleet-too-small", message, "fleet")


def shortest_paths(costs: FloatArray, num_depots: int) -> FloatArray:
    """Dijkstra over a dense matrix: from each depot to every customer, (M, N)."""
    paths = []
    for depot in range(num_depots):
        best = costs[depot].copy()
        best[depot] = 0.0
        todo = np.ones(len(costs), dtype=bool)
        for _ in range(len(costs)):
            at = np.argmin(np.where(todo, best, np.inf))
            todo[at] = False
            best = np.minimum(best, best[at] + costs[at])
        paths.append(best[num_depots:])
    return np.array(paths)
