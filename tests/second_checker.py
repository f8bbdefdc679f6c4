"""A second checker, written from docs/modelling.md alone: slow, literal, and without the package's code.

It reads the fields of a problem alone. `judge` gives the cost of a plan, or None where it breaks a rule; a
plan is a list of routes: (depot, visits, type), where depots among the visits are reloads.
"""

import math
from itertools import pairwise, permutations, product

RADIUS = 6_371_008.8
TIME, LOAD = 1e-10, 1e-6


def judge(p, plan):
    plan = [route for route in plan if route[1]]
    visited = [v for _, visits, _ in plan for v in visits if v >= p.num_depots]
    customers = range(p.num_depots, p.num_depots + len(p.delivery))
    if len(set(visited)) < len(visited) or not set(visited) <= set(customers):
        return None
    left_out = 0.0
    for c in set(customers) - set(visited):
        prize = p.prize[c - p.num_depots] if len(p.prize) else math.inf
        if prize == math.inf:
            return None
        left_out += prize
    types = [_filled(p, t) for t in p.vehicle_types] or [_filled(p, None)]
    used = {}
    for depot, _, kind in plan:
        t = types[kind]
        if depot not in t["depots"]:
            return None
        used[kind, depot] = used.get((kind, depot), 0) + 1
        if used[kind, depot] > t["count"]:
            return None
    costs = [_route(p, types[kind], depot, visits) for depot, visits, kind in plan]
    return None if None in costs else sum(costs) + left_out


def _filled(p, t):
    """A type with what the problem says where it says nothing."""

    def of(name):
        own = None if t is None else getattr(t, name)
        return getattr(p, name) if own is None else own

    own = {f: None if t is None else getattr(t, f) for f in ("speed", "distance_matrix", "duration_matrix")}
    count = of("count") if t is not None and t.count is not None else p.fleet
    shared = ("capacity", "open", "distance_limit", "fixed_cost", "cost_per_distance", "cost_per_time")
    return {
        **{name: of(name) for name in shared},
        **own,
        "count": math.inf if count is None else count,
        "depots": range(p.num_depots) if t is None or t.depot is None else [t.depot],
        "end": None if t is None else t.end,
        "open_start": t is not None and t.open_start,
        "shift": (-math.inf, math.inf) if t is None or t.shift is None else t.shift,
        "max_duration": math.inf if t is None or t.max_duration is None else t.max_duration,
        "skills": set() if t is None else set(t.skills),
        "max_trips": 1 if t is None else t.max_trips,
        "reloads": () if t is None else t.reload_depots,
    }


def _length(p, t, a, b):
    matrix = p.distance_matrix if t["distance_matrix"] is None else t["distance_matrix"]
    own = t["distance_matrix"] is not None and t["duration_matrix"] is not None
    closed = not own and any(
        m is not None and m[a][b] == math.inf for m in (p.distance_matrix, p.duration_matrix)
    )
    if matrix is not None:
        return math.inf if closed else float(matrix[a][b])
    if closed:
        return math.inf
    (x1, y1), (x2, y2) = p.coords[a], p.coords[b]
    if p.metric == "haversine":
        u, v = math.radians(y1), math.radians(y2)
        h = math.sin((v - u) / 2) ** 2 + math.cos(u) * math.cos(v) * math.sin(math.radians(x2 - x1) / 2) ** 2
        d = 2 * RADIUS * math.asin(min(1, math.sqrt(h)))
    else:
        d = math.hypot(x2 - x1, y2 - y1)
    rounded = {"round": math.floor(d + 0.5), "ceil": math.ceil(d), "trunc": math.floor(d)}
    return float(rounded.get(str(p.rounding), math.floor(10 * d) / 10 if p.rounding == "trunc1" else d))


def _time(p, t, a, b):
    if t["duration_matrix"] is not None:
        return float(t["duration_matrix"][a][b])
    if t["speed"] is not None:
        return _length(p, t, a, b) / t["speed"]
    if p.duration_matrix is not None:
        return float(p.duration_matrix[a][b])
    return _length(p, t, a, b)


def _windows(p, v):
    several = p.customer_windows[v - p.num_depots] if p.customer_windows and v >= p.num_depots else ()
    if several:
        return sorted(several)
    return [tuple(p.time_windows[v])] if p.time_windows is not None else [(0.0, math.inf)]


def _beyond(value, bound, slack):
    return value > bound + (slack * abs(bound) if math.isfinite(bound) else 0.0)


