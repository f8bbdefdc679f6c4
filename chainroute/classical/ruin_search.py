"""Ruin and recreate, for problems that bound nothing but the load: strings of customers are taken off
neighbouring routes and put back one by one where that lengthens the plan least, a few places overlooked.
What has become longer by it is kept the less often the colder it is.

That is slack induction by string removals (Christiaens and Vanden Berghe, 2020). Places are looked for beside
the nearest customers alone, so that an iteration takes as long with ten thousand customers as with a hundred:
some microseconds, where PyVRP's takes a millisecond and finds more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from chainroute.classical.legs import Bounds
from chainroute.classical.library import Found, OnFound, SearchTask
from chainroute.measure import FloatArray
from chainroute.problem import Problem
from chainroute.solution import Routes

NEAREST = 20  # customers beside whom places are looked for
LEGS = 10  # to the nearest customers, whose mean is the unit of heat
REMOVED = 10  # customers in an iteration, on average
LONGEST_STRING = 10  # customers
OVERLOOKED_SHARE = 0.01  # of the places
MOST_REMOVED = 4 * REMOVED + LONGEST_STRING  # customers
SPARE_ROUTES = 5  # that a plan may have in addition, where there are vehicles
CHUNK_ITERATIONS = 5_000  # between looks at the clock, a twentieth of a second

Numbers = NDArray[np.int64]


class Ground(NamedTuple):
    """What a plan is made for. The depot is 0, customers count from 1."""

    legs: FloatArray
    demand: FloatArray
    room: float
    nearest: Numbers  # (locations, NEAREST)


class Chains(NamedTuple):
    """A plan: each customer between two others, or beside the stop of its route, customers + 1 + route, where
    that begins and ends."""

    after: Numbers
    before: Numbers
    route: Numbers  # -1 while a customer is removed
    load: FloatArray  # of each route
    size: Numbers  # of each route, in customers


def search(task: SearchTask, report: OnFound) -> None:
    """Searches until the deadline from the task's start, ever colder; reports the plan that it ends with."""
    problem, (hot, cold) = task.problem, task.heat
    assert task.start is not None
    ground = ground_of(problem)
    chains = chains_of(problem, task.start)
    customers = np.array(problem.customers)
    leg = float(ground.legs[customers[:, None], ground.nearest[1:, :LEGS]].mean())
    seeds, seconds = np.random.default_rng(task.seed), task.deadline.left
    while (left := task.deadline.left) > 0:
        heat = leg * hot * (cold / hot) ** (1 - left / seconds)
        anneal(ground, chains, heat, CHUNK_ITERATIONS, int(seeds.integers(2**32)))
    report(Found(routes_of(chains)))


@cache
def get_ready() -> None:
    """Compiles everything, which takes some seconds once, and a moment in the next process."""
    pair = Problem(capacity=2, delivery=np.ones(2), coords=np.zeros((3, 2)))
    anneal(ground_of(pair), chains_of(pair, [(0, [1, 2])]), 1.0, 1, 0)


def ground_of(problem: Problem) -> Ground:
    p, legs = problem, problem.distances.copy()
    if p.open:
        legs[:, 0] = 0.0
    count = max(1, min(NEAREST, p.num_customers - 1))
    ways = legs + legs.T
    ways[:, 0] = np.inf
    np.fill_diagonal(ways, np.inf)
    some = np.argpartition(ways, count - 1, axis=1)[:, :count]
    order = np.take_along_axis(ways, some, axis=1).argsort(axis=1, kind="stable")
    demand = np.concatenate([[0.0], p.delivery])
    return Ground(legs, demand, Bounds(p).room, np.take_along_axis(some, order, axis=1))


def chains_of(problem: Problem, routes: Routes) -> Chains:
    visits = [some for _, some in routes if some]
    first = problem.num_locations
    count = min(len(visits) + SPARE_ROUTES, problem.fleet or math.inf)
    stops = np.arange(first + int(count))
    empty = np.zeros(int(count))
    chains = Chains(stops.copy(), stops.copy(), stops - first, empty, empty.astype(np.int64))
    for number, some in enumerate(visits):
        ring = np.array([first + number, *some])
        chains.after[ring], chains.before[ring] = np.roll(ring, -1), np.roll(ring, 1)
        chains.route[ring], chains.size[number] = number, len(some)
        chains.load[number] = problem.delivery[ring[1:] - 1].sum()
    return chains


def routes_of(chains: Chains) -> Routes:
    first = len(chains.after) - len(chains.load)
    routes: Routes = []
    for stop in range(first, len(chains.after)):
        visits, customer = [], int(chains.after[stop])
        while customer < first:
            visits.append(customer)
            customer = int(chains.after[customer])
        if visits:
            routes.append((0, visits))
    return routes


