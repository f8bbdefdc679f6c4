"""Large neighbourhood search: neighbouring routes are solved again and again, as small problems of their own.

A round takes parts of a plan, the routes nearest to some customers, each on a map turned at random, and
decodes them all in one batch. The best of the routes that it finds, and of those that there were, are kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chainroute.neural.assembly.incumbent import Incumbent
from chainroute.neural.assembly.recombine import Pool
from chainroute.neural.assembly.routes import Actions, Nodes, Tour, trajectory
from chainroute.neural.decode import memory
from chainroute.neural.decode.engine import in_half
from chainroute.neural.decode.parts import parts, turned
from chainroute.neural.decode.rollout import longest, pattern, rollout
from chainroute.neural.env import ProblemBatch
from chainroute.neural.policy import Policy
from chainroute.options import DecodeOptions
from chainroute.options.rules import PART_RATE
from chainroute.problem.measure import FloatArray
from chainroute.runtime.deadline import NEVER, Deadline

STARTS = 8  # of each part
PARTS = 8  # of each problem in a round, and one more for every 50 customers
PART_CUSTOMERS = 60  # of a part, at most about
PART_SHARE = 0.6  # of a problem's customers in a part, at most about
MAX_PART_CUSTOMERS = 100  # of a part, without exception
JOINT_POOL_CUSTOMERS = 200  # up to so many the routes of all parts and rounds are recombined together


@dataclass(frozen=True)
class Part:
    """Some routes of a plan."""

    instance: int
    routes: tuple[int, ...]
    customers: Nodes


class Rounds:
    """Rounds of large neighbourhood search on problems of one size."""

    def __init__(
        self, policy: Policy, searches: Sequence[Incumbent], batch: ProblemBatch, options: DecodeOptions
    ):
        self.policy, self.searches, self.batch, self.options = policy, searches, batch, options
        self.rngs = [np.random.default_rng(options.seed) for _ in searches]
        self.done = 0

    def run_one(self, deadline: Deadline = NEVER) -> bool:
        """Improves the solutions there are; whether there will be another round."""
        chosen, maps = list[Part](), []
        for i, (search, rng) in enumerate(zip(self.searches, self.rngs, strict=True)):
            if search.solution is not None:
                own = _parts(search, i, rng)
                chosen += own
                maps.append(turned(len(own), rng))
        if not chosen:
            return False
        found = self.decode(chosen, np.concatenate(maps), deadline)
        for i, search in enumerate(self.searches):
            if own_found := [(part, actions) for part, actions in found if part.instance == i]:
                _improve(search, own_found)
        self.done += 1
        return self.done != self.options.rounds

    def decode(
        self, chosen: Sequence[Part], maps: FloatArray, deadline: Deadline
    ) -> list[tuple[Part, Actions]]:
        """The trajectories of each part, (S, T), by the nodes of its problem."""
        policy, options = self.policy, self.options
        found: dict[int, Actions] = {}
        device = policy.device
        available = options.memory or memory.budget(device)
        order = sorted(range(len(chosen)), key=lambda i: len(chosen[i].customers))
        while order and not deadline.passed:
            most = len(chosen[order[-1]].customers)
            needed = memory.per_copy(policy.config, self.batch.num_depots + most, most, 2 * most)
            rows, order = order[-max(1, available // needed) :], order[: -max(1, available // needed)]
            own = [chosen[i] for i in rows]
            small, nodes = parts(
                self.batch, [p.instance for p in own], [p.customers for p in own], maps[rows]
            )
            refine = pattern(PART_RATE, options.seed + self.done, longest(small))
            half = in_half(policy, options)
            result = rollout(policy, small.to(device), refine, STARTS, half=half, deadline=deadline)
            for i, actions, at in zip(rows, result.actions.cpu().numpy(), nodes, strict=True):
                found[i] = at[actions.astype(np.intp)]
        return [(chosen[i], found[i]) for i in sorted(found)]


def _parts(search: Incumbent, instance: int, rng: np.random.Generator) -> list[Part]:
    """Around customers drawn at random: the routes that pass nearest to each."""
    p, solution = search.problem, search.solution
    assert solution is not None
    plan = [route.visits for route in solution.routes]
    sizes = np.array([len(visits) for visits in plan])
    starts = np.cumsum(sizes) - sizes
    at = np.concatenate(plan)
    found = []
    size, count = min(PART_CUSTOMERS, PART_SHARE * p.num_customers), PARTS + p.num_customers // 50
    for seed in rng.choice(p.customers, min(count, p.num_customers), replace=False):
        order = np.argsort(np.minimum.reduceat(p.distances[seed, at], starts), kind="stable")
        total = np.cumsum(sizes[order])
        count = max(2, int(np.searchsorted(total, size, side="right")))
        count = min(count, int(np.searchsorted(total, MAX_PART_CUSTOMERS, side="right")))
        if count:
            routes = tuple(int(r) for r in order[:count])
            found.append(Part(instance, routes, np.concatenate([plan[r] for r in routes])))
    return found


def _improve(search: Incumbent, found: Sequence[tuple[Part, Actions]]) -> None:
    """Takes what is better than the routes that the parts were made of."""
    if search.problem.num_customers <= JOINT_POOL_CUSTOMERS:
        for _, actions in found:
            search.pool.add(actions)
        search.recombine()
        return
    solution = search.solution
    assert solution is not None
    better = []
    for part, actions in found:
        pool = Pool(search.problem, part.customers)
        pool.add(actions)
        pool.add(trajectory([solution.routes[r].visits for r in part.routes]))
        cost = math.fsum(solution.facts[r].length for r in part.routes)
        if new := pool.best(cost):
            better.append((new[0] - cost, part.routes, new[1]))
    replaced, added = set[int](), list[Tour]()
    for _, routes, new_tours in sorted(better, key=lambda one: one[0]):
        if replaced.isdisjoint(routes):
            replaced.update(routes)
            added += new_tours
    if added:
        kept = (route.visits for r, route in enumerate(solution.routes) if r not in replaced)
        search.adopt([*kept, *added])
