"""The problem as a mixed-integer linear program, and its solution by HiGHS.

There is a binary variable for each arc, and for each customer variables for what grows along a route: the
customer's place in it, what has been picked up, the time, the length. What is still to be delivered grows
backwards. If an arc is used, such a quantity is at its end at least what it was at its start plus what the
arc adds (Miller, Tucker and Zemlin's constraints). Every kind of quantity is scaled to about 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from chainroute.errors import fail
from chainroute.plan.check import check
from chainroute.plan.solution import Routes, Solution
from chainroute.problem import Problem
from chainroute.problem.measure import LOAD_SLACK, FloatArray
from chainroute.problem.variants import Backhaul
from chainroute.runtime.deadline import ENDING_SECONDS
from chainroute.search.library import Found, OnFound, SearchTask
from chainroute.search.solvers.scaling import levelled

INFEASIBLE = 2  # among the statuses of scipy.optimize.milp
BOUND_TOLERANCE = 1e-9  # below it, what exceeds a bound is an error of rounding
Indices = NDArray[np.intp]


def search(task: SearchTask, report: OnFound) -> None:
    """Reports the best routes found until the deadline, and the proven bound.

    HiGHS lets rows be exceeded by 1e-6, in which many whole numbers have room: routes that the judge refuses
    are ruled out, and the program is solved again.
    """
    problem = task.problem
    program, arcs, scale, paid = build(problem)
    while (left := task.deadline.left - ENDING_SECONDS) > 0:
        found = program.solve(left)
        if found.status == INFEASIBLE and task.start is None:
            raise fail("no-solution", "no plan keeps all rules, as HiGHS has proven.", problem.name)
        if found.x is None:
            return
        routes = _routes(problem, found.x[arcs] > 0.5)
        violations = check(problem, Solution.of(problem, routes)).violations
        refused = {violation.route for violation in violations if violation.route}
        if not refused:
            report(Found(routes, int(found.mip_node_count), float(found.mip_dual_bound) * scale + paid))
            return
        for number in refused:
            _rule_out(program, problem, arcs, *routes[number - 1])


class Program:
    """Variables with their bounds and costs, and rows that bound sums of them."""

    def __init__(self) -> None:
        self.low: list[float] = []
        self.high: list[float] = []
        self.whole: list[bool] = []
        self.rows: list[tuple[list[int], list[float], float, float]] = []
        self.cost: FloatArray = np.zeros(0)

    def variables(self, low: FloatArray, high: FloatArray, whole: bool = False) -> Indices:
        """Adds as many variables as there are bounds; returns their numbers."""
        first = len(self.low)
        self.low += low.ravel().tolist()
        self.high += high.ravel().tolist()
        self.whole += [whole] * low.size
        return np.arange(first, len(self.low)).reshape(low.shape)

    def row(self, terms: Sequence[tuple[Any, float]], low: float = -math.inf, high: float = math.inf) -> None:
        """low <= the sum of factors times variables <= high."""
        self.rows.append(([int(v) for v, _ in terms], [float(f) for _, f in terms], low, high))

    def solve(self, seconds: float) -> Any:
        """SciPy's result, after so many seconds at most."""
        columns, factors, low, high = zip(*self.rows, strict=True)
        starts = np.cumsum([0, *map(len, columns)])
        matrix = csr_array(
            (np.concatenate(factors), np.concatenate(columns), starts), (len(columns), len(self.low))
        )
        return milp(
            np.pad(self.cost, (0, len(self.low) - len(self.cost))),
            integrality=self.whole,
            bounds=Bounds(self.low, self.high),
            constraints=LinearConstraint(matrix, low, high),
            options={"time_limit": max(seconds, 0.01), "mip_rel_gap": 0.0},
        )


