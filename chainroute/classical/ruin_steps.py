"""The steps of ruin and recreate, compiled: what is here runs a hundred thousand times a second and more.

A plan is kept as chains. A place beside one of the nearest customers is looked at only if it can be better
than the best so far: between a customer and another who is no nearer, a detour is at least twice the way to
the first less their leg.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from chainroute.measure import FloatArray

REMOVED = 10  # customers in an iteration, on average
LONGEST_STRING = 10  # customers
SPLIT_SHARE = 0.5  # of strings, of which a customer in the middle stays
OVERLOOKED_ONE_IN = 100  # places
MOST_REMOVED = 4 * REMOVED + LONGEST_STRING  # customers

Numbers = NDArray[np.int64]
Lengths = NDArray[np.float32]  # which take half the memory, and are looked up sooner


class Ground(NamedTuple):
    """What a plan is made for. The depot is 0, customers count from 1; by location."""

    legs: Lengths
    legs_to: Lengths  # the same by where they end
    demand: FloatArray
    room: float
    nearest: Numbers  # some customers of each
    least: Lengths  # of the two legs between that and one of these, and that and one who is no nearer
    is_timed: bool  # or what follows is not looked at
    travel: FloatArray
    travel_to: FloatArray
    service: FloatArray
    opening: FloatArray
    closing: FloatArray


class Chains(NamedTuple):
    """A plan: each customer between two others, or beside the stop of its route, customers + 1 + route, where
    that begins and ends."""

    after: Numbers
    before: Numbers
    leg: FloatArray  # to the next
    longer_leg: FloatArray  # of that and the one before; negatively infinite while removed
    leaves: FloatArray  # at the earliest
    latest: FloatArray  # when the vehicle must have arrived for the rest of the route to be in time
    route: Numbers
    load: FloatArray  # of each route
    size: Numbers  # of each route, in customers


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
    removed = np.empty(MOST_REMOVED, np.int64)
    was_after = np.empty(MOST_REMOVED, np.int64)
    was_on = np.empty(MOST_REMOVED, np.int64)
    order = np.empty(MOST_REMOVED, np.int64)  # in which they are inserted
    keys = np.empty(MOST_REMOVED)
    for _ in range(iterations):
        count, longer = ruin(ground, plan, longest, removed, was_after, was_on)
        sort(ground, removed[:count], order, keys)
        most = -heat * np.log(1 - np.random.random())
        if recreate(ground, plan, order[:count], most - longer):
            continue
        for customer in removed[:count]:
            if plan.longer_leg[customer] >= 0:
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
    centre = np.random.randint(1, len(ground.demand))
    count, done, longer = 0, 0, 0.0
    for near in range(-1, ground.nearest.shape[1]):
        customer = centre if near < 0 else ground.nearest[centre, near]
        route = plan.route[customer]
        if plan.longer_leg[customer] < 0 or is_among(route, was_on[:count]):
            continue
        size = plan.size[route]
        string = min(int(1 + np.random.random() * min(float(size), longest)), size)
        staying = -1  # in the string
        if 1 < string < size and np.random.random() < SPLIT_SHARE:
            staying, string = np.random.randint(1, string), string + 1
        first = begin_of_string(plan, customer, string)
        for place in range(string):
            following = plan.after[first]
            if place != staying:
                removed[count], was_after[count], was_on[count] = first, plan.before[first], route
                longer += remove(ground, plan, first)
                count += 1
            first = following
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
def sort(ground: Ground, removed: Numbers, order: Numbers, keys: FloatArray) -> None:
    """Orders customers at random, the heaviest first, those far from the depot, or those near it; where there
    are time windows also the tightest first, the earliest, or those that close last."""
    kind = np.random.randint(17 if ground.is_timed else 11)
    for i, customer in enumerate(removed):
        if kind < 4:
            key = np.random.random()
        elif kind < 8:
            key = -ground.demand[customer]
        elif kind < 10:
            key = -float(ground.legs[0, customer])
        elif kind < 11:
            key = float(ground.legs[0, customer])
        elif kind < 13:
            key = ground.closing[customer] - ground.opening[customer]
        elif kind < 15:
            key = ground.opening[customer]
        else:
            key = -ground.closing[customer]
        at = i
        while at > 0 and keys[at - 1] > key:
            keys[at], order[at] = keys[at - 1], order[at - 1]
            at -= 1
        keys[at], order[at] = key, customer


@compiled
def recreate(ground: Ground, plan: Chains, order: Numbers, most: float) -> bool:
    """Inserts customers one by one where each lengthens the plan least; returns whether that is at most so
    much."""
    for customer in order:
        longer, after = best_place(ground, plan, customer)
        most -= longer
        if most < 0:
            return False
        insert(ground, plan, customer, after, plan.route[after])
    return True


@compiled
def best_place(ground: Ground, plan: Chains, customer: int) -> tuple[float, int]:
    """How much longer the plan is at least with a customer, and after whom; infinitely, if there is no
    place."""
    # Arrays of their own: a tuple's take twice as long here.
    nearest, least = ground.nearest[customer], ground.least[customer]
    legs, legs_to = ground.legs[customer], ground.legs_to[customer]
    routes, loads, before, after = plan.route, plan.load, plan.before, plan.after
    leg, longer_leg = plan.leg, plan.longer_leg
    best, chosen = np.inf, 0
    room, stops = ground.room - ground.demand[customer], len(ground.demand)
    overlooked = np.random.randint(OVERLOOKED_ONE_IN)
    for i in range(len(nearest)):
        near = nearest[i]
        if least[i] - longer_leg[near] >= best or loads[routes[near]] > room or i == overlooked:
            continue
        first, second = before[near], after[near]
        start, end = first if first < stops else 0, second if second < stops else 0
        longer = legs_to[near] + legs[end] - leg[near]
        if longer < best and is_in_time(ground, plan, customer, near, second):
            best, chosen = longer, near
        longer = legs_to[start] + legs[near] - leg[first]
        if longer < best and is_in_time(ground, plan, customer, first, near):
            best, chosen = longer, first
    alone = legs[0] + legs_to[0]
    if alone < best:
        for route in range(len(plan.size) - 1, -1, -1):
            if plan.size[route] == 0:
                return alone, stops + route
    return best, chosen


@compiled
def is_in_time(ground: Ground, plan: Chains, customer: int, first: int, second: int) -> bool:
    """Whether a customer can be served between two others, and these and all after them in time."""
    if not ground.is_timed:
        return True
    stops = len(ground.demand)
    start, end = first if first < stops else 0, second if second < stops else 0
    begin = max(plan.leaves[first] + ground.travel_to[customer, start], ground.opening[customer])
    if begin > ground.closing[customer]:
        return False
    arrives = begin + ground.service[customer] + ground.travel[customer, end]
    return bool(arrives <= plan.latest[second])


@compiled
def insert(ground: Ground, plan: Chains, customer: int, after: int, route: int) -> None:
    following, stops = plan.after[after], len(ground.demand)
    start, end = after if after < stops else 0, following if following < stops else 0
    plan.after[after], plan.before[customer] = customer, after
    plan.after[customer], plan.before[following] = following, customer
    there, onward = ground.legs_to[customer, start], ground.legs[customer, end]
    plan.leg[after], plan.leg[customer] = there, onward
    plan.longer_leg[customer] = max(there, onward)
    plan.longer_leg[after] = max(plan.leg[plan.before[after]], there)
    plan.longer_leg[following] = max(plan.leg[following], onward)
    plan.route[customer] = route
    plan.load[route] += ground.demand[customer]
    plan.size[route] += 1
    if ground.is_timed:
        arrives = plan.leaves[after] + ground.travel_to[customer, start]
        plan.leaves[customer] = max(arrives, ground.opening[customer]) + ground.service[customer]
        leaves_by = plan.latest[following] - ground.travel[customer, end]
        plan.latest[customer] = min(ground.closing[customer], leaves_by - ground.service[customer])
        pass_on(ground, plan, customer, customer)


@compiled
def remove(ground: Ground, plan: Chains, customer: int) -> float:
    """Removes a customer; returns how much longer the plan is without, as a rule less than nothing. It is
    infinitely much where the way past that customer is so slow that others are late."""
    route, first, second = plan.route[customer], plan.before[customer], plan.after[customer]
    stops = len(ground.demand)
    start, end = first if first < stops else 0, second if second < stops else 0
    there = ground.legs[start, end]
    longer = there - plan.leg[first] - plan.leg[customer]
    plan.after[first], plan.before[second] = second, first
    plan.leg[first] = there
    plan.longer_leg[first] = max(plan.leg[plan.before[first]], there)
    plan.longer_leg[second] = max(plan.leg[second], there)
    plan.longer_leg[customer] = -np.inf
    plan.load[route] -= ground.demand[customer]
    plan.size[route] -= 1
    if ground.is_timed:
        if plan.leaves[first] + ground.travel[start, end] > plan.latest[second]:
            longer = np.inf
        pass_on(ground, plan, first, second)
    return float(longer)


@compiled
def pass_on(ground: Ground, plan: Chains, first: int, second: int) -> None:
    """Brings up to date when the vehicle leaves those after one place, and by when it must be at those before
    another."""
    stops = len(ground.demand)
    here, following = first, plan.after[first]
    while following < stops:
        arrives = plan.leaves[here] + ground.travel[here if here < stops else 0, following]
        leaves = max(arrives, ground.opening[following]) + ground.service[following]
        if leaves == plan.leaves[following]:
            break
        plan.leaves[following] = leaves
        here, following = following, plan.after[following]
    here, previous = second, plan.before[second]
    while previous < stops:
        leaves_by = plan.latest[here] - ground.travel[previous, here if here < stops else 0]
        latest = min(ground.closing[previous], leaves_by - ground.service[previous])
        if latest == plan.latest[previous]:
            break
        plan.latest[previous] = latest
        here, previous = previous, plan.before[previous]
