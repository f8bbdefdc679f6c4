"""Solutions as GeoJSON, for maps: a line for each route, a point for each location, with their facts.

Written, never read. Only problems with longitude and latitude have a place on a map.
"""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainroute.errors import fail
from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.problem.measure import FloatArray, Metric
from chainroute.runtime.files import encode


def require_map(problem: Problem) -> None:
    if problem.coords is None or problem.metric is not Metric.HAVERSINE:
        message = "GeoJSON needs longitude and latitude, which the problem does not have."
        raise fail("cannot-express", message, problem.name)


# For each path of coordinates, the line along the roads; straight lines without it.
RoadLines = Callable[[Sequence[FloatArray]], list[list[list[float]]]]


def write(solution: Solution, lines: RoadLines | None = None) -> bytes:
    p = solution.problem
    require_map(p)
    assert p.coords is not None
    told = zip(solution.as_dict()["routes"], map(solution.path, solution.routes), strict=True)
    routes = [(number, *route) for number, route in enumerate(told, 1) if route[0]["customers"]]
    customers = set(p.names[p.num_depots :])  # at a depot, several vehicles may reload, and often
    visits = {
        stop["customer"]: {"route": number, "stop": place, **stop}
        for number, route, _ in routes
        for place, stop in enumerate(route.pop("stops"), 1)
        if stop["customer"] in customers
    }
    place_of = dict(zip(p.names, p.coords.tolist(), strict=True))
    features = []
    paths = [[place_of[p.names[v]] for v in path] for _, _, path in routes]
    paths = [path * 2 if len(path) == 1 else path for path in paths]  # a line has two ends
    drawn = lines([np.array(path) for path in paths]) if lines else paths
    for (number, route, _), line in zip(routes, drawn, strict=True):
        features.append(_feature("LineString", line, {"kind": "route", "route": number, **route}))
    for i, (name, place) in enumerate(place_of.items()):
        visit = {key: value for key, value in visits.get(name, {}).items() if key != "customer"}
        facts = {"kind": "depot" if i in p.depots else "customer", "name": name, **_facts(p, i), **visit}
        features.append(_feature("Point", place, facts))
    rows = ",\n".join(f"    {json.dumps(feature, ensure_ascii=False)}" for feature in features)
    return encode(f'{{\n  "type": "FeatureCollection",\n  "features": [\n{rows}\n  ]\n}}\n')


def _feature(kind: str, coordinates: Any, facts: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "Feature",
        "geometry": {"type": kind, "coordinates": coordinates},
        "properties": facts,
    }


def _facts(p: Problem, i: int) -> dict[str, Any]:
    """What the problem says of a location."""
    facts: dict[str, Any] = {}
    if i in p.customers:
        facts = {"delivery": p.deliveries[i], "pickup": p.pickups[i], "service": p.services[i]}
    if p.time_windows is not None:
        windows = [[a, b if math.isfinite(b) else None] for a, b in p.windows_of(i)]
        facts |= {"windows": windows} if len(windows) > 1 else {"window": windows[0]}
    return facts
