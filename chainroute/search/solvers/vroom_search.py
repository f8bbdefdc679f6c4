"""VROOM's side of the work: the problem in its terms, the search, and its routes in our numbering.

VROOM counts in 32-bit integers, so numbers are smaller here than for other solvers, and a whole day of them
must fit. Lengths are its costs and its distances; its durations are ours.
"""

from __future__ import annotations

import math
from datetime import timedelta
from functools import partial

import numpy as np
import vroom

from chainroute.problem import Problem
from chainroute.problem.fleet import Vehicle
from chainroute.problem.variants import Backhaul
from chainroute.runtime.cores import cores
from chainroute.search.library import Found, OnFound, SearchTask
from chainroute.search.solvers import scaling
from chainroute.search.solvers.fleet_scaling import Clock, Money, finite, loads
from chainroute.search.solvers.scaling import scale, up

MAX_COUNT = 2**32 - 1  # that VROOM can count to
LEVELS = (0, 5)  # of exploration: least, then most


def search(task: SearchTask, report: OnFound) -> None:
    """Searches until the deadline or the end of VROOM's own plan.

    VROOM looks at the clock only after its first constructions, so the short plan comes before the long one.
    """
    problem = task.problem
    model, homes = build_fleet(problem) if problem.extras else build(problem)
    best = math.inf
    for level in LEVELS:
        left = timedelta(seconds=max(task.deadline.left, 0.001))
        found = model.solve(level, nb_threads=cores(), timeout=left).to_dict()
        if not found["unassigned"] and found["summary"]["cost"] < best:
            best = found["summary"]["cost"]
            visits = ([s["id"] for s in route["steps"] if s["type"] == "job"] for route in found["routes"])
            vehicles = (homes[route["vehicle"]] for route in found["routes"])
            routes = [(depot, some, *kind) for (depot, *kind), some in zip(vehicles, visits, strict=True)]
            report(Found(routes, level))


Homes = list[tuple[int, ...]]  # of each vehicle, its depot and, where there may be several, its type


def build(problem: Problem) -> tuple[vroom.Input, Homes]:
    """The problem as VROOM's input, and where its vehicles stand."""
    p = problem
    vehicles = p.num_customers if p.fleet is None else min(p.fleet, p.num_customers)
    largest = _largest(p, vehicles * p.num_depots)
    length, limit = scaling.lengths(p, largest / 4)
    travel, service, early, late = scaling.times(p, largest)
    delivery, pickup, capacity = scaling.loads(p)  # in 64 bits
    horizon = int(late.max()) if p.time_windows is not None else 0
    if p.backhaul is Backhaul.LINEHAULS_FIRST:  # customers without demand count as linehauls
        others = (p.pickups == 0) & (np.arange(p.num_locations) >= p.num_depots)
        travel[np.ix_(p.pickups > 0, others)] = horizon + 1

    model = vroom.Input()
    length = np.minimum(length, int(largest))
    model.set_costs_matrix("car", length)
    model.set_distances_matrix("car", length)
    model.set_durations_matrix("car", travel)
    for c in p.customers:
        window = [vroom.TimeWindow(int(early[c]), int(late[c]))] if p.time_windows is not None else []
        model.add_job(
            vroom.Job(
                c,
                location=c,
                default_service=int(service[c]),
                delivery=[int(delivery[c])],
                pickup=[int(pickup[c])],
                time_windows=window,
            )
        )
    homes = np.repeat(np.arange(p.num_depots), vehicles).tolist()
    for vehicle, d in enumerate(homes):
        model.add_vehicle(
            vroom.Vehicle(
                vehicle,
                start=d,
                end=d,
                capacity=[min(capacity, MAX_COUNT)],
                time_window=vroom.TimeWindow(int(early[d]), min(int(late[d]), horizon)),
                max_distance=min(limit, MAX_COUNT),
            )
        )
    return model, [(d,) for d in homes]


