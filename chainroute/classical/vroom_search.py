"""VROOM's side of the work: the problem in its terms, the search, and its routes in our numbering.

VROOM counts in 32-bit integers, so numbers are smaller here than for other solvers, and a whole day of them
must fit. Lengths are its costs and its distances; its durations are ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta

import numpy as np
import vroom

from chainroute.classical import scaling
from chainroute.classical.library import Found
from chainroute.problem import Problem
from chainroute.runtime.cores import cores
from chainroute.runtime.deadline import Deadline
from chainroute.solution import Routes
from chainroute.variants import Backhaul

MAX_COUNT = 2**32 - 1  # that VROOM can count to
LEVELS = (0, 5)  # of exploration: least, then most


def search(
    problem: Problem,
    initial: Routes | None,
    seed: int,
    deadline: Deadline,
    report: Callable[[Found], None],
) -> None:
    """Searches until the deadline or the end of VROOM's own plan.

    VROOM looks at the clock only after its first constructions, so the short plan comes before the long one.
    """
    model, homes = build(problem)
    best = math.inf
    for level in LEVELS:
        left = timedelta(seconds=max(deadline.left, 0.001))
        found = model.solve(level, nb_threads=cores(), timeout=left).to_dict()
        if not found["unassigned"] and found["summary"]["cost"] < best:
            best = found["summary"]["cost"]
            visits = ([s["id"] for s in route["steps"] if s["type"] == "job"] for route in found["routes"])
            vehicles = (homes[route["vehicle"]] for route in found["routes"])
            report(Found(list(zip(vehicles, visits, strict=True)), level))


def build(problem: Problem) -> tuple[vroom.Input, list[int]]:
    """The problem as VROOM's input, and the depot of each vehicle."""
    p = problem
    largest = MAX_COUNT / (2 * p.num_locations + 2)  # so that the latest time and the highest cost fit, too
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
    vehicles = p.num_customers if p.fleet is None else min(p.fleet, p.num_customers)
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
    return model, homes
