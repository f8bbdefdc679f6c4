"""Which customers of a problem can be served: its vehicles' trips and its customers' requirements."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chainroute.errors import Fault, Place
from chainroute.problem.budget import MAX_TRIPS
from chainroute.problem.fleet import Vehicle, Ways
from chainroute.problem.measure import FloatArray, Rounding
from chainroute.problem.servable import Reach, Requirements, Trips, shortest_paths, unloadable

if TYPE_CHECKING:
    from chainroute.problem import Problem


def faults_of(p: Problem) -> list[Fault]:
    """The customers that cannot be served, by all vehicles or by any, and why."""
    return [*_unloadable(p), *_unservable(p)]


def _unloadable(p: Problem) -> list[Fault]:
    rooms = [(t.count * len(t.depots) * t.max_trips, t.capacity) for t in p.types]
    args = rooms, p.load_slack, p.required, partial(_place, p)
    return [*unloadable(p.delivery, p.pickup, p.backhaul, *args)]


def _unservable(p: Problem) -> list[Fault]:
    """Returns the customers that no vehicle can serve by a route of its own, with the reasons."""
    if p.time_windows is None and p.has_all_roads and not p.variant.limit and not p.extras:
        return []
    trips = sum(len(t.depots) for t in p.types) * p.num_customers
    if trips > MAX_TRIPS:
        message = f"{trips:,} trips of vehicle types from depots to customers; at most {MAX_TRIPS:,}."
        return [Fault("too-large", message, "vehicle_types", "Name the depot of each vehicle type.")]
    reach = Reach(_trips(p, direct=True), _requirements(p))
    if not reach.possible[reach.requirements.required].all() and _has_shortcuts(p):
        reach = p.reach
    return reach.faults()


def reach_of(p: Problem) -> Reach:
    """Who can be served at all, and why not."""
    return Reach(_trips(p, direct=not _has_shortcuts(p)), _requirements(p))


def _has_shortcuts(p: Problem) -> bool:
    """Whether a detour may be shorter than the direct way, so that only shortest paths prove anything."""
    own = any(t.lengths is not None or t.open_start for t in p.types)
    own |= any(t.duration_matrix is not None for t in p.vehicle_types)
    matrices = p.distance_matrix is not None or p.duration_matrix is not None
    return own or matrices or p.rounding is not Rounding.EXACT


def _requirements(p: Problem) -> Requirements:
    windows = p.windows[p.num_depots :][None]
    if p.customer_windows:
        each = [p.windows_of(c) for c in p.customers]
        windows = np.tile([np.inf, -np.inf], (max(map(len, each)), len(each), 1))
        for i, some in enumerate(each):
            windows[: len(some), i] = some
    slacks = p.time_slack, p.length_slack
    return Requirements(
        windows, p.service, p.required, p.skills, *slacks, partial(_place, p), p.moment, p.span
    )


def _trips(p: Problem, direct: bool) -> Trips:
    """The trips from each depot, for each kind of vehicle there, by direct ways or by shortest paths."""
    rows = [_trips_of(p, t, able, direct) for t, able in zip(p.types, p.skilled, strict=True)]
    return Trips.of_all(rows)


def _trips_of(p: Problem, t: Vehicle, able: NDArray[np.bool_], direct: bool) -> Trips:
    m, starts = p.num_depots, np.array(t.depots)
    ends = starts if t.end is None else np.full_like(starts, t.end)
    at = np.asarray(p.customers)[None, :]

    def both(own: Ways | None, way: Any, every: Any) -> tuple[FloatArray, FloatArray]:
        if direct:
            between = way if own is None else own.at
            go, back = between(starts[:, None], at), between(at, ends[:, None])
        else:
            ways = every() if own is None else own.matrix
            go, back = shortest_paths(ways, m)[starts], shortest_paths(ways.T, m)[ends]
        return go, np.zeros_like(back) if t.open else back

    times = both(t.times, p.duration, lambda: p.durations)
    alike = p.duration_matrix is None and t.times is None and t.lengths is None
    lengths = times if alike else both(t.lengths, p.distance, lambda: p.distances)
    opening = [p.windows[d, 0] if p.can_leave(t, d) else math.inf for d in t.depots]
    demand = np.maximum(p.delivery, p.pickup)

    def each(value: float) -> FloatArray:
        return np.full((len(starts), 1), value)

    return Trips(
        *times,
        lengths[0] + (p.service if p.limit_counts_service else 0.0),
        lengths[1],
        leaves=np.maximum(np.array(opening)[:, None], t.shift[0]),
        returns=each(t.shift[1]) if t.open else np.minimum(p.windows[ends, 1:], t.shift[1]),
        limit=each(t.distance_limit),
        longest=each(t.max_duration),
        fits=each(1) * demand <= t.capacity * (1 + p.load_slack),
        skilled=each(1) * able > 0,
    )


def _place(p: Problem, customer: int) -> Place:
    """Where a fault of a customer is, counted from 0."""
    location = p.num_depots + customer
    return Place("customer", location=location, name=p.names[location])
