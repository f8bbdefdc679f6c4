"""What is impossible about a problem, where that can be proven quickly.

With as many vehicles as needed a sound problem has a plan, so every proof is a bound on the vehicles: by what
they carry, by customers of whom no two can share a route, by the hours in which customers want to be served,
and by the length that all routes together may have. A finding is always true; to find nothing proves nothing.
Ways are measured along shortest paths, since on the way from one customer to another others may be served.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from heapq import heappush, heappushpop
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chainroute.errors import ChainRouteError, Fault
from chainroute.problem import Problem
from chainroute.problem.measure import FloatArray, Rounding, at_most
from chainroute.problem.variants import Backhaul
from chainroute.runtime.numerals import listed, number_text

Booleans = NDArray[np.bool_]
Indices = NDArray[np.intp]

MAX_PAIRED_CUSTOMERS = 400  # up to which pairs are looked at, which takes 0.4 s there and 0.1 s for 200
MOST_STEPS = 3_000  # of the search for customers of whom no two can share a route
NAMED_CUSTOMERS = 8  # customers that a message names
MOST_IN_A_BIN = 20  # customers alike in one vehicle, up to which they are counted in place of their loads
RELATIVE_ROUNDING = 1e-9  # relative: what a sum of many numbers may be off, far below any that would matter


@dataclass(frozen=True)
class Finding:
    """One reason why no plan keeps all rules."""

    kind: str  # what binds: "load", "pairs", "windows", "limit"
    message: str
    customers: tuple[str, ...]  # by name
    needed: int | None  # vehicles
    available: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def proofs(problem: Problem) -> list[Finding]:
    """Why the problem has no plan; nothing where that is not seen."""
    p = problem
    if p.extras or p.fleet is None or p.fleet >= p.num_customers:
        return []
    every = _Part(p, tuple(p.depots), np.arange(p.num_customers))
    if p.num_customers > MAX_PAIRED_CUSTOMERS:
        return [*_by_load(every)]
    ways = _Ways(p)
    found: list[Finding] = []
    for part in [every, *_parts(p, ways)]:
        loads = [*_by_load(part)]
        # Of whom no two can be carried together has been said then.
        found += loads or _by_pairs(part, ways)
        found += [*_by_windows(part, ways), *_by_limit(part)]
        if found:
            break
    return found


def impossible(problem: Problem) -> ChainRouteError | None:
    """What is proven, as an error."""
    faults = [Fault("no-solution", finding.message, problem.name) for finding in proofs(problem)]
    return ChainRouteError(faults) if faults else None


@dataclass(frozen=True)
class _Part:
    """Customers, and the only depots that can serve them."""

    problem: Problem
    depots: tuple[int, ...]
    customers: Indices  # counted from 0

    @property
    def vehicles(self) -> int:
        return (self.problem.fleet or 0) * len(self.depots)

    @property
    def there_are(self) -> str:
        at = f" at {self.problem.names[self.depots[0]]}" if len(self.depots) < self.problem.num_depots else ""
        return f"there is one{at}" if self.vehicles == 1 else f"there are {self.vehicles}{at}"

    @property
    def they_have(self) -> str:
        return "1 vehicle has" if self.vehicles == 1 else f"{self.vehicles} vehicles have"

    def finding(self, kind: str, message: str, among: Indices, needed: int | None) -> Finding:
        names = tuple(self.problem.names[self.problem.num_depots + int(i)] for i in among)
        return Finding(kind, message, names, needed, self.vehicles)


def _parts(p: Problem, ways: _Ways) -> Iterator[_Part]:
    """For each of several depots, the customers that no other can serve."""
    if p.num_depots > 1:
        served = np.array([_alone(p, ways, d) for d in p.depots])
        for d in p.depots:
            only = np.flatnonzero(served[d] & (served.sum(axis=0) == 1))
            if len(only) > (p.fleet or 0):
                yield _Part(p, (d,), only)


# -- what vehicles carry


def _by_load(part: _Part) -> Iterator[Finding]:
    """Deliveries are all on board at the start, pickups at the end: each is a matter of packing."""
    p, among = part.problem, part.customers
    for what, amounts in (("deliveries", p.delivery[among]), ("pickups", p.pickup[among])):
        need, large = packing_bound(amounts, p.capacity * (1 + p.load_slack))
        if need > part.vehicles:
            message = (
                f"the {what} take at least {need} vehicles of {number_text(p.capacity)}; {part.there_are}."
            )
            if large.any():
                message = f"{_listed(p, among[large])} each take more than half a vehicle: {message}"
            yield part.finding("load", message, among[large], need)


def packing_bound(amounts: FloatArray, capacity: float) -> tuple[int, Booleans]:
    """How many bins the amounts take at least, and which of them take more than half a bin if that counts.

    Martello and Toth's bound: for any size up to half a bin, what is too large to be joined by that size has
    a bin of its own, and what lies between goes into the others. And Fekete and Schepers': of what takes more
    than a third of a bin no more than two go into it, of what takes more than a quarter three, and so on;
    what takes more than two thirds counts for two of the first.
    """
    best = math.ceil(amounts.sum() / capacity * (1 - RELATIVE_ROUNDING))
    for most in range(2, MOST_IN_A_BIN + 1):
        counts = np.floor((most + 1) * amounts / capacity * (1 - RELATIVE_ROUNDING))
        best = max(best, math.ceil(counts.sum() / most - RELATIVE_ROUNDING))
    counted = np.zeros(len(amounts), dtype=bool)
    halves = amounts > capacity / 2
    for size in np.unique(np.append(amounts[~halves], 0.0)):
        alone, shared = amounts > capacity - size, halves & (amounts <= capacity - size)
        small = ~halves & (amounts >= size)
        room = shared.sum() * capacity - amounts[shared].sum()
        more = (amounts[small].sum() - room) / capacity
        bins = int(alone.sum() + shared.sum()) + max(0, math.ceil(more - RELATIVE_ROUNDING * len(amounts)))
        if bins > best:
            best, counted = bins, halves
    return best, counted


# -- customers that exclude each other


class _Ways:
    """Shortest ways, in time and in length, between customers and from and to depots, by way of customers."""

    def __init__(self, p: Problem):
        straight = p.distance_matrix is None and p.rounding is Rounding.EXACT  # which nothing is shorter than
        self.length = p.distances if straight else _shortest(p.distances, p.num_depots)
        self.time = self.length if p.duration_matrix is None else _shortest(p.durations, p.num_depots)


def _shortest(matrix: FloatArray, depots: int) -> FloatArray:
    """The shortest ways from any place to any other by way of customers (Floyd and Warshall)."""
    best = matrix.copy()
    for middle in range(depots, len(matrix)):
        np.minimum(best, best[:, middle, None] + best[None, middle, :], out=best)
    return best


def _within(value: FloatArray, bound: FloatArray | float, slack: float) -> Booleans:
    """Whether the judge may take the value for at most the bound: sums may have been rounded otherwise."""
    finite = np.abs(value[np.isfinite(value)])
    noise = RELATIVE_ROUNDING * float(finite.max(initial=0.0)) if slack else 0.0
    return at_most(value - noise, bound, 2 * slack)


def _alone(p: Problem, ways: _Ways, depot: int) -> Booleans:
    """Whom the depot can serve at all."""
    m = p.num_depots
    opens, closes = p.windows.T
    start = np.maximum(opens[depot] + ways.time[depot, m:], opens[m:])
    home = start + p.service + ways.time[m:, depot]
    timely = _within(start, closes[m:], p.time_slack)
    timely &= _within(home, float(closes[depot]), p.time_slack) | p.open
    length = ways.length[depot, m:] + (0.0 if p.open else ways.length[m:, depot])
    length = length + (p.service if p.limit_counts_service else 0.0)
    return timely & _within(length, p.distance_limit or math.inf, p.length_slack)


def _by_pairs(part: _Part, ways: _Ways) -> Iterator[Finding]:
    """More customers than vehicles, of whom no two can share a route."""
    p = part.problem
    order, reasons = _orders(part, ways)
    apart = ~(order | order.T)
    np.fill_diagonal(apart, False)
    clique = largest_clique(apart)
    if len(clique) > part.vehicles:
        pairs = np.ix_(clique, clique)
        off = ~np.eye(len(clique), dtype=bool)
        why = [name for name, excludes in reasons.items() if (excludes & excludes.T)[pairs][off].all()]
        because = f" because of {why[0]}" if why else ""
        among = part.customers[clique]
        who = f"no two of {_listed(p, among)} can" if len(clique) > 2 else f"{_listed(p, among)} cannot"
        message = f"{who} be on one route{because}, so they take {len(clique)} vehicles; {part.there_are}."
        yield part.finding("pairs", message, among, len(clique))


def _orders(part: _Part, ways: _Ways) -> tuple[Booleans, dict[str, Booleans]]:
    """Whether the customer of the row can come before that of the column on a route, and what excludes it."""
    p, at = part.problem, part.problem.num_depots + part.customers
    delivery, pickup, service = p.deliveries[at], p.pickups[at], p.services[at]
    load = np.ones((len(at), len(at)), dtype=bool)
    capacity = p.capacity * (1 + p.load_slack)
    for before, after in ((delivery, delivery), (pickup, pickup), (pickup, delivery)):
        load &= before[:, None] + after[None, :] <= capacity
    if p.backhaul is Backhaul.LINEHAULS_FIRST:
        load &= ~((pickup > 0)[:, None] & (delivery > 0)[None, :])
    counted = service if p.limit_counts_service else np.zeros(len(at))
    limit = math.inf if p.distance_limit is None else p.distance_limit
    time, length, both = (np.zeros_like(load) for _ in range(3))
    opens, closes = p.windows.T
    for d in part.depots:
        first = np.maximum(opens[d] + ways.time[d, at], opens[at])
        second = np.maximum((first + service)[:, None] + ways.time[np.ix_(at, at)], opens[None, at])
        home = second + (service + ways.time[at, d])[None, :]
        timely = _within(first, closes[at], p.time_slack)[:, None]
        timely = timely & _within(second, closes[None, at], p.time_slack)
        timely &= _within(home, float(closes[d]), p.time_slack) | p.open
        way_home = np.zeros(len(at)) if p.open else ways.length[at, d]
        whole = (ways.length[d, at] + counted)[:, None] + ways.length[np.ix_(at, at)]
        near = _within(whole + (counted + way_home)[None, :], limit, p.length_slack)
        time, length, both = time | timely, length | near, both | (timely & near)
    reasons = {"what they carry": ~load, "their windows": ~time, "the limit": ~length}
    return load & both, reasons


def largest_clique(adjacent: Booleans) -> list[int]:
    """The largest set found in a bounded search of which all are adjacent to each other."""
    neighbours = [int.from_bytes(np.packbits(row, bitorder="little").tobytes(), "little") for row in adjacent]
    best: list[int] = []
    steps = 0

    def extend(clique: list[int], candidates: int) -> None:
        nonlocal best, steps
        steps += 1
        if len(clique) > len(best):
            best = clique
        while candidates and len(clique) + candidates.bit_count() > len(best) and steps < MOST_STEPS:
            chosen = max(_bits(candidates), key=lambda i: (candidates & neighbours[i]).bit_count())
            extend([*clique, chosen], candidates & neighbours[chosen])
            candidates &= ~(1 << chosen)

    extend([], (1 << len(adjacent)) - 1)
    return sorted(best)


def _bits(number: int) -> Iterator[int]:
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low


# -- hours and lengths


def _by_windows(part: _Part, ways: _Ways) -> Iterator[Finding]:
    """Customers that all want to be served within some hours, in which the vehicles cannot serve so many.

    On a route, service starts at the last of them later than at the first by the services and ways between:
    for every customer but the last its service and the shortest way to any other.
    """
    p, at, depots = part.problem, part.problem.num_depots + part.customers, np.array(part.depots)
    if p.time_windows is None or len(at) < 2:
        return
    earliest = (p.windows[depots, 0][:, None] + ways.time[np.ix_(depots, at)]).min(axis=0)
    opens = np.maximum(p.windows[at, 0], earliest)
    closes = p.windows[at, 1]
    between = ways.time[np.ix_(at, at)] + np.diag(np.full(len(at), math.inf))
    takes = p.services[at] + between.min(axis=1)
    by_closing = [int(i) for i in np.argsort(closes, kind="stable") if math.isfinite(closes[i])]
    worst: tuple[float, float, float, list[int]] | None = None
    for begin in np.unique(opens):
        longest: list[float] = []  # of those so far, one for each vehicle: they may come last
        total, inside = 0.0, []
        for i in by_closing:
            if opens[i] < begin:
                continue
            inside.append(i)
            if len(longest) < part.vehicles:
                heappush(longest, takes[i])
                continue
            total += heappushpop(longest, takes[i])
            end = closes[i] + (2 * p.time_slack + RELATIVE_ROUNDING) * max(abs(closes[i]), abs(begin))
            over = total * (1 - RELATIVE_ROUNDING) - part.vehicles * (end - begin)
            if over > 0 and (worst is None or len(inside) < len(worst[3])):
                worst = (float(begin), float(closes[i]), total, list(inside))
    if worst is not None:
        begin, end, needed, inside = worst
        among = part.customers[inside]
        message = (
            f"service of {_listed(p, among)} must begin between {p.moment(begin)} and {p.moment(end)}; "
            f"with service and ways that takes {p.span(needed)}, "
            f"and {part.they_have} {p.span(part.vehicles * (end - begin))}."
        )
        yield part.finding("windows", message, among, None)


def _by_limit(part: _Part) -> Iterator[Finding]:
    """All routes together are too short to reach every customer."""
    p, at = part.problem, part.problem.num_depots + part.customers
    if p.distance_limit is None:
        return
    ways = p.distances + np.diag(np.full(p.num_locations, math.inf))
    least = ways[:, at].min(axis=0).sum() + (p.services[at].sum() if p.limit_counts_service else 0.0)
    least += 0.0 if p.open else ways[p.num_depots :, list(part.depots)].min()  # at least one comes home
    allowed = p.distance_limit * (1 + 2 * p.length_slack)
    needed = math.ceil(least / allowed * (1 - RELATIVE_ROUNDING)) if math.isfinite(least) else None
    if needed is None or needed > part.vehicles:
        customers = "every customer" if len(at) == p.num_customers else _listed(p, part.customers)
        message = (
            f"to reach {customers} takes at least {number_text(float(least))} in all, and {part.they_have} "
            f"{number_text(part.vehicles * p.distance_limit)} within the limit."
        )
        yield part.finding("limit", message, part.customers[:0], needed)


# -- words


def _listed(p: Problem, customers: Indices) -> str:
    """'Ada', 'Bob' and 'Eve'."""
    return listed([f"'{p.names[p.num_depots + int(i)]}'" for i in customers], NAMED_CUSTOMERS)
