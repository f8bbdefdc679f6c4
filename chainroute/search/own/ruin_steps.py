"""The steps of ruin and recreate, compiled: what is here runs a hundred thousand times a second and more.

A plan is kept as chains. A place beside one of the nearest customers is looked at only if it can be better
than the best so far: between a customer and another who is no nearer, a detour is at least twice the way to
the first less their leg.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from chainroute.problem.measure import FloatArray

REMOVED = 10  # customers in an iteration, on average
LONGEST_STRING = 10  # customers
SPLIT_SHARE = 0.5  # of strings, of which a customer in the middle stays
OVERLOOKED_ONE_IN = 100  # places
MOST_REMOVED = 4 * REMOVED + LONGEST_STRING  # customers

Numbers = NDArray[np.int64]
Lengths = NDArray[np.float32]  # which take half the memory, and are looked up sooner


class CompiledProblem(NamedTuple):
    """What a plan is made for, by location: so many depots, and then the customers."""

    depots: int
    legs: Lengths
    legs_to: Lengths  # the same by where they end
    home: Numbers  # the depot whose vehicle serves a customer best who is alone
    alone: FloatArray  # the length of that route
    nearest: Numbers  # some customers of each
    least: Lengths  # of the two legs between that and one of these, and that and one who is no nearer
    delivery: FloatArray
    room: float
    has_pickups: bool  # or the next two are not looked at
    pickup: FloatArray
    is_ordered: bool  # deliveries first
    limit: float  # of a route's length; infinite where there is none
    counted: FloatArray  # services, where they count towards that
    is_timed: bool  # or what follows is not looked at
    travel: FloatArray
    travel_to: FloatArray
    service: FloatArray
    opening: FloatArray
    closing: FloatArray


class LinkedRoutes(NamedTuple):
    """A plan: each customer between two others, or beside the stop of its route, locations + route, where
    that begins and ends."""

    after: Numbers
    before: Numbers
    leg: FloatArray  # to the next
    longer_leg: FloatArray  # of that and the one before; negatively infinite while removed
    leaves: FloatArray  # at the earliest
    latest: FloatArray  # when the vehicle must have arrived for the rest of the route to be in time
    room_before: FloatArray  # for deliveries, on the leg to the next and all before
    room_after: FloatArray  # for pickups, on that leg and all after
    location: Numbers  # of a customer its own, of a stop the depot of its route
    route: Numbers
    load: FloatArray  # of each route, as it begins
    size: Numbers  # of each route, in customers
    length: FloatArray  # of each route, with the services that count


def compiled(function: Callable[..., Any], counts_users: bool = True) -> Callable[..., Any]:
    """The function compiled, which takes seconds; kept for the next process where there is a place for it."""
    options: dict[str, Any] = {"error_model": "numpy", "_nrt": counts_users}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:
        return njit(**options)(function)


# A step makes no arrays. To count at each call who uses those of a plan would take a third of the time.
step = partial(compiled, counts_users=False)


@compiled
def anneal(ground: CompiledProblem, plan: LinkedRoutes, heat: float, iterations: int, seed: int) -> None:
    """So many iterations at one heat, in lengths: what becomes longer by that is kept once in e times."""
    np.random.seed(seed)
    longest = min(float(LONGEST_STRING), (len(ground.delivery) - ground.depots) / np.count_nonzero(plan.size))
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


@step
def ruin(
    ground: CompiledProblem,
    plan: LinkedRoutes,
    longest: float,
    removed: Numbers,
    was_after: Numbers,
    was_on: Numbers,
) -> tuple[int, float]:
    """Removes a string of each of some routes around a customer; returns how many customers these are, and
    how much longer the plan is without them."""
    strings = int(1 + np.random.random() * (4 * REMOVED / (1 + longest) - 1))
    centre = np.random.randint(ground.depots, len(ground.delivery))
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


@step
def is_among(number: int, some: Numbers) -> bool:
    for one in some:
        if one == number:
            return True
    return False


@step
def begin_of_string(plan: LinkedRoutes, customer: int, string: int) -> int:
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


@step
def sort(ground: CompiledProblem, removed: Numbers, order: Numbers, keys: FloatArray) -> None:
    """Orders customers at random, the heaviest first, those far from the depot, or those near it; where there
    are time windows also the tightest first, the earliest, or those that close last."""
    kind = np.random.randint(17 if ground.is_timed else 11)
    for i, customer in enumerate(removed):
        if kind < 4:
            key = np.random.random()
        elif kind < 8:
            key = -ground.delivery[customer] - ground.pickup[customer]
        elif kind < 10:
            key = -ground.alone[customer]
        elif kind < 11:
            key = ground.alone[customer]
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


@step
def recreate(ground: CompiledProblem, plan: LinkedRoutes, order: Numbers, most: float) -> bool:
    """Inserts customers one by one where each lengthens the plan least; returns whether that is at most so
    much."""
    for customer in order:
        longer, after = best_place(ground, plan, customer)
        most -= longer
        if most < 0:
            return False
        insert(ground, plan, customer, after, plan.route[after])
    return True


@step
def best_place(ground: CompiledProblem, plan: LinkedRoutes, customer: int) -> tuple[float, int]:
    """How much longer the plan is at least with a customer, and after whom; infinitely, if there is no
    place."""
    # Arrays of their own: a tuple's take twice as long here.
    nearest, least = ground.nearest[customer], ground.least[customer]
    legs, legs_to = ground.legs[customer], ground.legs_to[customer]
    routes, loads, before, after = plan.route, plan.load, plan.before, plan.after
    leg, longer_leg, location = plan.leg, plan.longer_leg, plan.location
    best, chosen = np.inf, 0
    room, stops = ground.room - ground.delivery[customer], len(ground.delivery)
    overlooked = np.random.randint(OVERLOOKED_ONE_IN)
    for i in range(len(nearest)):
        near = nearest[i]
        if least[i] - longer_leg[near] >= best or loads[routes[near]] > room or i == overlooked:
            continue
        first, second = before[near], after[near]
        longer = legs_to[near] + legs[location[second]] - leg[near]
        if longer < best and is_allowed(ground, plan, customer, near, second, longer):
            best, chosen = longer, near
        longer = legs_to[location[first]] + legs[near] - leg[first]
        if longer < best and is_allowed(ground, plan, customer, first, near, longer):
            best, chosen = longer, first
    alone = ground.alone[customer]
    if alone < best:
        for route in range(len(plan.size) - 1, -1, -1):
            if plan.size[route] == 0 and location[stops + route] == ground.home[customer]:
                return alone, stops + route
    return best, chosen


@step
def is_allowed(
    ground: CompiledProblem, plan: LinkedRoutes, customer: int, first: int, second: int, longer: float
) -> bool:
    """Whether a customer can be served between two others: within the limit, with room on board all the way,
    and these and all after them in time."""
    if ground.limit < np.inf:
        left = ground.limit - plan.length[plan.route[first]]
        if longer + ground.counted[customer] > left:
            return False
    if ground.has_pickups:
        if ground.delivery[customer] > 0 and ground.delivery[customer] > plan.room_before[first]:
            return False
        if ground.pickup[customer] > 0 and ground.pickup[customer] > plan.room_after[first]:
            return False
    if not ground.is_timed:
        return True
    start, end = plan.location[first], plan.location[second]
    begin = max(plan.leaves[first] + ground.travel_to[customer, start], ground.opening[customer])
    if begin > ground.closing[customer]:
        return False
    arrives = begin + ground.service[customer] + ground.travel[customer, end]
    return bool(arrives <= plan.latest[second])


@step
def insert(ground: CompiledProblem, plan: LinkedRoutes, customer: int, after: int, route: int) -> None:
    following = plan.after[after]
    start, end = plan.location[after], plan.location[following]
    plan.after[after], plan.before[customer] = customer, after
    plan.after[customer], plan.before[following] = following, customer
    there, onward = np.float64(ground.legs_to[customer, start]), np.float64(ground.legs[customer, end])
    plan.length[route] += there + onward - plan.leg[after] + ground.counted[customer]
    plan.leg[after], plan.leg[customer] = there, onward
    plan.longer_leg[customer] = max(there, onward)
    plan.longer_leg[after] = max(plan.leg[plan.before[after]], there)
    plan.longer_leg[following] = max(plan.leg[following], onward)
    plan.route[customer] = route
    plan.load[route] += ground.delivery[customer]
    plan.size[route] += 1
    if ground.has_pickups:
        weigh(ground, plan, route)
    if ground.is_timed:
        arrives = plan.leaves[after] + ground.travel_to[customer, start]
        plan.leaves[customer] = max(arrives, ground.opening[customer]) + ground.service[customer]
        leaves_by = plan.latest[following] - ground.travel[customer, end]
        plan.latest[customer] = min(ground.closing[customer], leaves_by - ground.service[customer])
        pass_on(ground, plan, customer, customer)


@step
def remove(ground: CompiledProblem, plan: LinkedRoutes, customer: int) -> float:
    """Removes a customer; returns how much longer the plan is without, as a rule less than nothing. It is
    infinitely much where the way past that customer is so long or slow that the route breaks a rule."""
    route, first, second = plan.route[customer], plan.before[customer], plan.after[customer]
    start, end = plan.location[first], plan.location[second]
    there = np.float64(ground.legs[start, end])
    longer = there - plan.leg[first] - plan.leg[customer]
    plan.after[first], plan.before[second] = second, first
    plan.leg[first] = there
    plan.longer_leg[first] = max(plan.leg[plan.before[first]], there)
    plan.longer_leg[second] = max(plan.leg[second], there)
    plan.longer_leg[customer] = -np.inf
    plan.load[route] -= ground.delivery[customer]
    plan.size[route] -= 1
    plan.length[route] += longer - ground.counted[customer]
    if longer > ground.counted[customer] and plan.length[route] > ground.limit:
        longer = np.inf
    if ground.has_pickups:
        weigh(ground, plan, route)
    if ground.is_timed:
        if plan.leaves[first] + ground.travel[start, end] > plan.latest[second]:
            longer = np.inf
        pass_on(ground, plan, first, second)
    return float(longer)


@step
def weigh(ground: CompiledProblem, plan: LinkedRoutes, route: int) -> None:
    """Brings up to date how much room there is on board along a route: less than none for deliveries behind a
    pickup, and for pickups before a delivery, where deliveries come first."""
    stop = len(ground.delivery) + route
    load, room, place = plan.load[route], ground.room - plan.load[route], stop
    while True:
        plan.room_before[place] = room
        place = plan.after[place]
        if place == stop:
            break
        load += ground.pickup[place] - ground.delivery[place]
        room = min(room, ground.room - load)
        if ground.is_ordered and ground.pickup[place] > 0:
            room = -np.inf
    room, place = ground.room - load, plan.before[stop]
    while True:
        plan.room_after[place] = room
        if place == stop:
            break
        load -= ground.pickup[place] - ground.delivery[place]
        room = min(room, ground.room - load)
        if ground.is_ordered and ground.delivery[place] > 0:
            room = -np.inf
        place = plan.before[place]


@step
def pass_on(ground: CompiledProblem, plan: LinkedRoutes, first: int, second: int) -> None:
    """Brings up to date when the vehicle leaves those after one place, and by when it must be at those before
    another."""
    stops = len(ground.delivery)
    here, following = first, plan.after[first]
    while following < stops:
        arrives = plan.leaves[here] + ground.travel[plan.location[here], following]
        leaves = max(arrives, ground.opening[following]) + ground.service[following]
        if leaves == plan.leaves[following]:
            break
        plan.leaves[following] = leaves
        here, following = following, plan.after[following]
    here, previous = second, plan.before[second]
    while previous < stops:
        leaves_by = plan.latest[here] - ground.travel[previous, plan.location[here]]
        latest = min(ground.closing[previous], leaves_by - ground.service[previous])
        if latest == plan.latest[previous]:
            break
        plan.latest[previous] = latest
        here, previous = previous, plan.before[previous]
