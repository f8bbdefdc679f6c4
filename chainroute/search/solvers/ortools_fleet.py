"""What lies beyond the 48 variants as a routing model of OR-Tools: vehicle types, costs, prizes, windows.

Every vehicle of every type stands for itself. Ways, loads, hours and limits are its own; whom it may not
serve is taken from its choices; an optional customer is in a disjunction with a penalty.
A route that ends anywhere ends at a node that is no way off. Trips are beyond it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from ortools.constraint_solver import pywrapcp

from chainroute.problem import Problem
from chainroute.problem.fleet import Vehicle
from chainroute.problem.measure import FloatArray
from chainroute.search.solvers.fleet_scaling import Clock, Money, finite, loads
from chainroute.search.solvers.ortools_model import RoutingModel
from chainroute.search.solvers.scaling import FORBIDDEN_FACTOR, UNBOUNDED, IntArray, scale, up

MAX_LENGTH = 1e8  # of one way, where lengths are limited


def build(problem: Problem) -> RoutingModel:
    p = problem
    kinds = [
        (number, depot)
        for number, vehicle in enumerate(p.types)
        for depot in vehicle.depots
        if p.can_go_out(vehicle, depot)
        for _ in range(int(min(vehicle.count, p.num_customers)))
    ]
    ends = [p.types[number].end_of(depot) for number, depot in kinds]
    nowhere = p.num_locations
    manager = pywrapcp.RoutingIndexManager(
        nowhere + (None in ends),  # where nobody ended it would have to be visited
        len(kinds),
        [depot for _, depot in kinds],
        [nowhere if end is None else end for end in ends],
    )
    routing = pywrapcp.RoutingModel(manager)
    model = RoutingModel(p, manager, routing, [depot for _, depot in kinds], [number for number, _ in kinds])
    for depot in set(p.depots).difference(model.homes, ends):  # else it would be somebody to visit
        index = manager.NodeToIndex(depot)
        routing.AddDisjunction([index], 0)
        routing.ActiveVar(index).SetValue(0)
    money = Money(p)
    _costs(model, money)
    _choices(model, money)
    _lengths(model)
    _times(model, money)
    delivery, pickup, capacities = loads(p)
    model.add_loads(delivery, pickup, [capacities[kind] for kind in model.kinds])
    return model


def _gone(p: Problem, vehicle: Vehicle) -> Any:
    """Ways that the vehicle has no road for."""
    length = p.distances if vehicle.distances is None else vehicle.distances
    time = p.durations if vehicle.durations is None else vehicle.durations
    return np.isinf(length) | np.isinf(time)


def _per_type(model: RoutingModel, matrix: Callable[[Vehicle], IntArray]) -> list[int]:
    """For each vehicle, the transit that its type's matrix is; nowhere is no way off."""
    routing = model.routing
    made = [
        routing.RegisterTransitMatrix(np.pad(matrix(vehicle), (0, 1)).tolist())
        for vehicle in model.problem.types
    ]
    return [made[number] for number in model.kinds]


def _costs(model: RoutingModel, money: Money) -> None:
    p = model.problem

    def arc_costs(vehicle: Vehicle) -> IntArray:
        length = finite(p.distances if vehicle.distances is None else vehicle.distances)
        cost = up(length * vehicle.cost_per_distance, money.scale)
        cost[_gone(p, vehicle)] = FORBIDDEN_FACTOR * (int(cost.max()) + 1)
        np.fill_diagonal(cost, 0)
        return cost

    for vehicle, transit in enumerate(_per_type(model, arc_costs)):
        model.routing.SetArcCostEvaluatorOfVehicle(transit, vehicle)
        kind = p.types[model.kinds[vehicle]]
        model.routing.SetFixedCostOfVehicle(money.whole(kind.fixed_cost), vehicle)


def _choices(model: RoutingModel, money: Money) -> None:
    """Who may serve whom, and whom nobody need serve."""
    p, routing = model.problem, model.routing
    for c in p.customers:
        index = model.manager.NodeToIndex(c)
        able = [v for v, kind in enumerate(model.kinds) if p.skilled[kind, c - p.num_depots]]
        if p.prizes[c] < math.inf:
            routing.AddDisjunction([index], money.whole(p.prizes[c]))
        if len(able) < len(model.kinds):
            nobody = [-1] if p.prizes[c] < math.inf else []
            routing.VehicleVar(index).SetValues([*nobody, *able])


def _lengths(model: RoutingModel) -> None:
    p = model.problem
    if not p.variant.limit:
        return
    service = p.services if p.limit_counts_service else np.zeros(p.num_locations)

    def of(vehicle: Vehicle) -> FloatArray:
        length = finite(p.distances if vehicle.distances is None else vehicle.distances) + service[:, None]
        np.fill_diagonal(length, 0.0)
        return length

    unit = scale(MAX_LENGTH, *(of(vehicle) for vehicle in p.types))
    transits = _per_type(model, lambda vehicle: up(of(vehicle), unit))
    limits = [p.types[kind].distance_limit for kind in model.kinds]
    most = [UNBOUNDED if limit == math.inf else math.floor(limit * unit * (1 + 1e-14)) for limit in limits]
    model.routing.AddDimensionWithVehicleTransitAndCapacity(transits, 0, most, True, "length")


def _times(model: RoutingModel, money: Money) -> None:
    p, routing, clock = model.problem, model.routing, Clock(model.problem)
    if not clock.runs:
        return
    service = np.array([clock.up(s) for s in p.services])

    def travel(vehicle: Vehicle) -> IntArray:
        time = finite(p.durations if vehicle.durations is None else vehicle.durations)
        found: IntArray = up(time, clock.unit) + service[:, None]
        found[_gone(p, vehicle)] = clock.never + 1
        np.fill_diagonal(found, 0)
        return found

    # Service at the last stop passes on the way to nowhere, too.
    made = [
        routing.RegisterTransitMatrix(_with_nowhere(travel(vehicle), service).tolist()) for vehicle in p.types
    ]
    transits = [made[number] for number in model.kinds]
    routing.AddDimensionWithVehicleTransits(transits, clock.never, clock.never, False, "time")
    times = routing.GetDimensionOrDie("time")
    for c in p.customers:
        moment = times.CumulVar(model.manager.NodeToIndex(c))
        windows = [clock.window(*window) for window in p.windows_of(c)]
        moment.SetRange(windows[0][0], windows[-1][1])
        for (_, closing), (opening, _) in pairwise(windows):
            moment.RemoveInterval(closing + 1, opening - 1)
    for number, (depot, kind) in enumerate(zip(model.homes, model.kinds, strict=True)):
        vehicle = p.types[kind]
        end = vehicle.end_of(depot)
        opening, closing = (clock.early(p.windows[depot, 0]), clock.late(p.windows[depot, 1]))
        first = max(opening, clock.early(vehicle.shift[0]))
        last = min(
            clock.never if end is None else clock.late(p.windows[end, 1]), clock.late(vehicle.shift[1])
        )
        times.CumulVar(routing.Start(number)).SetRange(first, max(first, closing))
        times.CumulVar(routing.End(number)).SetRange(0, last)
        if vehicle.max_duration < math.inf:
            times.SetSpanUpperBoundForVehicle(clock.down(vehicle.max_duration), number)
        if rate := money.of_time(vehicle, clock.unit):
            times.SetSpanCostCoefficientForVehicle(rate, number)


def _with_nowhere(travel: IntArray, service: IntArray) -> IntArray:
    whole = np.pad(travel, (0, 1))
    whole[:-1, -1] = service
    return whole
