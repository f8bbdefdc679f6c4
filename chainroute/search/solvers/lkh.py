"""LKH-3, where its program `LKH` is on the path: Lin-Kernighan moves with penalties, on 18 variants.

These have one depot, and time windows or a limit on routes but not both: LKH would count waiting towards it.
It counts in whole numbers, in which lengths, times and service share a unit. Where linehauls come first, it
takes customers without demand for linehauls. Its source is at http://webhotel4.ruc.dk/~keld/research/LKH-3;
what is said here was tried with version 3.0.8.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from chainroute.errors import ChainRouteError, Fault, fail
from chainroute.formats import vrplib
from chainroute.plan.solution import Routes
from chainroute.problem import Problem
from chainroute.problem.features import require_known
from chainroute.problem.variants import VARIANTS as ALL
from chainroute.problem.variants import Backhaul
from chainroute.runtime.deadline import OVERRUN_SECONDS, Deadline
from chainroute.search import library
from chainroute.search.library import Found, OnFound, SearchTask, Solver
from chainroute.search.solvers import scaling

PROGRAM = "LKH"
VARIANTS = tuple(v for v in ALL if not v.multi_depot and not (v.limit and v.time_windows))
MAX_LENGTH = 1e8  # and time: LKH adds penalties of nodes to them, in 32 bits
MAX_TOTAL_LOAD = 2e9  # of all demands together, which it adds up in 32 bits
CLOCK_STEP = 100  # to whose multiples it rounds clocks where linehauls come first
STOP_WATCH_SECONDS = 0.1  # seconds between looks at whether the caller wants to stop
MAX_WAIT_SECONDS = 1e6  # that a process can be waited for


def run(task: SearchTask, report: OnFound, stop: threading.Event | None = None) -> None:
    """Reports LKH's plans until the deadline, `stop` or Ctrl-C, the best last."""
    problem, start, deadline = task.problem, task.start, task.deadline.earlier(OVERRUN_SECONDS)
    given = _translated(problem)
    plan = _greedy(given) if start is None else [visits for _, visits in start if visits]
    # With a vehicle for each customer, it would get less far in the same time.
    vehicles = 3 * len(plan) // 2 + 3 if problem.fleet is None else problem.fleet
    vehicles = min(vehicles, problem.num_customers)
    with TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "problem.vrp").write_bytes(vrplib.write_lkh(given.replace(fleet=vehicles)))
        left = min(max(deadline.left, 0.01), MAX_WAIT_SECONDS)
        settings = {
            "PROBLEM_FILE": "problem.vrp",
            "OUTPUT_TOUR_FILE": "$.tour",  # each plan that is better than all before, by its cost
            "SEED": task.seed % 2**31 or 1,
            "RUNS": 1,
            "MAX_TRIALS": 1_000_000_000,
            "TIME_LIMIT": f"{left:.2f}",  # of its own work, later than ours: in case nobody is left to end it
            "PRECISION": 1,  # its default is to multiply lengths by 100
            "MTSP_MIN_SIZE": 0,  # vehicles may stay at home
            "MTSP_MAX_SIZE": problem.num_customers,  # which it forgets to assume of a single vehicle
            "TRACE_LEVEL": 0,
        }
        if len(plan) <= vehicles:
            settings["INITIAL_TOUR_FILE"] = "start"
            (place / "start").write_text(_tour(plan, vehicles, problem.num_locations))
        lines = ["SPECIAL", *(f"{key} = {value}" for key, value in settings.items())]
        (place / "run.par").write_text("\n".join(lines) + "\n")
        error = _end_of(place, deadline, stop)
        tours = sorted(place.glob("*.tour"), key=lambda tour: int(tour.stem), reverse=True)
        plans = [_routes(tour.read_text(), problem.num_locations) for tour in tours[-library.KEPT_REPORTS :]]
        if not tours and error:
            raise fail("solver-failed", "LKH stopped.", cause=error)
    for routes in plans:
        if routes:
            report(Found(routes))


def _end_of(place: Path, deadline: Deadline, stop: threading.Event | None) -> str:
    """Runs LKH in that folder until it ends, or is to end; what went wrong where it ended by itself."""
    process = subprocess.Popen(
        [PROGRAM, "run.par"],
        cwd=place,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for us, who then end it
    )
    try:
        while (left := deadline.left) > 0 and not (stop and stop.is_set()):
            with suppress(subprocess.TimeoutExpired):
                _, error = process.communicate(timeout=min(left, STOP_WATCH_SECONDS))
                said = error.decode(errors="replace").split("\n*** Error ***\n")[-1].strip()
                return (said or f"exit code {process.returncode}") if process.returncode else ""
    except KeyboardInterrupt:
        if not any(place.glob("*.tour")):
            raise
    finally:
        process.kill()
        process.communicate()
    return ""


