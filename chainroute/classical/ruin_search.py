"""Ruin and recreate, for problems that bound nothing but loads and times: strings of customers are taken off
neighbouring routes and put back one by one where that lengthens the plan least, a few places overlooked. What
has become longer by it is kept the less often the colder it is.

That is slack induction by string removals (Christiaens and Vanden Berghe, 2020). Places are looked for beside
the nearest customers alone, so that an iteration takes as long with ten thousand customers as with a hundred:
some microseconds, where PyVRP's takes a millisecond and finds more.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chainroute.classical.legs import Bounds
from chainroute.classical.library import Found, OnFound, SearchTask
from chainroute.classical.ruin_steps import Chains, Ground, Numbers, anneal, insert
from chainroute.measure import FloatArray
from chainroute.problem import Problem
from chainroute.solution import Routes

NEAREST = 100  # customers beside whom places are looked for
NEAREST_WAITING = 0.5  # what waiting counts there, against a way
LEGS = 10  # to the nearest customers, whose mean is the unit of heat
SPARE_ROUTES = 5  # that a plan may have in addition, where there are vehicles
CHUNK_ITERATIONS = 1_000  # between looks at the clock, a hundredth of a second


def search(task: SearchTask, report: OnFound) -> None:
    """Searches until the deadline from the task's start, ever colder; reports the plan that it ends with."""
    problem, (hot, cold) = task.problem, task.heat
    assert task.start is not None
    ground = ground_of(problem)
    chains = chains_of(problem, task.start, ground)
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
    ground = ground_of(pair)
    anneal(ground, chains_of(pair, [(0, [1, 2])], ground), 1.0, 1, 0)


def ground_of(problem: Problem) -> Ground:
    p, is_timed = problem, problem.time_windows is not None
    legs = p.distances.copy()
    travel = p.durations.copy() if is_timed else np.zeros((1, 1))
    if p.open:
        legs[:, 0] = travel[:, 0] = 0.0
    nearest = nearest_of(legs + NEAREST_WAITING * waiting(p, travel) if is_timed else legs)
    least = np.take_along_axis(np.minimum(legs, legs.T), nearest, axis=1)
    if np.array_equal(legs[1:, 1:], legs[1:, 1:].T):
        least += np.minimum(least, np.minimum(legs[0], legs[:, 0])[:, None])
    short = legs.astype(np.float32)
    return Ground(
        legs=short,
        legs_to=by_end(short),
        demand=p.deliveries,
        room=Bounds(p).room,
        nearest=nearest,
        least=least.astype(np.float32),
        is_timed=is_timed,
        travel=travel,
        travel_to=by_end(travel),
        service=p.services,
        opening=np.ascontiguousarray(p.windows[:, 0]),
        closing=Bounds(p).closing,
    )


def nearest_of(far: FloatArray) -> Numbers:
    """The customers nearest to each location in either direction, the nearest first."""
    largest = np.finfo(float).max
    either = np.minimum(np.minimum(far, far.T), largest / 2)  # who is too late is a customer all the same
    np.fill_diagonal(either, largest)
    either[:, 0] = np.inf
    count = max(1, min(NEAREST, len(far) - 2))
    some = np.argpartition(either, count - 1, axis=1)[:, :count]
    order = np.take_along_axis(either, some, axis=1).argsort(axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1)


def waiting(p: Problem, travel: FloatArray) -> FloatArray:
    """How long a vehicle waits at the least between two locations; infinite where it is too late."""
    opening, closing = p.windows.T
    earliest = np.maximum(opening, opening[0] + travel[0])
    latest = closing if p.open else np.minimum(closing, closing[0] - p.services - travel[:, 0])
    between = p.services[:, None] + travel
    waits = np.maximum(earliest - latest[:, None] - between, 0.0)
    return np.where(earliest[:, None] + between <= latest, waits, np.inf)


def by_end(lengths: NDArray[Any]) -> NDArray[Any]:
    """The transposed matrix, in rows of its own unless it is the same."""
    return lengths if np.array_equal(lengths, lengths.T) else np.ascontiguousarray(lengths.T)


def chains_of(problem: Problem, routes: Routes, ground: Ground) -> Chains:
    p, first, visits = problem, problem.num_locations, [some for _, some in routes if some]
    count = int(min(len(visits) + SPARE_ROUTES, p.fleet or math.inf))
    stops = np.arange(first + count)
    zeros = np.zeros(len(stops))
    chains = Chains(
        after=stops.copy(),
        before=stops.copy(),
        leg=zeros.copy(),
        longer_leg=zeros.copy(),
        leaves=zeros + ground.opening[0] + ground.service[0],
        latest=zeros + (np.inf if p.open else ground.closing[0]),
        route=stops - first,
        load=np.zeros(count),
        size=np.zeros(count, np.int64),
    )
    for route, some in enumerate(visits):
        last = first + route
        for customer in some:
            insert(ground, chains, customer, last, route)
            last = customer
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
