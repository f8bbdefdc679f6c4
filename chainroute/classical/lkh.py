"""LKH-3, where its program `LKH` is on the path: Lin-Kernighan moves with penalties, on eight variants.

LKH counts in whole numbers, in which lengths and times share a unit. Where linehauls come first, it makes no
routes of backhauls alone. Its source is at http://webhotel4.ruc.dk/~keld/research/LKH-3.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from chainroute.classical import common, whole, worker
from chainroute.classical.common import Found, Routes
from chainroute.classical.result import Result
from chainroute.errors import ChainRouteError, Fault
from chainroute.formats import vrplib
from chainroute.problem import Problem
from chainroute.solution import Solution
from chainroute.variants import BY_NAME

PROGRAM = "LKH"
VARIANTS = tuple(
    BY_NAME[name] for name in ("CVRP", "VRPL", "OVRP", "VRPTW", "VRPB", "VRPBTW", "VRPMB", "VRPMBTW")
)
LARGEST = 1e6  # LKH multiplies by 100 and counts in 32 bits
LONGEST = 1e6  # seconds that a process can be waited for
SPARE = 1.2  # vehicles that LKH is given for each that the demand fills


def solve(problem: Problem, time_limit: float, seed: int = 0, initial: Solution | None = None) -> Result:
    """The best solution found within `time_limit` seconds, counted from this call to its return.

    An `initial` solution must be feasible; the result is never worse.
    """
    begin = time.monotonic()
    start = common.prepare(problem, time_limit, seed, initial)
    _require(problem)
    wanted = begin + min(time_limit, worker.LONGEST) - common.OVERRUN
    found = run(problem, seed, wanted)
    return common.judge("LKH", problem, begin, time_limit, start, [] if found is None else [Found(found)])


def run(problem: Problem, seed: int, deadline: float) -> Routes | None:
    """LKH's routes; None if it has none when the deadline (on the monotonic clock) passes."""
    with TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "problem.vrp").write_bytes(vrplib.write_lkh(_whole(problem)))
        left = min(max(deadline - time.monotonic(), 0.01), LONGEST)
        settings = {
            "PROBLEM_FILE": "problem.vrp",
            "TOUR_FILE": "routes.tour",
            "SEED": seed % 2**31 or 1,
            "RUNS": 1,
            "MAX_TRIALS": 1_000_000_000,
            "TIME_LIMIT": f"{0.9 * left:.2f}",
            "MTSP_MIN_SIZE": 0,  # vehicles may stay at home
        }
        lines = ["SPECIAL", *(f"{key} = {value}" for key, value in settings.items())]
        (place / "run.par").write_text("\n".join(lines) + "\n")
        with suppress(subprocess.TimeoutExpired):  # a tour that it has written counts
            subprocess.run(
                [PROGRAM, "run.par"], cwd=place, timeout=left, capture_output=True, stdin=subprocess.DEVNULL
            )
        tour = place / "routes.tour"
        return _routes(tour.read_text(), problem.num_locations) if tour.exists() else None


def _require(p: Problem) -> None:
    """Raises all that keeps LKH from solving the problem."""
    faults = []
    if shutil.which(PROGRAM) is None:
        message = "there is no program LKH on the path: build LKH-3 from its source and put it there."
        faults.append(Fault("missing-extra", message, "solver"))
    if p.variant not in VARIANTS:
        message = f"LKH solves {', '.join(v.name for v in VARIANTS)}, not {p.variant}."
        faults.append(Fault("unsupported-feature", message, "solver"))
    if p.duration_matrix is not None and p.time_windows is not None:
        faults.append(Fault("unsupported-feature", "LKH's times are its distances.", "duration_matrix"))
    if p.distance_matrix is not None and not np.array_equal(p.distances, p.distances.T):
        faults.append(Fault("unsupported-feature", "LKH's distances are symmetric.", "distance_matrix"))
    if faults:
        raise ChainRouteError(faults)


def _whole(p: Problem) -> Problem:
    """The problem in whole numbers, with as many vehicles as LKH is to have."""
    delivery, pickup, capacity = whole.loads(p, LARGEST)
    scale = whole.scale(LARGEST, p.distances)
    total = float(max(p.delivery.sum(), p.pickup.sum()))
    enough = math.ceil(SPARE * total / p.capacity) + 1
    counts = p.time_windows is not None or p.limit_counts_service
    windows = None
    if p.time_windows is not None:
        last = p.distances.max(axis=1).sum() + p.service.sum() + p.windows[:, 0].max()
        low, high = np.minimum(p.windows, last).T * scale
        windows = np.stack([np.ceil(low), np.floor(high)], axis=1)
    return p.replace(
        capacity=min(capacity, int((delivery + pickup).sum()) or 1),
        delivery=delivery[1:],
        pickup=pickup[1:],
        service=np.ceil(p.service * scale) if counts else (),
        coords=None,
        distance_matrix=whole.up(p.distances, scale),
        duration_matrix=None,
        time_windows=windows,
        distance_limit=None if p.distance_limit is None else math.floor(p.distance_limit * scale),
        limit_counts_service=p.limit_counts_service,
        fleet=min(p.num_customers, enough) if p.fleet is None else p.fleet,
        names=(),
        name="problem",
        rounding="exact",
    )


def _routes(tour: str, locations: int) -> Routes:
    """Cut at the depot, node 1, and its copies, which have the numbers after the last location's."""
    words = tour.partition("TOUR_SECTION")[2].split()
    nodes = [int(word) for word in words[: words.index("-1")]]
    start = nodes.index(1)  # the tour is a circle that may begin anywhere
    routes: Routes = []
    for node in nodes[start:] + nodes[:start]:
        if node == 1 or node > locations:
            routes.append((0, []))
        else:
            routes[-1][1].append(node - 1)
    return [route for route in routes if route[1]]
