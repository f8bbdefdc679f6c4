"""A problem in whole numbers, for solvers that count in integers.

Each kind of quantity (length, time, load) is multiplied by a power of ten of its own that brings its largest
value to at most `largest`. Lengths and times that a route uses up are rounded up, what bounds them is rounded
down, so that a route that is feasible in integers is feasible to the judge.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from chainroute.problem import Problem
from chainroute.problem.measure import FloatArray

MAX_INTEGER = 1e8  # that lengths, times and loads are scaled to
MAX_FINE_INTEGER = 1e14  # for times, where they differ so much that eight digits would not do
FORBIDDEN_FACTOR = 10  # times the largest: the length of an arc that must not be used
MAX_ROAD_RATIO = 1e4  # of the longest road against a typical short one: more would leave it few digits
NOISE = 1e-14  # relative: less is an error of double precision, as in 1.1 * 10 = 11.000000000000002
UNBOUNDED = int(np.iinfo(np.int64).max)

IntArray = NDArray[np.int64]


def lengths(p: Problem, largest: float = MAX_INTEGER) -> tuple[IntArray, int]:
    """The matrix of lengths, and the limit on a route's length."""
    m = p.num_depots
    length = p.distances + (p.services if p.limit_counts_service else 0.0)  # a constant in all costs
    if p.open:
        length[:, :m] = 0
    np.fill_diagonal(length, 0)
    gone = np.isinf(length)
    if p.distance_limit is None:
        length, _ = levelled(length, m)
    length[gone] = 0
    # Roads longer than any way round by a depot are as good as none, and must not set the scale.
    gone |= length > 4 * (length[:m, m:] + length[m:, :m].T).max()
    length[gone] = 0
    unit = scale(largest, length)
    whole = up(length, unit)
    whole[gone] = FORBIDDEN_FACTOR * int(largest)
    if p.distance_limit is None:
        return whole, UNBOUNDED
    limit = np.floor(np.minimum(p.distance_limit * unit * (1 + NOISE), whole.sum()))
    trips = whole[:m, m:] + whole[m:, :m].T
    return whole, int(_admit(limit, trips.ravel(), 0, exact=unit >= 1 and not p.length_slack))


def levelled(length: FloatArray, num_depots: int) -> tuple[FloatArray, float]:
    """Lengths less what every plan has to pay, where long roads would round the others away; and that sum.

    Each customer is entered once and left once, so the least that either costs is the same in all plans.
    """
    m, off = num_depots, np.array(length)
    np.fill_diagonal(off, np.inf)
    if np.max(off, where=np.isfinite(off), initial=0.0) <= MAX_ROAD_RATIO * _nearest(off[:, m:]):
        return length, 0.0
    paid = 0.0
    for customers in (off[:, m:].T, off[m:]):  # entered, then left; both are views
        least = customers.min(axis=1)
        least[np.isinf(least)] = 0.0
        customers -= least[:, None]
        paid += float(least.sum())
    np.fill_diagonal(off, 0.0)
    return off, paid


def _nearest(ways: FloatArray) -> float:
    """How far customers, the columns, typically are from the nearest other place; infinite if nowhere."""
    least = np.where(ways > 0, ways, np.inf).min(axis=0)
    return float(np.median(least[np.isfinite(least)])) if np.isfinite(least).any() else np.inf


def times(p: Problem, largest: float | None = None) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Durations, service times, and when windows open and close; no time passes where there are none.

    Unless the largest is given, they have more digits where usual ones would leave few to short ways.
    """
    n, m = p.num_locations, p.num_depots
    if p.time_windows is None:
        nothing = np.zeros(n, np.int64)
        return np.zeros((n, n), np.int64), nothing, nothing, nothing + UNBOUNDED
    origin = p.windows[:, 0].min()  # whole clocks start at 0
    opening, closing = (p.windows - origin).T
    last = np.max(closing, where=np.isfinite(closing), initial=0)
    after = 2 * last if last > 0 else np.inf  # all windows have closed; how long ago does not matter
    amounts = [np.minimum(x, after) for x in (p.durations, p.services, opening)]
    amounts[0][np.isinf(amounts[0])] = 0  # no road, where no window ever closes: its length forbids it
    if p.open:
        amounts[0][:, :m] = 0
    if largest is None:
        longest = max(map(np.max, amounts))
        largest = (
            MAX_INTEGER if longest <= MAX_INTEGER / 100 * _nearest(amounts[0][:, m:]) else MAX_FINE_INTEGER
        )
    unit = scale(largest, *amounts)
    travel, service, early = (up(x, unit) for x in amounts)
    never = early.max() + service.sum() + travel.max(axis=1).sum()  # no vehicle is out so late
    late = np.floor(np.minimum(closing * unit * (1 + NOISE), never))
    start = np.maximum(early[:m, None] + travel[:m, m:], early[m:])
    exact = unit >= 1 and not p.time_slack
    late[m:] = _admit(late[m:], start, 0, exact)
    late[:m] = never if p.open else _admit(late[:m], start + service[m:] + travel[m:, :m].T, 1, exact)
    return travel, service, early, np.maximum(early, late).astype(np.int64)


def loads(p: Problem, largest: float = MAX_INTEGER) -> tuple[IntArray, IntArray, int]:
    """Deliveries, pickups, and the capacity, with half of the slack that the judge gives.

    Fractions are rounded to the nearest: that makes the quotients of the benchmark whole again. Whole numbers
    are counted in the largest unit that they are multiples of; those still too large are rounded up.
    """
    amounts, room = [p.deliveries, p.pickups], p.capacity * (1 + p.load_slack / 2)
    if not p.load_slack:
        common = int(np.gcd.reduce(np.concatenate(amounts).astype(np.int64))) or 1
        amounts, room = [x / common for x in amounts], room // common
    total = sum(x.sum() for x in amounts)
    unit = scale(largest, min(room, total))
    delivery, pickup = (np.rint(x * unit).astype(np.int64) if p.load_slack else up(x, unit) for x in amounts)
    if total <= room:
        return delivery, pickup, UNBOUNDED
    return (
        delivery,
        pickup,
        max(math.floor(room * unit * (1 + NOISE)), int(max(delivery.max(), pickup.max()))),
    )


def scale(largest: float, *values: FloatArray | float) -> float:
    """The power of ten that brings all values to at most `largest`."""
    most = max(float(np.max(v)) for v in values)
    return 10.0 ** min(math.floor(math.log10(largest) - math.log10(most)), 300) if most > 0 else 1.0


def up(values: FloatArray, scale: float) -> IntArray:
    return np.ceil(values * (scale * (1 - NOISE))).astype(np.int64)


def _admit(bound: FloatArray, trips: IntArray, axis: int, exact: bool) -> FloatArray:
    """Bounds raised to what each customer's own trip needs, where that exceeds them by no more than rounding
    may have added: a customer that can just be reached must not be lost to it."""
    rounding = 0 if exact else 4  # units: out, waiting, service and back
    just = trips <= np.expand_dims(bound, axis) + rounding
    return np.asarray(np.maximum(bound, np.max(trips, axis=axis, initial=0, where=just)))
