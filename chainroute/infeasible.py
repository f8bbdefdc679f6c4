"""What is impossible about a problem, where that can be proven quickly.

With as many vehicles as needed a sound problem has a plan, so every proof is a bound on the vehicles: by what
they carry, by customers of whom no two can share a route, by the hours in which customers want to be served,
and by the length that all routes together may have. A finding is always true; to find nothing proves nothing.
Ways are measured along shortest paths, since on the way from one customer to another others may be served.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from heapq import heappush, heappushpop
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chainroute.measure import FloatArray, Rounding, at_most
from chainroute.numerals import told
from chainroute.problem import Problem
from chainroute.variants import Backhaul

Booleans = NDArray[np.bool_]

MOST_CUSTOMERS = 400  # up to which pairs are looked at: shortest paths between all take 0.2 s there
MOST_STEPS = 20_000  # of the search for customers of whom no two can share a route
NAMED = 8  # customers that a message names
ROUNDING = 1e-9  # relative: what a sum of many numbers may be off, far below any that would matter


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
    if problem.fleet is None or _vehicles(problem) >= problem.num_customers:
        return []
    found = [*_by_load(problem)]
    if problem.num_customers <= MOST_CUSTOMERS:
        ways = _Ways(problem)
        if not found:  # of whom no two can be carried together has been said
            found += _by_pairs(problem, ways)
        found += [*_by_windows(problem, ways), *_by_limit(problem)]
    return found


def _vehicles(problem: Problem) -> int:
    return (problem.fleet or 0) * problem.num_depots


# -- what vehicles carry


def _by_load(p: Problem) -> Iterator[Finding]:
    """Deliveries are all on board at the start, pickups at the end: each is a matter of packing."""
    for what, amounts in (("deliveries", p.delivery), ("pickups", p.pickup)):
        need, large = packing_bound(amounts, p.capacity * (1 + p.load_slack))
        if need > _vehicles(p):
            message = f"the {what} take at least {need} vehicles of {told(p.capacity)}; {_there_are(p)}."
            if large.any():
                message = f"{_listed(p, np.flatnonzero(large))} each take more than half a vehicle: {message}"
            yield Finding("load", message, _names(p, np.flatnonzero(large)), need, _vehicles(p))


def packing_bound(amounts: FloatArray, capacity: float) -> tuple[int, Booleans]:
    """How many bins the amounts take at least, and which of them take more than half a bin if that counts.

    Martello and Toth's bound: for any size up to half a bin, what is too large to be joined by that size has
    a bin of its own, and what lies between goes into the others.
    """
    best, counted = math.ceil(amounts.sum() / capacity * (1 - ROUNDING)), np.zeros(len(amounts), dtype=bool)
    halves = amounts > capacity / 2
    for size in np.unique(np.append(amounts[~halves], 0.0)):
        alone, shared = amounts > capacity - size, halves & (amounts <= capacity - size)
        small = ~halves & (amounts >= size)
        room = shared.sum() * capacity - amounts[shared].sum()
        more = (amounts[small].sum() - room) / capacity
        bins = int(alone.sum() + shared.sum()) + max(0, math.ceil(more - ROUNDING * len(amounts)))
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
    """From any place to any other by way of customers (Floyd and Warshall)."""
    best = matrix.copy()
    for middle in range(depots, len(matrix)):
        np.minimum(best, best[:, middle, None] + best[None, middle, :], out=best)
    return best


def _within(value: FloatArray, bound: FloatArray | float, slack: float) -> Booleans:
    """Whether the judge may take the value for at most the bound: sums may have been rounded otherwise."""
    finite = np.abs(value[np.isfinite(value)])
    noise = ROUNDING * float(finite.max(initial=0.0)) if slack else 0.0
    return at_most(value - noise, bound, 2 * slack)


def _by_pairs(p: Problem, ways: _Ways) -> Iterator[Finding]:
    """More customers than vehicles, of whom no two can share a route."""
    order, reasons = _orders(p, ways)
    apart = ~(order | order.T)
    np.fill_diagonal(apart, False)
    clique = largest_clique(apart)
    if len(clique) > _vehicles(p):
        pairs = np.ix_(clique, clique)
        off = ~np.eye(len(clique), dtype=bool)
        why = [name for name, excludes in reasons.items() if (excludes & excludes.T)[pairs][off].all()]
        because = f" because of {why[0]}" if why else ""
        who = f"no two of {_listed(p, clique)} can" if len(clique) > 2 else f"{_listed(p, clique)} cannot"
        message = f"{who} be on one route{because}, so they take {len(clique)} vehicles; {_there_are(p)}."
        yield Finding("pairs", message, _names(p, clique), len(clique), _vehicles(p))


def _orders(p: Problem, ways: _Ways) -> tuple[Booleans, dict[str, Booleans]]:
    """Whether the customer of the row can come before that of the column on a route, and what excludes it."""
    m = p.num_depots
    load = np.ones((p.num_customers, p.num_customers), dtype=bool)
    capacity = p.capacity * (1 + p.load_slack)
    for before, after in ((p.delivery, p.delivery), (p.pickup, p.pickup), (p.pickup, p.delivery)):
        load &= before[:, None] + after[None, :] <= capacity
    if p.backhaul is Backhaul.LINEHAULS_FIRST:
        load &= ~((p.pickup > 0)[:, None] & (p.delivery > 0)[None, :])
    service = p.service if p.limit_counts_service else np.zeros(p.num_customers)
    limit = math.inf if p.distance_limit is None else p.distance_limit
    time, length, both = (np.zeros_like(load) for _ in range(3))
    opens, closes = p.windows.T
    between, inner = ways.time[m:, m:], ways.length[m:, m:]
    for d in p.depots:
        first = np.maximum(opens[d] + ways.time[d, m:], opens[m:])
        second = np.maximum((first + p.service)[:, None] + between, opens[None, m:])
        home = second + (p.service + ways.time[m:, d])[None, :]
        timely = _within(first, closes[m:], p.time_slack)[:, None]
        timely = timely & _within(second, closes[None, m:], p.time_slack)
        timely &= _within(home, float(closes[d]), p.time_slack) | p.open
        way_home = np.zeros(p.num_customers) if p.open else ways.length[m:, d]
        whole = (ways.length[d, m:] + service)[:, None] + inner + (service + way_home)[None, :]
        near = _within(whole, limit, p.length_slack)
        time, length, both = time | timely, length | near, both | (timely & near)
    reasons = {"what they carry": ~load, "their windows": ~time, "the limit": ~length}
    return load & both, reasons


def largest_clique(adjacent: Booleans) -> list[int]:
    """As many as can be found in a bounded search of those that are all adjacent to each other."""
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


def _by_windows(p: Problem, ways: _Ways) -> Iterator[Finding]:
    """Customers that all want to be served within some hours, in which the vehicles cannot serve so many.

    On a route, service starts at the last of them later than at the first by the services and ways between:
    for every customer but the last its service and the shortest way to any other.
    """
    if p.time_windows is None or p.num_customers < 2:
        return
    m, vehicles = p.num_depots, _vehicles(p)
    opens = np.maximum(p.windows[m:, 0], (p.windows[:m, :1] + ways.time[:m, m:]).min(axis=0))
    closes = p.windows[m:, 1]
    between = ways.time[m:, m:] + np.diag(np.full(p.num_customers, math.inf))
    takes = p.service + between.min(axis=1)
    by_closing = np.argsort(closes, kind="stable")
    worst: tuple[float, float, float, list[int]] | None = None
    for begin in np.unique(opens):
        longest: list[float] = []  # of those so far, one for each vehicle: they may come last
        total, inside = 0.0, []
        for i in by_closing:
            if opens[i] < begin or not math.isfinite(closes[i]):
                continue
            inside.append(int(i))
            if len(longest) < vehicles:
                heappush(longest, takes[i])
                continue
            total += heappushpop(longest, takes[i])
            end = closes[i] + (2 * p.time_slack + ROUNDING) * max(abs(closes[i]), abs(begin))
            over = total * (1 - ROUNDING) - vehicles * (end - begin)
            if over > 0 and (worst is None or len(inside) < len(worst[3])):
                worst = (float(begin), float(closes[i]), total, list(inside))
    if worst is not None:
        begin, end, needed, among = worst
        has = f"{vehicles} {_plural(vehicles)} {told(vehicles * (end - begin))}"
        message = (
            f"service of {_listed(p, among)} must begin between {told(begin)} and {told(end)}; "
            f"with service and ways that takes {told(needed)}, and {has}."
        )
        yield Finding("windows", message, _names(p, among), None, vehicles)


def _by_limit(p: Problem) -> Iterator[Finding]:
    """All routes together are too short to reach every customer."""
    if p.distance_limit is None:
        return
    m, vehicles = p.num_depots, _vehicles(p)
    ways = p.distances + np.diag(np.full(p.num_locations, math.inf))
    least = ways[:, m:].min(axis=0).sum() + (p.service.sum() if p.limit_counts_service else 0.0)
    least += 0.0 if p.open else ways[m:, :m].min()  # at least one route comes home
    allowed = p.distance_limit * (1 + 2 * p.length_slack)
    needed = math.ceil(least / allowed * (1 - ROUNDING)) if math.isfinite(least) else None
    if needed is None or needed > vehicles:
        message = (
            f"to reach every customer takes at least {told(float(least))} in all, and {vehicles} "
            f"{_plural(vehicles)} {told(vehicles * p.distance_limit)} within the limit."
        )
        yield Finding("limit", message, (), needed, vehicles)


# -- words


def _plural(vehicles: int) -> str:
    return "vehicle has" if vehicles == 1 else "vehicles have"


def _there_are(p: Problem) -> str:
    return "there is one" if _vehicles(p) == 1 else f"there are {_vehicles(p)}"


def _names(p: Problem, customers: Sequence[int] | NDArray[np.intp]) -> tuple[str, ...]:
    return tuple(p.names[p.num_depots + int(i)] for i in customers)


def _listed(p: Problem, customers: Sequence[int] | NDArray[np.intp]) -> str:
    """Ada, Bob and Eve."""
    names = [f"'{name}'" for name in _names(p, customers)]
    if len(names) > NAMED:
        names = [*names[: NAMED - 1], f"{len(names) - NAMED + 1} more"]
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]