def _require(p: Problem) -> None:
    """Raises all that keeps LKH from solving the problem."""
    require_known("LKH", p, ())
    faults = []
    if shutil.which(PROGRAM) is None:
        message = "there is no program LKH on the path: build LKH-3 from its source and put it there."
        faults.append(Fault("missing-extra", message, "solver"))
    if p.variant not in VARIANTS:
        message = f"LKH takes one depot, and windows or a limit but not both; this is {p.variant}."
        faults.append(Fault("unsupported-feature", message, "solver"))
    if p.num_customers < 2:
        faults.append(Fault("unsupported-feature", "LKH takes two customers or more.", "customers"))
    if p.duration_matrix is not None and p.time_windows is not None:
        faults.append(Fault("unsupported-feature", "LKH's times are its distances.", "duration_matrix"))
    if faults:
        raise ChainRouteError(faults)


def _translated(p: Problem) -> Problem:
    """The same problem in whole numbers and terms of LKH, which has few of the combinations that we have.

    Service is part of the way on (the same sum in every plan), the way home is nothing where routes are open,
    and a limit is when the depot closes. What is left is one of three types with time windows. Only where the
    matrix is symmetric and there are neither windows nor pickups, LKH is better at its plain type.
    """
    step = CLOCK_STEP if p.backhaul is Backhaul.LINEHAULS_FIRST else 1
    windows = limit = None
    if p.time_windows is not None:
        way, service, early, late = scaling.times(p, MAX_LENGTH / step)
        way += service[:, None]
        windows = np.stack([early, late], axis=1)
    else:
        way, most = scaling.lengths(p, MAX_LENGTH / step)
        if p.backhaul is Backhaul.NONE and np.array_equal(way, way.T):
            limit = None if p.distance_limit is None else max(most, 1)
        else:
            never = way.max(axis=1).sum()
            windows = np.tile([0, never], (p.num_locations, 1))
            windows[0, 1] = min(most, never)
    np.fill_diagonal(way, 0)
    total = float((p.delivery + p.pickup).sum())
    delivery, pickup, capacity = scaling.loads(
        p, min(MAX_LENGTH, MAX_TOTAL_LOAD * p.capacity / max(total, p.capacity))
    )
    return p.replace(
        capacity=min(capacity, int((delivery + pickup).sum()) or 1),
        delivery=delivery[1:],
        pickup=pickup[1:],
        service=(),
        coords=None,
        distance_matrix=way * step,
        duration_matrix=None,
        time_windows=None if windows is None else windows * step,
        distance_limit=limit,
        limit_counts_service=False,
        open=False,
        fleet=None,
        names=(),
        name="problem",
        rounding="exact",
    )


def _greedy(p: Problem) -> list[list[int]]:
    """Routes on which each vehicle goes on to where it can begin first."""
    load = p.deliveries + p.pickups
    opening, closing = p.windows.T
    home = closing[0] if p.distance_limit is None else p.distance_limit
    left = np.arange(p.num_locations) > 0
    routes = []
    while left.any():
        at, now, room, route = 0, opening[0], p.capacity, list[int]()
        while True:
            begin = np.maximum(now + p.distances[at], opening)
            fits = left & (load <= room) & (begin <= closing) & (begin + p.distances[:, 0] <= home)
            if p.backhaul is Backhaul.LINEHAULS_FIRST and p.pickups[at]:
                fits &= p.pickups > 0
            if not fits.any():
                break
            at = int(np.argmin(np.where(fits, begin, np.inf)))
            now, room, left[at] = begin[at], room - load[at], False
            route.append(at)
        routes.append(route or [int(np.argmax(left))])  # who is only reached by a way round is alone and late
        left[routes[-1]] = False
    return routes


def _tour(plan: list[list[int]], vehicles: int, locations: int) -> str:
    """The plan as one tour through all vehicles, in the form that `_routes` reads."""
    depots = [1, *range(locations + 1, locations + vehicles)]
    routes = zip_longest(depots, plan, fillvalue=())
    nodes = [node for depot, visits in routes for node in (depot, *(visit + 1 for visit in visits))]
    return "\n".join(["TOUR_SECTION", *map(str, nodes), "-1", "EOF\n"])


def _routes(tour: str, locations: int) -> Routes:
    """Cut at the depot, node 1, and its copies, which have the numbers after the last location's.

    There are none if the program was ended while it wrote the tour.
    """
    words = tour.partition("TOUR_SECTION")[2].split()
    if "-1" not in words:
        return []
    nodes = [int(word) for word in words[: words.index("-1")]]
    start = nodes.index(1)  # the tour is a circle that may begin anywhere
    routes: Routes = []
    for node in nodes[start:] + nodes[:start]:
        if node == 1 or node > locations:
            routes.append((0, []))
        else:
            routes[-1][1].append(node - 1)
    return [route for route in routes if route[1]]


SOLVER = Solver("LKH", _require, lambda stop: None, run)
solve = SOLVER.solve
