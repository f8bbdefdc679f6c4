"""The best plan that can be put together from the routes of many trajectories: set partitioning.

Prices of customers that make few routes worth their cost (Lagrangian relaxation) bound the cost of any plan
from below. The bound leaves only routes that a better plan can contain; among them a search in depth looks.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

from chainroute.assembly.routes import Actions, Nodes, Tour, end_legs
from chainroute.measure import FloatArray
from chainroute.problem import Problem

PRICE_ITERATIONS = 300  # of the prices
TARGET_RATIO = 1.05  # what the bound is driven towards, in costs of the plan there is
STALLED_ITERATIONS = 10  # without a better bound before steps become shorter
SEARCH_STEPS = 2000  # in depth, before the search gives up
# Of the gap to the bound: costlier routes are tried where the others give no plan.
SHARES = (0.1, 0.2, 0.4, 0.7, 1.0)


class Pool:
    """Routes to choose from, each set of customers once, in its cheapest order."""

    def __init__(self, problem: Problem, customers: Nodes | None = None):
        """A pool for all customers of a problem, or for those."""
        self.problem = problem
        self.customers = np.asarray(problem.customers) if customers is None else np.sort(customers)
        # By the sum of random numbers, one for each customer, which tells sets apart.
        self.tours: dict[int, tuple[float, Tour]] = {}
        self.keys = np.random.default_rng(0).integers(2**63, size=problem.num_locations, dtype=np.uint64)

    def add(self, actions: Actions) -> None:
        """Every route of trajectories (C, T)."""
        p = self.problem
        actions = np.pad(actions, ((0, 0), (1, 0))).astype(np.intp)
        visited = actions >= p.num_depots
        begins = visited & ~np.roll(visited, 1, axis=1)
        at, first = actions[visited], np.flatnonzero(begins[visited])
        if not len(first):
            return
        last = np.append(first[1:], len(at)) - 1
        legs = np.append(p.distances[at[:-1], at[1:]], 0.0)
        legs[last] = 0.0
        costs = np.add.reduceat(legs, first) + end_legs(p, at[first], at[last]).min(0)
        keys = np.add.reduceat(self.keys[at], first)
        order = np.lexsort((costs, keys))
        new = np.append(True, np.diff(keys[order]) != 0)
        for i in order[new & np.isfinite(costs[order])]:  # the rest go where there is no road
            key, cost = int(keys[i]), float(costs[i])
            if key not in self.tours or cost < self.tours[key][0]:
                self.tours[key] = cost, tuple(at[first[i] : last[i] + 1].tolist())

    def best(self, cost: float) -> tuple[float, list[Tour]] | None:
        """The cheapest plan for all customers that is found, with its cost, if it is less than `cost`."""
        tours = [tour for _, tour in self.tours.values()]
        if len({customer for tour in tours for customer in tour}) < len(self.customers):
            return None
        costs = np.array([cost for cost, _ in self.tours.values()])
        row = np.repeat(np.arange(len(tours)), [len(tour) for tour in tours])
        contains = np.zeros((len(tours), len(self.customers)), dtype=bool)
        contains[row, np.searchsorted(self.customers, np.concatenate(tours))] = True
        chosen = partition(costs, contains, cost)
        return None if chosen is None else (float(costs[chosen].sum()), [tours[i] for i in chosen])


def partition(costs: FloatArray, contains: NDArray[np.bool_], cost: float) -> list[int] | None:
    """Rows of `contains` (R, N) that hold every column once and together cost less than `cost`, if found."""
    prices, bound = _prices(costs, contains, cost)
    extra = np.maximum(costs - contains @ prices, 0)
    useful = np.flatnonzero(bound + extra < cost)
    useful = useful[np.argsort(extra[useful], kind="stable")]
    found = None
    for share in SHARES:
        count = np.searchsorted(extra[useful], share * (cost - bound))
        rows = useful[:count]
        found = _Search(costs[rows], contains[rows], extra[rows], bound).run(bound + share * (cost - bound))
        if found is not None:
            return [int(row) for row in rows[found]]
    return None


class _Search:
    """A search in depth: the column that fewest rows can still hold is next. A set of rows is a number."""

    def __init__(self, costs: FloatArray, contains: NDArray[np.bool_], extra: FloatArray, bound: float):
        self.costs, self.extra, self.bound = costs, extra.tolist(), bound
        self.holders = _bits(contains.T)  # of each column, the rows that contain it
        self.apart = _bits(~(contains.astype(np.float32) @ contains.T.astype(np.float32)).astype(bool))
        self.columns = [np.flatnonzero(row).tolist() for row in contains]
        self.best: list[int] | None = None
        self.steps = SEARCH_STEPS

    def run(self, limit: float) -> list[int] | None:
        """The cheapest partition below the limit, as far as the steps go."""
        self.limit = limit
        self.visit((1 << len(self.columns)) - 1, frozenset(range(len(self.holders))), [], self.bound)
        return self.best

    def visit(self, live: int, left: frozenset[int], chosen: list[int], least: float) -> None:
        self.steps -= 1
        if not left:
            cost = float(self.costs[chosen].sum())
            if cost < self.limit:
                self.best, self.limit = chosen, cost
            return
        live &= (1 << bisect_left(self.extra, self.limit - least)) - 1
        choices = min([live & self.holders[column] for column in left], key=int.bit_count)
        while choices and self.steps > 0:
            row = (choices & -choices).bit_length() - 1
            choices &= choices - 1
            if least + self.extra[row] >= self.limit:
                return  # and those that follow cost still more
            rest = left.difference(self.columns[row])
            self.visit(live & self.apart[row], rest, [*chosen, row], least + self.extra[row])


def _bits(rows: NDArray[np.bool_]) -> list[int]:
    """Each row as a whole number, column i its bit i."""
    return [int.from_bytes(row.tobytes(), "little") for row in np.packbits(rows, 1, "little")]


def _prices(costs: FloatArray, contains: NDArray[np.bool_], cost: float) -> tuple[FloatArray, float]:
    """Prices of the columns that make the bound on the cost of a partition high, and that bound."""
    contains = contains.astype(float)
    share = np.where(contains > 0, (costs / contains.sum(1))[:, None], np.inf)
    prices = best = share.min(0)
    bound, pace, since = -np.inf, 1.0, 0
    for _ in range(PRICE_ITERATIONS):
        reduced = costs - contains @ prices
        worth = reduced < 0
        value = prices.sum() + reduced[worth].sum()
        if value > bound:
            best, bound, since = prices, value, 0
        else:
            since += 1
            if since >= STALLED_ITERATIONS:
                prices, pace, since = best, pace / 2, 0
                continue
        missing = 1 - contains[worth].sum(0)
        norm = missing @ missing
        if norm == 0 or bound >= cost:
            break
        prices = prices + pace * (TARGET_RATIO * cost - value) / norm * missing
    return best, float(bound)
