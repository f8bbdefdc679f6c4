"""The best plan that can be put together from the routes of many trajectories: set partitioning.

Prices of customers that make few routes worth their cost (Lagrangian relaxation) bound the cost of any plan
from below. The bound leaves only routes that a better plan can contain; a beam search puts them together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from chainroute.neural.assembly.routes import Actions, Nodes, Tour, end_legs
from chainroute.problem import Problem
from chainroute.problem.measure import FloatArray

PRICE_ITERATIONS = (100, 600)  # of the prices, at least and at most: three for each customer
STALLED_SHARE = 20  # of the iterations one part, without a better bound, before steps become shorter
MOMENTUM = 0.9  # share of the last direction in the next
BEAM_WIDTH = 256  # partial plans that are kept
MOST_ROUTES = 1_000  # that plans are made of: those of least extra cost

Mask = NDArray[np.bool_]
Keys = NDArray[np.uint64]


class Pool:
    """Routes to choose from, each set of customers once, in its cheapest order."""

    def __init__(self, problem: Problem, customers: Nodes | None = None):
        """A pool for all customers of a problem, or for those."""
        self.problem = problem
        self.customers = np.asarray(problem.customers) if customers is None else np.sort(customers)
        # A set is told by the sum of random numbers, one for each customer.
        self.numbers = np.random.default_rng(0).integers(2**63, size=problem.num_locations, dtype=np.uint64)
        self.keys: Keys = np.empty(0, np.uint64)
        self.costs = np.empty(0)
        self.sizes, self.visits = np.empty(0, np.intp), np.empty(0, np.intp)

    def add(self, actions: Actions) -> None:
        """Every route of trajectories (C, T)."""
        p = self.problem
        path: Nodes = np.pad(actions, ((0, 0), (1, 0))).astype(np.intp)
        visited = path >= p.num_depots
        begins = visited & ~np.roll(visited, 1, axis=1)
        at, first = path[visited], np.flatnonzero(begins[visited])
        if not len(first):
            return
        last = np.append(first[1:], len(at)) - 1
        legs = np.append(p.distances[at[:-1], at[1:]], 0.0)
        legs[last] = 0.0
        costs = np.add.reduceat(legs, first) + end_legs(p, at[first], at[last]).min(0)
        keys = np.add.reduceat(self.numbers[at], first)
        self._merge(keys, costs, last + 1 - first, at)

    def _merge(self, keys: Keys, costs: FloatArray, sizes: Nodes, visits: Nodes) -> None:
        keys, costs = np.append(self.keys, keys), np.append(self.costs, costs)
        sizes, visits = np.append(self.sizes, sizes), np.append(self.visits, visits)
        kept = _first_of_each(keys, costs)
        kept = kept[np.isfinite(costs[kept])]  # the rest go where there is no road
        ends = np.cumsum(sizes[kept])
        shift = np.repeat(np.cumsum(sizes)[kept] - ends, sizes[kept])
        self.visits = visits[np.arange(len(shift)) + shift]
        self.keys, self.costs, self.sizes = keys[kept], costs[kept], sizes[kept]

    def tours(self, rows: list[int]) -> list[Tour]:
        """The routes of those numbers."""
        ends = np.cumsum(self.sizes)
        return [tuple(self.visits[ends[row] - self.sizes[row] : ends[row]].tolist()) for row in rows]

    def best(self, cost: float) -> tuple[float, list[Tour]] | None:
        """The cheapest plan for all customers that is found, with its cost, if it is less than `cost`."""
        contains = np.zeros((len(self.costs), len(self.customers)), dtype=bool)
        row = np.repeat(np.arange(len(self.costs)), self.sizes)
        contains[row, np.searchsorted(self.customers, self.visits)] = True
        if not contains.any(0).all():
            return None
        chosen = partition(self.costs, contains, cost)
        return None if chosen is None else (float(self.costs[chosen].sum()), self.tours(chosen))


def partition(costs: FloatArray, contains: Mask, cost: float) -> list[int] | None:
    """Rows of `contains` (R, N) that hold every column once and together cost less than `cost`, if found."""
    prices, bound = _prices(costs, contains, cost)
    extra = np.maximum(costs - contains @ prices, 0)
    useful = np.flatnonzero(bound + extra < cost)
    rows = useful[np.argsort(extra[useful], kind="stable")][:MOST_ROUTES]
    found = _beam(costs[rows], contains[rows], extra[rows], bound, cost)
    return None if found is None else [int(row) for row in rows[found]]


def _beam(costs: FloatArray, contains: Mask, extra: FloatArray, bound: float, limit: float) -> Nodes | None:
    """The cheapest partition below the limit that is found; it costs at least the bound and its rows' extra.

    A partial plan goes on with the column that fewest rows can still hold, and ends where there is no such
    row. Of plans that hold the same columns the cheapest is kept, of all those the ones of least extra cost.
    """
    holds = contains.astype(np.float32)
    apart = holds @ holds.T == 0
    numbers = np.random.default_rng(0).integers(2**63, size=contains.shape[1], dtype=np.uint64)
    keys = np.where(contains, numbers, np.uint64(0)).sum(1, dtype=np.uint64)
    # Of each plan: its rows, those that can be added, the columns left, and what it comes to.
    plans, live = np.empty((1, 0), np.intp), np.ones((1, len(costs)), dtype=bool)
    left = np.ones((1, contains.shape[1]), dtype=bool)
    key, cost, least = np.zeros(1, np.uint64), np.zeros(1), np.full(1, bound)
    best = None
    while len(plans):
        live &= extra < (limit - least)[:, None]
        choices = np.where(left, live.astype(np.float32) @ holds, np.inf)
        plan, row = np.nonzero(live & contains.T[choices.argmin(1)])
        key, cost, least = key[plan] + keys[row], cost[plan] + costs[row], least[plan] + extra[row]
        kept = _first_of_each(key, cost)
        if len(kept) > BEAM_WIDTH:
            kept = kept[np.argpartition(least[kept], BEAM_WIDTH)[:BEAM_WIDTH]]
        plans = np.column_stack([plans[plan[kept]], row[kept]])
        left = left[plan[kept]] & ~contains[row[kept]]
        whole = ~left.any(1)  # of at most one, since all hold the same columns
        if whole.any() and cost[kept[whole]].item() < limit:
            best, limit = plans[whole][0], cost[kept[whole]].item()
        kept, plans, left = kept[~whole], plans[~whole], left[~whole]
        live = live[plan[kept]] & apart[row[kept]]
        key, cost, least = key[kept], cost[kept], least[kept]
    return best


def _first_of_each(keys: Keys, costs: FloatArray) -> Nodes:
    """Where each key is, and where several are, the one of least cost."""
    order = np.lexsort((costs, keys))
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = np.diff(keys[order]) != 0
    return order[is_first]


def price_iterations(customers: int) -> tuple[int, int]:
    """Steps towards prices of so many customers, and how many of them without a better bound are borne."""
    least, most = PRICE_ITERATIONS
    steps = min(most, max(least, 3 * customers))
    return steps, max(1, steps // STALLED_SHARE)


def _prices(costs: FloatArray, contains: Mask, cost: float) -> tuple[FloatArray, float]:
    """Prices of the columns that make the bound on the cost of a partition high, and that bound."""
    holds, worth = contains.astype(np.float32), costs.astype(np.float32)  # half the time of doubles
    prices = best = np.where(contains, (worth / holds.sum(1))[:, None], np.inf).min(0)
    direction = None
    highest, pace, since = -np.inf, 1.0, 0
    iterations, patience = price_iterations(contains.shape[1])
    for _ in range(iterations):
        reduced = worth - holds @ prices
        value = float(prices.sum() + np.minimum(reduced, 0).sum())
        if value > highest:
            best, highest, since = prices, value, 0
        else:
            since += 1
            if since >= patience:
                prices, pace, since = best, pace / 2, 0
                continue
        missing = 1 - (reduced < 0).astype(np.float32) @ holds
        if not missing.any() or highest >= cost or np.isinf(cost):  # then there is nothing to aim at
            break
        direction = missing if direction is None else MOMENTUM * direction + (1 - MOMENTUM) * missing
        norm = float(direction @ direction)
        if norm == 0:
            break
        prices = prices + np.float32(pace * (cost - value) / norm) * direction
    exact = best.astype(float)
    return exact, float(exact.sum() + np.minimum(costs - contains @ exact, 0).sum())
