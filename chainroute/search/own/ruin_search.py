"""Ruin and recreate: strings of customers are taken off neighbouring routes and put back one by one where
that lengthens the plan least, a few places overlooked. What has become longer by it is kept the less often
the colder it is.

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

from chainroute.plan.solution import Routes
from chainroute.problem import Problem
from chainroute.problem.measure import FloatArray
from chainroute.search.library import Found, OnFound, SearchTask
from chainroute.search.own.legs import Bounds
from chainroute.search.own.ruin_steps import CompiledProblem, LinkedRoutes, Numbers, anneal, insert
from chainroute.search.own.savings import Alone, waiting_between

NEAREST = 100  # customers beside whom places are looked for
NEAREST_WAITING = 0.5  # what waiting counts there, against a way
LEGS = 10  # to the nearest customers, whose mean is the unit of heat
SPARE_ROUTES = 5  # that a plan may have in addition, where there are vehicles
ROUNDED_SHARE = 2.0**-23  # of a length, at most, by which legs in single precision make it too short
CHUNK_ITERATIONS = 1_000  # between looks at the clock, a hundredth of a second


def search(task: SearchTask, report: OnFound) -> None:
    """Searches until the deadline from the task's start, ever colder; reports the plan that it ends with."""
    problem, (hot, cold) = task.problem, task.heat
    assert task.start is not None
    ground = ground_of(problem)
    chains = chains_of(problem, task.start, ground)
    customers = np.array(problem.customers)
    leg = float(ground.legs[customers[:, None], ground.nearest[problem.num_depots :, :LEGS]].mean())
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


def ground_of(problem: Problem) -> CompiledProblem:
    p, bounds, alone, is_timed = problem, Bounds(problem), Alone.of(problem), problem.time_windows is not None
    depots, legs = p.num_depots, p.distances.copy()
    travel = p.durations.copy() if is_timed else np.zeros((1, 1))
    if p.open:
        legs[:, :depots] = travel[:, :depots] = 0.0
    every = np.arange(p.num_locations)
    waits = NEAREST_WAITING * waiting_between(p, alone, every[:, None], every) if is_timed else 0.0
    nearest = nearest_of(legs + waits, depots)
    least = np.take_along_axis(np.minimum(legs, legs.T), nearest, axis=1)
    if np.array_equal(legs[depots:, depots:], legs[depots:, depots:].T):
        to_depot = np.minimum(legs[:depots].min(axis=0), legs[:, :depots].min(axis=1))
        least += np.minimum(least, to_depot[:, None])
    short = legs.astype(np.float32)
    return CompiledProblem(
        depots=depots,
        legs=short,
        legs_to=by_end(short),
        home=alone.depot,
        alone=alone.out + alone.home,
        nearest=nearest,
        least=least.astype(np.float32),
        delivery=p.deliveries,
        room=bounds.room,
        has_pickups=bool(p.pickup.any()),
        pickup=p.pickups,
        is_ordered=bounds.ordered,
        limit=bounds.limit if np.array_equal(short, legs) else bounds.limit * (1 - ROUNDED_SHARE),
        counted=p.services if p.limit_counts_service else np.zeros(p.num_locations),
        is_timed=is_timed,
        travel=travel,
        travel_to=by_end(travel),
        service=p.services,
        opening=np.ascontiguousarray(p.windows[:, 0]),
        closing=bounds.closing,
    )


def nearest_of(far: FloatArray, depots: int) -> Numbers:
    """The customers nearest to each location in either direction, the nearest first."""
    largest = np.finfo(float).max
    either = np.minimum(np.minimum(far, far.T), largest / 2)  # who is too late is a customer all the same
    np.fill_diagonal(either, largest)
    either[:, :depots] = np.inf
    count = max(1, min(NEAREST, len(far) - depots - 1))
    some = np.argpartition(either, count - 1, axis=1)[:, :count]
    order = np.take_along_axis(either, some, axis=1).argsort(axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1)


def by_end(lengths: NDArray[Any]) -> NDArray[Any]:
    """The transposed matrix, in rows of its own unless it is the same."""
    return lengths if np.array_equal(lengths, lengths.T) else np.ascontiguousarray(lengths.T)


def chains_of(problem: Problem, routes: Routes, ground: CompiledProblem) -> LinkedRoutes:
    """The plan, and for each depot some routes that have no customers yet, where there are vehicles."""
    p, some = problem, [(depot, visits) for depot, visits in routes if visits]
    spare = int(min(SPARE_ROUTES, (p.fleet or math.inf) - len(some)))
    depot = np.array([depot for depot, _ in some] + list(range(p.num_depots)) * spare)
    stops = np.arange(p.num_locations + len(depot))
    zeros, none = np.zeros(len(stops)), np.zeros(len(depot))
    location = np.concatenate([np.arange(p.num_locations), depot])
    chains = LinkedRoutes(
        after=stops.copy(),
        before=stops.copy(),
        leg=zeros.copy(),
        longer_leg=zeros.copy(),
        leaves=ground.opening[location] + ground.service[location],
        latest=zeros + np.inf if p.open else ground.closing[location],
        room_before=zeros + ground.room,
        room_after=zeros + ground.room,
        location=location,
        route=stops - p.num_locations,
        load=none.copy(),
        size=np.zeros(len(depot), np.int64),
        length=none.copy(),
    )
    for route, (_, visits) in enumerate(some):
        last = p.num_locations + route
        for customer in visits:
            insert(ground, chains, customer, last, route)
            last = customer
    return chains


def routes_of(chains: LinkedRoutes) -> Routes:
    first = len(chains.after) - len(chains.load)
    routes: Routes = []
    for stop in range(first, len(chains.after)):
        visits, customer = [], int(chains.after[stop])
        while customer < first:
            visits.append(customer)
            customer = int(chains.after[customer])
        if visits:
            routes.append((int(chains.location[stop]), visits))
    return routes