def build_fleet(problem: Problem) -> tuple[vroom.Input, Homes]:
    """A problem beyond the 48 variants: a profile for each vehicle type, with ways and costs of its own."""
    p = problem
    counts = [int(min(vehicle.count, p.num_customers)) for vehicle in p.types]
    largest = _largest(p, sum(n * len(t.depots) for n, t in zip(counts, p.types, strict=True)))
    clock, money = Clock(p, largest / 4), Money(p, largest / 4)
    delivery, pickup, capacities = loads(p)
    # Customers that the same types may serve need one skill, which these types have.
    patterns, pattern_of = np.unique(p.skilled, axis=1, return_inverse=True)
    model = vroom.Input()
    for kind, vehicle in enumerate(p.types):
        _profile(model, p, vehicle, f"type {kind}", clock, money, largest)
    for c in p.customers:
        windows = [clock.window(*window) for window in p.windows_of(c)] if clock.runs else []
        model.add_job(
            vroom.Job(
                c,
                location=c,
                default_service=clock.up(p.services[c]),
                delivery=[int(delivery[c])],
                pickup=[int(pickup[c])],
                skills={int(pattern_of[c - p.num_depots])},
                time_windows=[vroom.TimeWindow(*window) for window in windows],
            )
        )
    homes: Homes = []
    for kind, vehicle in enumerate(p.types):
        for depot in filter(partial(p.can_go_out, vehicle), vehicle.depots):
            end = vehicle.end_of(depot)
            opens = max(clock.early(p.windows[depot, 0]), clock.early(vehicle.shift[0]))
            closes = clock.never if end is None else clock.late(p.windows[end, 1])
            hours = vroom.TimeWindow(opens, max(opens, min(closes, clock.late(vehicle.shift[1]))))
            for _ in range(counts[kind]):
                model.add_vehicle(
                    vroom.Vehicle(
                        len(homes),
                        start=depot,
                        end=end,
                        profile=f"type {kind}",
                        capacity=[min(capacities[kind], MAX_COUNT)],
                        skills=set(np.flatnonzero(patterns[kind]).tolist()),
                        time_window=hours if clock.runs else None,
                        costs=vroom.VehicleCosts(fixed=money.whole(vehicle.fixed_cost)),
                        max_distance=_limit(p, vehicle, largest),
                    )
                )
                homes.append((depot, kind))
    return model, homes


def _largest(p: Problem, vehicles: int) -> float:
    """The largest number of a way, so that the latest time and VROOM's bound on costs fit, too: that is the
    dearest way to each customer, and from and to the depot of every vehicle."""
    return MAX_COUNT / (2 * p.num_locations + 2 * vehicles + 2)


def _length_unit(p: Problem, vehicle: Vehicle, largest: float) -> float:
    """Returns the matrix of the type's lengths, which VROOM has beside its costs."""
    return scale(largest / 4, finite(p.distances if vehicle.distances is None else vehicle.distances))


def _limit(p: Problem, vehicle: Vehicle, largest: float) -> int:
    if vehicle.distance_limit == math.inf:
        return MAX_COUNT
    return min(math.floor(vehicle.distance_limit * _length_unit(p, vehicle, largest)), MAX_COUNT)


def _profile(
    model: vroom.Input, p: Problem, vehicle: Vehicle, name: str, clock: Clock, money: Money, largest: float
) -> None:
    length = p.distances if vehicle.distances is None else vehicle.distances
    time = p.durations if vehicle.durations is None else vehicle.durations
    gone = np.isinf(length) | np.isinf(time)
    length, time = finite(length), finite(time)
    if p.backhaul is Backhaul.LINEHAULS_FIRST:  # customers without demand count as linehauls
        first = (p.deliveries > 0) | (p.pickups == 0)
        first[: p.num_depots] = False
        gone[np.ix_(p.pickups > 0, first)] = True
    np.fill_diagonal(gone, False)
    costs = up(length * vehicle.cost_per_distance, money.scale)
    costs[gone] = int(largest)
    lengths = up(length + (p.services if p.limit_counts_service else 0.0), _length_unit(p, vehicle, largest))
    np.fill_diagonal(lengths, 0)
    lengths[gone] = int(largest)
    travel = up(time, clock.unit) if clock.runs else np.zeros_like(costs)
    travel[gone] = min(clock.never + 1, int(largest)) if clock.runs else 0
    model.set_costs_matrix(name, costs)
    model.set_distances_matrix(name, lengths)
    model.set_durations_matrix(name, travel)