def _route(p, t, depot, visits):
    """The cost of a route, None where it breaks a rule."""
    stops = [v for v in visits if v >= p.num_depots]
    if any(p.skills and not set(p.skills[v - p.num_depots]) <= t["skills"] for v in stops):
        return None
    reloads = [v for v in visits if v < p.num_depots]
    allowed = t["reloads"] or (depot,)
    if len(reloads) + 1 > t["max_trips"] or not set(reloads) <= set(allowed):
        return None
    if not _carries(p, t, visits):
        return None
    path = [*([] if t["open_start"] else [depot]), *visits]
    if not t["open"]:
        path.append(depot if t["end"] is None else t["end"])
    legs = list(pairwise(path))
    length = sum(_length(p, t, a, b) for a, b in legs)
    service = {v: float(p.service[v - p.num_depots]) for v in stops}
    counted = length + (sum(service.values()) if p.limit_counts_service else 0.0)
    if length == math.inf or (
        t["distance_limit"] is not None and _beyond(counted, t["distance_limit"], TIME)
    ):
        return None
    duration = _duration(p, t, depot, path, legs, service)
    if duration is None:
        return None
    return t["fixed_cost"] + t["cost_per_distance"] * length + t["cost_per_time"] * duration


def _carries(p, t, visits):
    """Whether every trip keeps the capacity and the order of backhauls."""
    trips = [[]]
    for v in visits:
        if v < p.num_depots:
            trips.append([])
        else:
            trips[-1].append(v - p.num_depots)
    for trip in trips:
        load = sum(p.delivery[i] for i in trip)
        if _beyond(load, t["capacity"], LOAD):
            return False
        back = False
        for i in trip:
            if str(p.backhaul) == "linehauls-first":
                if back and p.delivery[i] > 0:
                    return False
                back = back or p.pickup[i] > 0
            load += p.pickup[i] - p.delivery[i]
            if _beyond(load, t["capacity"], LOAD):
                return False
    return True


def _duration(p, t, depot, path, legs, service):
    """The least time from departure to the end; None where no departure keeps all windows and the shift."""
    travel = [_time(p, t, a, b) for a, b in legs]
    if math.inf in travel:
        return None
    (opens, closes), (begins, ends) = _windows(p, depot)[0], t["shift"]
    least = max(opens, begins)
    elapsed, moments = 0.0, [least, closes]
    for place, way in zip(path, [*travel, 0.0], strict=True):
        if not (place is path[0] and not t["open_start"]):
            moments += [edge - elapsed for window in _windows(p, place) for edge in window]
        elapsed += service.get(place, 0.0) + way
    found = []
    for leave in moments:
        if leave < least or _beyond(leave, closes, TIME) or not math.isfinite(leave):
            continue
        end = _driven(p, t, path, travel, service, leave)
        if end is None or _beyond(end, ends, TIME) or _beyond(end - leave, t["max_duration"], TIME):
            continue
        found.append(end - leave)
    return min(found) if found else None


def _driven(p, t, path, travel, service, leave):
    """When a vehicle that leaves then has ended, None where a window is missed."""
    now = leave
    for i, place in enumerate(path):
        if i:
            now += travel[i - 1]
        if i or t["open_start"]:
            fitting = [max(now, a) for a, b in _windows(p, place) if not _beyond(now, b, TIME)]
            if not fitting:
                return None
            now = min(fitting)
        now += service.get(place, 0.0)
    return now


# -- every plan of a tiny problem


def best(p):
    """The least cost of all plans, None where no plan keeps the rules; trips to nobody are not tried."""
    kinds = [(k, d) for k in range(max(1, len(p.vehicle_types))) for d in range(p.num_depots)]
    customers = range(p.num_depots, p.num_depots + len(p.delivery))
    costs = []
    for choice in product([None, *range(len(customers))], repeat=len(customers)):
        if any(g is not None and g > len({*choice[:i]} - {None}) for i, g in enumerate(choice)):
            continue  # groups are numbered as they first appear
        groups = [
            [c for c, g in zip(customers, choice, strict=True) if g == k] for k in sorted({*choice} - {None})
        ]
        for orders in product(*(list(permutations(group)) for group in groups)):
            for vehicles in product(kinds, repeat=len(groups)):
                plan = [(d, list(order), k) for order, (k, d) in zip(orders, vehicles, strict=True)]
                if (cost := judge(p, plan)) is not None:
                    costs.append(cost)
    return min(costs, default=None)
