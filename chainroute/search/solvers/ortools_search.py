"""OR-Tools' side of the work: the problem as a routing model, the search, and its routes in our numbering."""

from __future__ import annotations

import math
import time

import numpy as np
from ortools.constraint_solver import pywrapcp, routing_enums_pb2

from chainroute.problem import Problem
from chainroute.search.library import REPORT_SECONDS, Found, OnFound, SearchTask
from chainroute.search.solvers import ortools_fleet, scaling
from chainroute.search.solvers.ortools_model import RoutingModel
from chainroute.search.solvers.scaling import UNBOUNDED


def search(task: SearchTask, report: OnFound) -> None:
    """Searches until the deadline; reports routes as they improve."""
    problem = task.problem
    model = ortools_fleet.build(problem) if problem.extras else build(problem)
    solutions, reported = 0, -math.inf

    def tell() -> None:
        nonlocal solutions, reported
        solutions += 1
        if time.monotonic() >= reported + REPORT_SECONDS:
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
    delivery, pickup, capacity = scaling.loads(p)
    room = int((delivery + pickup).sum()) if capacity == UNBOUNDED else capacity
    model.add_loads(delivery, pickup, [room] * len(homes))
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
