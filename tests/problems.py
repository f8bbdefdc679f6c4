"""Problems for tests: small random ones of every variant, odd ones among them, all sound by construction.

Each customer has a depot from which a vehicle of its own can serve it, so every problem has a solution:
one route per customer.
"""

import numpy as np
from hypothesis import strategies as st

from chainroute import VARIANTS, Backhaul, ChainRouteError, Problem, Solution, check

KINDS = (
    "plane",
    "lonlat",
    "matrix",
    "asymmetric",
    "durations",
    "rounded",
    "tenths",
    "crowded",
    "unmetric",
    "whole",
)


def invent(variant, seed, customers=6, depots=None, kind="plane", fleet=False):
    """A problem of that variant. About one customer in ten has no demand, depots have windows of their own,
    service counts towards the limit in half of the problems that have one, and where backhauls are mixed some
    customers receive and hand over in a third of the problems.

    kind: where distances come from, see `places`. fleet: whether there is a number of vehicles.
    """
    rng = np.random.default_rng([seed, VARIANTS.index(variant)])
    m = depots or (int(rng.integers(2, 5)) if variant.multi_depot else 1)
    given = places(kind, m, m + customers, rng)
    bare = Problem(capacity=1, delivery=np.ones(customers), num_depots=m, **given)
    scale = typical(bare)
    home, at = rng.integers(m, size=customers), m + np.arange(customers)

    demand = rng.integers(0, 10, customers).astype(float)
    back = rng.random(customers) < (0.4 if variant.backhaul is not Backhaul.NONE else 0)
    both = back & (variant.backhaul is Backhaul.MIXED) & (seed % 3 == 0)  # they also receive something
    service = rng.uniform(0, 0.2, customers) * scale * (variant.time_windows or rng.random() < 0.3)
    if kind == "tenths":
        service = service.round(1)
    if kind == "whole":
        service = service.round()
    if variant.time_windows:
        given["time_windows"] = windows(bare, home, service, variant.open, rng)
        if kind == "tenths":
            low, high = given["time_windows"].T
            given["time_windows"] = np.c_[np.floor(low * 10) / 10, np.ceil(high * 10) / 10]
        if kind == "whole":
            low, high = given["time_windows"].T
            given["time_windows"] = np.c_[np.floor(low), np.ceil(high)]
    if variant.limit:
        given["limit_counts_service"] = bool(rng.random() < 0.5)
        trip = bare.distances[home, at] + (0 if variant.open else bare.distances[at, home])
        trip += service * given["limit_counts_service"]
        given["distance_limit"] = max(trip.max(), 1) * rng.choice([1, rng.uniform(1, 1.8)])  # may just do
        if kind == "whole":
            given["distance_limit"] = np.floor(given["distance_limit"])
    capacity = float(rng.integers(12, 30))
    if kind == "whole":  # vehicles that two or three customers just fill, or overfill by one
        demand = np.where(demand == 0, 0, rng.integers(0, 10**7, customers))
        some = rng.choice(demand, min(customers, int(rng.integers(2, 4))), replace=False)
        capacity = max(some.sum() - rng.integers(2), demand.max(), 1)
    return Problem(
        capacity=capacity,
        delivery=np.where(back, demand // 2 * both, demand),
        pickup=np.where(back, demand, 0),
        service=service,
        num_depots=m,
        open=variant.open,
        backhaul=variant.backhaul,
        fleet=int(np.bincount(home).max()) if fleet else None,
        name=f"{variant} {kind} {seed}",
        **given,
    )


def places(kind, m, n, rng):
    """Coordinates or matrices for n locations, m of them depots, as fields of a Problem."""
    coords = rng.uniform(0, 100, (n, 2))
    distance = np.hypot(*(coords[:, None] - coords).transpose(2, 0, 1))
    match kind:
        case "plane":
            return {"coords": coords}
        case "lonlat":
            return {"coords": coords / 1000 + [8.5, 47.3], "metric": "haversine"}
        case "matrix":
            return {"distance_matrix": distance}
        case "asymmetric":
            return {"distance_matrix": distance * rng.uniform(0.8, 1.3, (n, n))}
        case "durations":  # other units, and not in proportion to the distances
            return {"coords": coords, "duration_matrix": distance * rng.uniform(0.03, 0.06, (n, n))}
        case "rounded":
            return {"coords": coords, "rounding": str(rng.choice(["round", "ceil", "trunc"]))}
        case "tenths":
            return {"coords": coords, "rounding": "trunc1"}
        case "crowded":  # many at the same place
            return {"coords": coords[rng.integers(max(n // 3, 1), size=n)]}
        case "whole":
            return {"distance_matrix": (distance * 1e5).round()}
        case "unmetric":  # a way round is often shorter, and between some customers there is no road
            distance = rng.uniform(1, 100, (n, n))
            distance[m:, m:][rng.random((n - m, n - m)) < 0.1] = 1e9
            np.fill_diagonal(distance, 0)
            return {"distance_matrix": distance}


def typical(bare):
    """The mean duration of the roads that there are."""
    return bare.durations.mean(where=np.isfinite(bare.durations))


def windows(bare, home, service, open, rng):
    """Time windows in which each customer can be served from its own depot and, unless routes are open,
    be left for it in time. Some are a single moment; depots have hours of their own."""
    m, customers = bare.num_depots, bare.num_customers
    at, scale = m + np.arange(customers), typical(bare)
    opens = rng.uniform(-0.5, 0.5, m) * scale
    arrival = opens[home] + bare.durations[home, at]
    opening = arrival + rng.uniform(-1, 2.5, customers) * scale
    start = np.maximum(opening, arrival)
    closing = start + rng.choice([0, 1, 1, 1], customers) * rng.uniform(0.02, 2, customers) * scale
    closing[rng.random(customers) < 0.1] = np.inf
    end = start + service + (0 if open else bare.durations[at, home])
    closes = np.array([max(end[home == d], default=opens[d]) for d in range(m)])
    return np.c_[np.r_[opens, opening], np.r_[closes + rng.uniform(0, 1, m) * scale, closing]]


def one_route_each(problem):
    """A feasible solution of an invented problem without a fleet: from some depot that can serve it, to each
    customer a vehicle of its own."""

    def broken(customer, depot):
        verdict = check(problem, Solution.of(problem, [(depot, [customer])]))
        return [v for v in verdict.violations if v.route]

    return Solution.of(
        problem,
        [(next(d for d in problem.depots if not broken(c, d)), [c]) for c in problem.customers],
    )


@st.composite
def problems(draw, variants=VARIANTS, max_customers=8, kinds=KINDS):
    """Hypothesis: an invented problem of any of the variants and kinds."""
    return invent(
        draw(st.sampled_from(variants)),
        draw(st.integers(0, 2**32 - 1)),
        customers=draw(st.integers(1, max_customers)),
        kind=draw(st.sampled_from(kinds)),
        fleet=draw(st.booleans()),
    )


def two_on_a_line(**fields):
    """Customers A, B at 10 and 20 along a line from the depot at 0."""
    base = {
        "capacity": 10,
        "delivery": [4, 3],
        "coords": [(0, 0), (10, 0), (20, 0)],
        "names": ["depot", "A", "B"],
    }
    return Problem(**{**base, **fields})


def hardened(problem, closing, limit, **fields):
    """The problem with those fields, with windows and limit cut to that share; None where that is refused."""
    if problem.time_windows is not None:
        low, high = problem.time_windows.T
        wide = np.where(np.isfinite(high), high - low, 0.0)
        fields["time_windows"] = np.c_[low, np.where(np.isfinite(high), low + wide * closing, high)]
    if problem.distance_limit is not None:
        fields["distance_limit"] = problem.distance_limit * limit
    try:
        return problem.replace(**fields)
    except ChainRouteError:
        return None


def line(**fields):
    """Customers A, B, C at 10, 20 and 30 along a line from the depot at 0."""
    base = {
        "name": "line",
        "capacity": 10,
        "delivery": [4, 3, 2],
        "coords": [(0, 0), (10, 0), (20, 0), (30, 0)],
        "names": ["depot", "A", "B", "C"],
    }
    return Problem(**{**base, **fields})


def judged_costs(problems, solutions):
    """The costs of solutions, all of which the judge accepts."""
    for problem, solution in zip(problems, solutions, strict=True):
        verdict = check(problem, solution)
        assert verdict.feasible, verdict
    return np.array([solution.cost for solution in solutions])


def on_a_line(*types, **fields):
    """Customers at 1, 2, 3, ... along a line from the depot at 0."""
    coords = [(x, 0) for x in range(len(fields["delivery"]) + 1)]
    return Problem(coords=coords, vehicle_types=types, **fields)


def codes(error):
    """The code and the place of each fault of a caught error."""
    return [(fault.code, fault.where) for fault in error.value.faults]