def build(problem: Problem) -> tuple[Program, Indices, float, float]:
    """The program, the numbers of its arcs (from, to), what a cost of 1 stands for, and what is left out."""
    p, m, n = problem, problem.num_depots, problem.num_locations
    program = Program()
    length = p.distances.copy()
    if p.open:
        length[:, :m] = 0
    cost, paid = _costs(p, length)
    usable = np.isfinite(length)
    if p.fleet is None and p.has_all_roads and not p.extras:  # one longer than any way by a depot is none
        usable = cost <= 4 * (cost[:m, m:] + cost[m:, :m].T).max()
    usable[:m, :m] = False
    np.fill_diagonal(usable, False)
    scale = np.abs(cost).max(where=usable, initial=0.0) or 1.0
    arcs = program.variables(np.zeros((n, n)), usable.astype(float), whole=True)
    program.cost = np.where(usable, cost / scale, 0.0).ravel()
    length[~usable] = 0.0

    for c in p.customers:
        once = 1 if p.prizes[c] == math.inf else 0  # or not at all
        program.row([(a, 1) for a in arcs[c]], once, 1)
        program.row([*((a, 1) for a in arcs[c]), *((a, -1) for a in arcs[:, c] if a != arcs[c, c])], 0, 0)
    fleet = math.inf if p.fleet is None else p.fleet
    for d in p.depots:
        program.row([(a, 1) for a in arcs[d]], high=fleet)
        program.row([*((a, 1) for a in arcs[d]), *((a, -1) for a in arcs[:, d] if a != arcs[d, d])], 0, 0)
    if m > 1:
        _homes(program, p, arcs)
    _order(program, p, arcs)
    _loads(program, p, arcs)
    if p.time_windows is not None:
        _windows(program, p, arcs)
    if p.distance_limit is not None:
        service = p.services if p.limit_counts_service else np.zeros(n)
        _along_routes(program, p, arcs, length, service, np.tile([0.0, p.distance_limit], (n, 1)))
    return program, arcs, float(scale), paid


def _costs(p: Problem, length: FloatArray) -> tuple[FloatArray, float]:
    """What arcs cost, and what comes on top: a served optional customer saves its penalty when it is left."""
    if not p.extras:
        return levelled(length, p.num_depots)
    optional = p.prizes < math.inf
    cost = length * p.cost_per_distance if p.cost_per_distance else np.zeros_like(length)
    cost[: p.num_depots] += p.fixed_cost
    cost[optional] -= p.prizes[optional][:, None]
    return cost, float(p.prizes[optional].sum())


def _rule_out(program: Program, p: Problem, arcs: Indices, depot: int, visits: list[int]) -> None:
    """Excludes a route; of customers who are too much for a vehicle in any order, all routes."""
    if max(p.deliveries[visits].sum(), p.pickups[visits].sum()) > p.capacity * (1 + p.load_slack):
        inside = [(arcs[i, j], 1) for i in visits for j in visits if i != j]
        program.row(inside, high=len(visits) - 2)
    else:
        program.row([(arcs[i, j], 1) for i, j in pairwise([depot, *visits, depot])], high=len(visits))


def _grow(program: Program, arc: int, before: int, after: int, amount: float, scale: float = 1.0) -> None:
    """Where the arc is used, variable `after` is at least variable `before` plus the amount."""
    reach = program.high[before] + amount - program.low[after]
    if program.low[before] + amount > program.high[after] + BOUND_TOLERANCE * scale:
        program.high[arc] = 0.0
    elif reach > 0:
        program.row([(before, 1), (after, -1), (arc, reach)], high=reach - amount)


def _homes(program: Program, p: Problem, arcs: Indices) -> None:
    """Neighbours on a route belong to the same depot, the first and the last to the one they are next to."""
    home = program.variables(
        np.zeros((p.num_locations, p.num_depots)), np.ones((p.num_locations, p.num_depots))
    )
    for c in p.customers:
        program.row([(h, 1) for h in home[c]], 1, 1)
        for d in p.depots:
            program.row([(home[c, d], 1), (arcs[d, c], -1)], low=0)
            program.row([(home[c, d], 1), (arcs[c, d], -1)], low=0)
            for other in p.customers:
                if other != c:
                    same = [(home[c, d], 1), (home[other, d], -1), (arcs[c, other], 1), (arcs[other, c], 1)]
                    program.row(same, high=1)


