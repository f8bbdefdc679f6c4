"""OR-Tools' side of the work: the problem as a routing model, the search, and its routes in our numbering.

A dimension is a quantity that grows along a route. Deliveries and pickups are one each. Where backhauls are
mixed, a third is the load, which starts with all deliveries of the route on board; where linehauls come
first, a third is the half of the route (0, then 1).
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from ortools.constraint_solver import pywrapcp, routing_enums_pb2

from chainroute.classical import ortools_fleet, scaling
from chainroute.classical.library import Found, Report, SearchTask
from chainroute.classical.ortools_model import RoutingModel
from chainroute.classical.scaling import UNBOUNDED, IntArray
from chainroute.problem import Problem
from chainroute.variants import Backhaul

REPORT_INTERVAL = 0.1  # seconds between two reports


def search(task: SearchTask, report: Report) -> None:
    """Searches until the deadline; reports routes as they improve."""
    problem = task.problem
    model = ortools_fleet.build(problem) if problem.extras else build(problem)
    solutions, reported = 0, -math.inf

    def tell() -> None:
        nonlocal solutions, reported
        solutions += 1
        if time.monotonic() >= reported + REPORT_INTERVAL:
            report(Found(model.routes(lambda i: model.routing.NextVar(i).Value()), solutions))
            reported = time.monotonic()

    model.routing.AddAtSolutionCallback(tell)
    parameters = pywrapcp.DefaultRoutingSearchParameters()
    parameters.first_solution_strategy = routing_enums_pb2.FirstSolutionStrategy.SAVINGS
    parameters.local_search_metaheuristic = routing_enums_pb2.LocalSearchMetaheuristic.GUIDED_LOCAL_SEARCH
    left = max(task.deadline.left, 0.001)
    parameters.time_limit.FromNanoseconds(int(left * 1e9))
    model.routing.CloseModelWithParameters(parameters)
    if task.start is None:
        found = model.routing.SolveWithParameters(parameters)
    else:
        start = model.routing.ReadAssignmentFromRoutes(model.encode(task.start), True)
        found = model.routing.SolveFromAssignmentWithParameters(start, parameters)
    if found is not None:
        report(Found(model.routes(lambda i: found.Value(model.routing.NextVar(i))), solutions))


def build(problem: Problem) -> RoutingModel:
    p = problem
    vehicles = p.num_customers if p.fleet is None else min(p.fleet, p.num_customers)
    homes = np.repeat(np.arange(p.num_depots), vehicles).tolist()
    manager = pywrapcp.RoutingIndexManager(p.num_locations, len(homes), homes, homes)
    routing = pywrapcp.RoutingModel(manager)
    model = RoutingModel(p, manager, routing, homes)

    length, limit = scaling.lengths(p)
    transit = routing.RegisterTransitMatrix(length.tolist())
    routing.SetArcCostEvaluatorOfAllVehicles(transit)
    if p.distance_limit is not None:
        routing.AddDimension(transit, 0, limit, True, "length")
    if p.time_windows is not None:
        _times(model)
    _loads(model)
    return model


def _times(model: RoutingModel) -> None:
    routing = model.routing
    travel, service, early, late = scaling.times(model.problem)
    horizon = int(late.max())
    transit = routing.RegisterTransitMatrix((travel + service[:, None]).tolist())
    routing.AddDimension(transit, horizon, horizon, False, "time")
    clock = routing.GetDimensionOrDie("time")
    for c in model.problem.customers:
        clock.CumulVar(model.manager.NodeToIndex(c)).SetRange(int(early[c]), int(late[c]))
    for vehicle, home in enumerate(model.homes):
        clock.CumulVar(routing.Start(vehicle)).SetRange(int(early[home]), horizon)
        clock.CumulVar(routing.End(vehicle)).SetRange(int(early[home]), int(late[home]))


def _loads(model: RoutingModel) -> None:
    routing, p = model.routing, model.problem
    delivery, pickup, capacity = scaling.loads(p)
    if capacity == UNBOUNDED:
        capacity = int((delivery + pickup).sum())

    def add(name: str, amounts: IntArray, slack: int, most: int, from_zero: bool) -> Any:
        transit = routing.RegisterUnaryTransitVector(amounts.tolist())
        routing.AddDimension(transit, slack, most, from_zero, name)
        return routing.GetDimensionOrDie(name)

    delivered = add("delivered", delivery, 0, capacity, True)
    if p.backhaul is not Backhaul.NONE:
        add("picked up", pickup, 0, capacity, True)
    if p.backhaul is Backhaul.MIXED:
        load = add("load", pickup - delivery, 0, capacity, False)
        for vehicle in range(len(model.homes)):
            on_board = load.CumulVar(routing.Start(vehicle))
            routing.solver().Add(on_board == delivered.CumulVar(routing.End(vehicle)))
    if p.backhaul is Backhaul.LINEHAULS_FIRST:
        half = add("half", np.zeros_like(delivery), 1, 1, True)
        for c in p.customers:
            if p.deliveries[c] > 0 or p.pickups[c] > 0:
                half.CumulVar(model.manager.NodeToIndex(c)).SetValue(int(p.pickups[c] > 0))
