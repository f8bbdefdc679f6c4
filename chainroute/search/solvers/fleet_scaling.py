"""A problem with vehicles that differ in whole numbers, for solvers that count in integers.

What passes is rounded up and what bounds it down, as in `scaling`: a plan that is feasible in integers is
feasible to the judge. Costs of every kind are counted in one unit of money.
"""

from __future__ import annotations

import math

import numpy as np

from chainroute.problem import Problem
from chainroute.problem.fleet import Vehicle
from chainroute.problem.measure import FloatArray
from chainroute.search.solvers import scaling
from chainroute.search.solvers.scaling import IntArray, scale, up

MAX_WAY_COST = 1e8  # of one way; where time costs, and is no whole number of it, a thousand times as much
FINER_FACTOR = 1e3
MAX_TIME, MAX_COARSE_TIME = 1e8, 1e7
MAX_TOTAL_COST = 1e17  # of everything that a plan can cost
RATE_TOLERANCE = 1e-6  # by what share a unit's cost may be off


def loads(p: Problem) -> tuple[IntArray, IntArray, list[int]]:
    """Deliveries and pickups, and each type's capacity, with half of the slack that the judge gives. Small
    loads have large numbers, too: the penalty on a unit too much is bounded, and must not be too little."""
    largest = max(vehicle.capacity for vehicle in p.types)
    amounts = [np.minimum(x, 2 * largest) for x in (p.deliveries, p.pickups)]  # who asks for more is left out
    total = float(sum(x.sum() for x in amounts))
    whole = not p.load_slack
    unit = scale(1e8, min(largest, total))
    if whole and max(largest, total) < 1e15:
        unit = max(unit, 1.0)
    carried = [np.rint(x * unit).astype(np.int64) if not whole else up(x, unit) for x in amounts]
    most = int(carried[0].sum() + carried[1].sum())  # no vehicle needs more room, however much it has
    rooms = [v.capacity * (1 + p.load_slack / 2) for v in p.types]
    whole_rooms = [most if room >= 2 * total else min(math.floor(room * unit), most) for room in rooms]
    return carried[0], carried[1], whole_rooms


class Clock:
    """Times as whole numbers, from 0 where the first window opens; what passes is rounded up, bounds down."""

    def __init__(self, p: Problem, largest: float = MAX_TIME):
        self.origin = float(min(p.windows[:, 0].min(), *(c[0][0] for c in p.customer_windows if c), math.inf))
        shifts = [moment for vehicle in p.types for moment in vehicle.shift]
        self.origin = min([self.origin, *(moment for moment in shifts[::2] if math.isfinite(moment))])
        moments = np.array([*p.windows.ravel(), *shifts])
        last = np.max(moments - self.origin, where=np.isfinite(moments), initial=0.0)
        ways = [p.durations if v.durations is None else v.durations for v in p.types]
        longest = max(float(np.max(way, where=np.isfinite(way), initial=0.0)) for way in ways)
        costs = any(vehicle.cost_per_time for vehicle in p.types)
        bounded = any(vehicle.has_shift for vehicle in p.types)
        self.runs = p.time_windows is not None or costs or bounded
        most = max(last, longest, float(p.service.max(initial=0.0)))
        whole = not p.time_slack and most <= largest
        self.unit = 1.0 if whole else scale(min(largest, MAX_COARSE_TIME) if costs else largest, most)
        visits = 2 * p.num_locations
        self.never = math.ceil(self.unit * (last + visits * longest + float(p.service.sum()))) + visits + 1

    def up(self, value: float) -> int:
        return math.ceil(value * self.unit * (1 - scaling.NOISE)) if self.runs else 0

    def down(self, value: float) -> int:
        if not self.runs or value == math.inf:
            return self.never
        return min(math.floor(value * self.unit * (1 + scaling.NOISE)), self.never)

    def early(self, moment: float) -> int:
        return self.up(max(moment - self.origin, 0.0))

    def late(self, moment: float) -> int:
        return max(self.down(moment - self.origin), 0)

    def window(self, opening: float, closing: float) -> tuple[int, int]:
        """A window, which rounding may leave a single moment, but not none."""
        first = self.early(opening)
        return first, max(first, self.late(closing))


class Money:
    """Costs as whole numbers."""

    def __init__(self, p: Problem, cost_bound: float = MAX_WAY_COST):
        clock = Clock(p)
        most = 0.0
        for v in p.types:
            length = p.distances if v.distances is None else v.distances
            time = p.durations if v.durations is None else v.durations
            way = v.cost_per_distance * finite(length) + v.cost_per_time * finite(time)
            most = max(most, float(way.max()))
        others = float(p.prizes[p.prizes < math.inf].sum())
        others += sum(v.fixed_cost * min(v.count, p.num_customers) for v in p.types)
        largest = cost_bound
        rates = [v.cost_per_time * scale(cost_bound, most) / clock.unit for v in p.types if v.cost_per_time]
        if any(abs(rate - round(rate)) > RATE_TOLERANCE * rate for rate in rates):
            largest *= FINER_FACTOR
        self.scale = scale(largest, most if most > 0 else others)  # where ways are free, the others decide
        total = others + 2 * p.num_locations * most
        if total * self.scale > MAX_TOTAL_COST:
            self.scale = scale(MAX_TOTAL_COST, total)

    def whole(self, cost: float) -> int:
        return round(cost * self.scale)

    def of_time(self, vehicle: Vehicle, unit: float) -> int:
        """What a unit of the clock costs."""
        return round(vehicle.cost_per_time * self.scale / unit)


def finite(ways: FloatArray) -> FloatArray:
    return np.where(np.isfinite(ways), ways, 0.0)