def _order(program: Program, p: Problem, arcs: Indices) -> None:
    """Places on the route, so that no customers go round in a circle; and linehauls first."""
    n = p.num_locations
    place = program.variables(np.ones(n), np.full(n, float(p.num_customers)))
    stages = p.backhaul is Backhaul.LINEHAULS_FIRST
    low, high = (p.pickups > 0).astype(float), (p.deliveries == 0).astype(float)
    half = program.variables(low, high) if stages else place
    for i in p.customers:
        for j in p.customers:
            if i != j:
                _grow(program, arcs[i, j], place[i], place[j], 1)
                if stages:
                    _grow(program, arcs[i, j], half[i], half[j], 0)


def _loads(program: Program, p: Problem, arcs: Indices) -> None:
    """What is still to be delivered and what has been picked up when a customer is left; in vehicles."""
    most, n = 1 + (p.load_slack / 2 or min(LOAD_SLACK / 2, 0.5 / p.capacity)), p.num_locations
    delivery, pickup = p.deliveries / p.capacity, p.pickups / p.capacity
    aboard = program.variables(np.zeros(n), np.maximum(most - delivery, 0.0))
    picked = program.variables(pickup, np.full(n, most))
    for i in p.customers:
        program.row([(aboard[i], 1), (picked[i], 1)], high=most)
        for j in p.customers:
            if i != j:
                _grow(program, arcs[i, j], aboard[j], aboard[i], delivery[j])
                _grow(program, arcs[i, j], picked[i], picked[j], pickup[j])
    must = p.prizes[p.num_depots :] == math.inf
    needed = math.ceil(max(p.delivery[must].sum(), p.pickup[must].sum()) / p.capacity * (1 - p.load_slack))
    program.row([(a, 1) for a in arcs[: p.num_depots].ravel()], low=needed)


def _windows(program: Program, p: Problem, arcs: Indices) -> None:
    opening, closing = (p.windows - p.windows[:, 0].min()).T
    travel = np.where(np.isinf(p.durations), 0.0, p.durations)  # where there is no road, no arc is usable
    if p.open:
        travel[:, : p.num_depots], closing[: p.num_depots] = 0.0, np.inf
    last = np.max(closing, where=np.isfinite(closing), initial=0)
    travel = np.minimum(travel, 2 * last if last > 0 else np.inf)
    never = opening.max() + p.services.sum() + travel.max(axis=1).sum()  # no vehicle is out so late
    windows = np.stack([opening, np.minimum(closing, never)], axis=1)
    _along_routes(program, p, arcs, travel, p.services, windows)


def _along_routes(
    program: Program, p: Problem, arcs: Indices, travel: FloatArray, service: FloatArray, windows: FloatArray
) -> None:
    """A clock, of time or length: on arrival within each location's bounds, those of a depot on return."""
    m, scale = p.num_depots, windows[:, 1].max() or 1.0
    travel, service, windows = travel / scale, service / scale, windows / scale
    leave = program.variables(windows[:m, 0], windows[:m, 0])
    clock = np.concatenate([leave, program.variables(windows[m:, 0], windows[m:, 1])])
    back = program.variables(windows[:m, 0], windows[:m, 1])
    for i in range(p.num_locations):
        for j in range(p.num_locations):
            if i != j and max(i, j) >= m:
                _grow(
                    program, arcs[i, j], clock[i], clock[j] if j >= m else back[j], service[i] + travel[i, j]
                )


def _routes(p: Problem, used: NDArray[np.bool_]) -> Routes:
    """Follows the arcs in use from each depot."""
    routes = []
    for d in p.depots:
        for first in np.flatnonzero(used[d]).tolist():
            visits = [first]
            while (following := int(np.argmax(used[visits[-1]]))) >= p.num_depots:
                visits.append(following)
            routes.append((d, visits))
    return routes