# -- compiled


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function compiled, which takes seconds; kept for the next process where there is a place for it."""
    try:
        return njit(cache=True, error_model="numpy")(function)
    except RuntimeError:
        return njit(error_model="numpy")(function)


@compiled
def anneal(ground: Ground, plan: Chains, heat: float, iterations: int, seed: int) -> None:
    """So many iterations at one heat, in lengths: what becomes longer by that is kept once in e times."""
    np.random.seed(seed)
    longest = min(float(LONGEST_STRING), (len(ground.demand) - 1) / np.count_nonzero(plan.size))
    removed = np.empty(MOST_REMOVED, np.int64)  # in this order
    was_after = np.empty(MOST_REMOVED, np.int64)
    was_on = np.empty(MOST_REMOVED, np.int64)
    for _ in range(iterations):
        count, longer = ruin(ground, plan, longest, removed, was_after, was_on)
        longer += recreate(ground, plan, removed[:count])
        if longer < -heat * np.log(1 - np.random.random()):
            continue
        for customer in removed[:count]:
            if plan.route[customer] >= 0:
                remove(ground, plan, customer)
        for i in range(count - 1, -1, -1):
            insert(ground, plan, removed[i], was_after[i], was_on[i])


@compiled
def ruin(
    ground: Ground,
    plan: Chains,
    longest: float,
    removed: Numbers,
    was_after: Numbers,
    was_on: Numbers,
) -> tuple[int, float]:
    """Removes a string of each of some routes around a customer; returns how many customers these are, and
    how much longer the plan is without them."""
    strings = int(1 + np.random.random() * (4 * REMOVED / (1 + longest) - 1))
    ruined = np.full(strings, -1)
    centre = np.random.randint(1, len(ground.demand))
    count, done, longer = 0, 0, 0.0
    for near in range(-1, ground.nearest.shape[1]):
        customer = centre if near < 0 else ground.nearest[centre, near]
        route = plan.route[customer]
        if route < 0 or is_among(route, ruined):
            continue
        string = int(1 + np.random.random() * min(float(plan.size[route]), longest))
        string = min(string, plan.size[route])
        first = begin_of_string(plan, customer, string)
        for _ in range(string):
            following = plan.after[first]
            removed[count], was_after[count], was_on[count] = first, plan.before[first], route
            longer += remove(ground, plan, first)
            first, count = following, count + 1
        ruined[done] = route
        done += 1
        if done == strings:
            break
    return count, longer


@compiled
def is_among(number: int, some: Numbers) -> bool:
    for one in some:
        if one == number:
            return True
    return False


@compiled
def begin_of_string(plan: Chains, customer: int, string: int) -> int:
    """Where a string of so many customers begins that contains this one: anywhere on its route."""
    stops = len(plan.after) - len(plan.load)
    before, first = 0, customer
    while before < string - 1 and plan.before[first] < stops:
        first, before = plan.before[first], before + 1
    ahead, last = 0, customer
    while ahead < string - 1 and plan.after[last] < stops:
        last, ahead = plan.after[last], ahead + 1
    for _ in range(before - np.random.randint(string - 1 - ahead, before + 1)):
        first = plan.after[first]
    return first


@compiled
def recreate(ground: Ground, plan: Chains, removed: Numbers) -> float:
    """Inserts customers one by one, in one of four orders, where each lengthens the plan least; returns how
    much that is, infinitely much if one has no place."""
    longer = 0.0
    for customer in removed[order_of(ground, removed)]:
        best, after = best_place(ground, plan, customer)
        if after < 0:
            return np.inf
        insert(ground, plan, customer, after, plan.route[after])
        longer += best
    return longer


@compiled
def order_of(ground: Ground, removed: Numbers) -> Numbers:
    """At random, the heaviest first, those far from the depot, or those near it."""
    kind, keys = np.random.randint(11), np.empty(len(removed))
    for i, customer in enumerate(removed):
        if kind < 4:
            keys[i] = np.random.random()
        elif kind < 8:
            keys[i] = -ground.demand[customer]
        elif kind < 10:
            keys[i] = -ground.legs[0, customer]
        else:
            keys[i] = ground.legs[0, customer]
    return np.argsort(keys)


@compiled
def best_place(ground: Ground, plan: Chains, customer: int) -> tuple[float, int]:
    """How much longer the plan is at least with a customer, and after whom; after -1 if there is no place."""
    legs, nearest = ground.legs, ground.nearest  # arrays of their own: a tuple's take twice as long here
    routes, loads, before, after = plan.route, plan.load, plan.before, plan.after
    best, chosen = np.inf, -1
    room, stops = ground.room - ground.demand[customer], len(ground.demand)
    for i in range(nearest.shape[1]):
        near = nearest[customer, i]
        route = routes[near]
        if route < 0 or loads[route] > room or np.random.random() < OVERLOOKED_SHARE:
            continue
        for first, second in ((before[near], near), (near, after[near])):
            start, end = first if first < stops else 0, second if second < stops else 0
            longer = legs[start, customer] + legs[customer, end] - legs[start, end]
            if longer < best:
                best, chosen = longer, first
    alone = legs[0, customer] + legs[customer, 0]
    if alone < best:
        for route in range(len(plan.size) - 1, -1, -1):
            if plan.size[route] == 0:
                return alone, stops + route
    return best, chosen


@compiled
def insert(ground: Ground, plan: Chains, customer: int, after: int, route: int) -> None:
    following = plan.after[after]
    plan.after[after], plan.before[customer] = customer, after
    plan.after[customer], plan.before[following] = following, customer
    plan.route[customer] = route
    plan.load[route] += ground.demand[customer]
    plan.size[route] += 1


@compiled
def remove(ground: Ground, plan: Chains, customer: int) -> float:
    """Removes a customer; returns how much longer the plan is without, as a rule less than nothing."""
    route, first, second = plan.route[customer], plan.before[customer], plan.after[customer]
    plan.after[first], plan.before[second] = second, first
    plan.route[customer] = -1
    plan.load[route] -= ground.demand[customer]
    plan.size[route] -= 1
    legs, stops = ground.legs, len(ground.demand)
    start, end = first if first < stops else 0, second if second < stops else 0
    return legs[start, end] - legs[start, customer] - legs[customer, end]
