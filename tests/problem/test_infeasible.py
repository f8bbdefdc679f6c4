"""Proofs of impossibility: each by a case that can be computed by hand, and none is ever wrong."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from problems import hardened, problems

from chainroute import Problem
from chainroute.problem.infeasible import largest_clique, packing_bound, proofs
from chainroute.search.own.exact import optimum

NAMES = ["depot", "Ada", "Bob", "Eve"]


def three(**fields):
    """Ada, Bob and Eve 10 to the east, north and west of the depot; 10 x sqrt 2 or 20 apart."""
    base = {
        "capacity": 10,
        "delivery": [1, 1, 1],
        "coords": [(0, 0), (10, 0), (0, 10), (-10, 0)],
        "names": NAMES,
        "fleet": 2,
    }
    return Problem(**{**base, **fields})


def only(problem):
    (finding,) = proofs(problem)
    assert optimum(problem) is None
    return finding


def test_nothing_is_found_where_there_is_a_plan():
    for fields in ({}, {"fleet": None}, {"fleet": 1}, {"delivery": [5, 5, 5]}):
        assert proofs(three(**fields)) == []


def test_three_that_take_more_than_half_a_vehicle():
    """Their sum would do for two vehicles, but no two of them fit into one."""
    finding = only(three(delivery=[6, 6, 6]))
    assert (finding.kind, finding.needed, finding.available) == ("load", 3, 2)
    assert finding.customers == ("Ada", "Bob", "Eve")
    assert finding.message == (
        "'Ada', 'Bob' and 'Eve' each take more than half a vehicle: "
        "the deliveries take at least 3 vehicles of 10; there are 2."
    )


def test_three_that_are_open_at_the_same_time():
    """Each opens at 10 and closes at 20, and from one to the next takes 14 or 20."""
    p = three(time_windows=[(0, 99), (10, 20), (10, 20), (10, 20)])
    pairs = next(f for f in proofs(p) if f.kind == "pairs")
    assert optimum(p) is None
    assert pairs.customers == ("Ada", "Bob", "Eve")
    assert pairs.message == (
        "no two of 'Ada', 'Bob' and 'Eve' can be on one route because of their windows, "
        "so they take 3 vehicles; there are 2."
    )


def test_three_of_whom_a_limit_allows_one_to_a_route():
    """20 there and back; by way of a second customer at least 34."""
    p = three(distance_limit=30)
    finding = next(f for f in proofs(p) if f.kind == "pairs")
    assert optimum(p) is None
    assert "because of the limit" in finding.message
    assert finding.needed == 3


def test_one_van_for_many_stops_of_an_hour():
    """Three stops of 20 between 0 and 30: any two can be begun in time, three cannot."""
    matrix = np.ones((4, 4)) - np.eye(4)
    p = three(
        coords=None,
        distance_matrix=matrix,
        fleet=1,
        service=[20] * 3,
        time_windows=[(0, 999), *[(0, 30)] * 3],
    )
    finding = only(p)
    assert (finding.kind, finding.customers) == ("windows", ("Ada", "Bob", "Eve"))
    assert finding.message == (
        "service of 'Ada', 'Bob' and 'Eve' must begin between 1 and 30; "
        "with service and ways that takes 42, and 1 vehicle has 29."
    )


def test_routes_too_short_for_all():
    """Three ways of at least 10 and one home: 40, in one route of at most 35."""
    matrix = 10 * (np.ones((4, 4)) - np.eye(4))
    finding = next(
        f
        for f in proofs(three(coords=None, distance_matrix=matrix, fleet=1, distance_limit=35))
        if f.kind == "limit"
    )
    assert finding.needed == 2
    assert finding.message == (
        "to reach every customer takes at least 40 in all, and 1 vehicle has 35 within the limit."
    )


def test_customers_of_one_of_two_depots():
    """Ada and Bob, on opposite sides of the west depot, are too far from the east one and its vehicle."""
    p = Problem(
        capacity=10,
        delivery=[1, 1],
        num_depots=2,
        coords=[(0, 0), (1000, 0), (10, 0), (-10, 0)],
        names=["west", "east", "Ada", "Bob"],
        time_windows=[(0, 99), (0, 99), (0, 15), (0, 15)],
        fleet=1,
    )
    findings = proofs(p)
    assert optimum(p) is None
    assert findings[0].message == (
        "'Ada' and 'Bob' cannot be on one route because of their windows, "
        "so they take 2 vehicles; there is one at west."
    )
    assert (findings[0].needed, findings[0].available) == (2, 1)
    assert proofs(p.replace(fleet=2)) == []


def test_linehauls_first_leaves_one_order():
    """Bob can only be reached before Ada, but hands over, and Ada receives."""
    p = Problem(
        capacity=10,
        delivery=[1, 0],
        pickup=[0, 1],
        backhaul="linehauls-first",
        coords=[(0, 0), (10, 0), (20, 0)],
        time_windows=[(0, 99), (30, 60), (0, 25)],
        names=NAMES[:3],
        fleet=1,
    )
    assert only(p).customers == ("Ada", "Bob")


def test_a_detour_by_another_customer_is_no_proof():
    """From Ada to Bob there is only the long way, but by Eve it is short."""
    matrix = np.full((4, 4), 2.0) - 2 * np.eye(4)
    matrix[1, 2] = matrix[2, 1] = 100
    p = three(coords=None, distance_matrix=matrix, fleet=1, distance_limit=8)
    assert proofs(p) == []
    assert optimum(p) is not None


# -- none is ever wrong


@settings(max_examples=10 * settings.default.max_examples)
@given(
    problem=problems(max_customers=5),
    fleet=st.integers(1, 2),
    capacity=st.floats(0.5, 2),
    closing=st.floats(0, 1),
    limit=st.floats(0.6, 1),
)
def test_what_is_proven_impossible_has_no_plan(problem, fleet, capacity, closing, limit):
    """All plans are tried, of problems of every variant made hard: few and small vehicles, short windows."""
    hard = hardened(problem, closing, limit, fleet=fleet, capacity=max(problem.capacity * capacity, 1e-3))
    if hard is None:
        return
    if proofs(hard):
        assert optimum(hard) is None, proofs(hard)


@settings(max_examples=5 * settings.default.max_examples)
@given(st.lists(st.integers(0, 10), min_size=1, max_size=6), st.integers(10, 15))
@example([5, 5, 5, 5, 5, 5], 15)  # exactly three in a bin
@example([4, 4, 4, 4, 4, 1], 12)
def test_the_packing_bound_is_a_bound(amounts, capacity):
    """Against the fewest bins by trying all ways, and never below the sum."""
    bound, _ = packing_bound(np.array(amounts, dtype=float), float(capacity))
    fewest = next(
        bins
        for bins in range(1, len(amounts) + 1)
        if any(
            all(
                sum(a for a, b in zip(amounts, placed, strict=True) if b == bin) <= capacity
                for bin in range(bins)
            )
            for placed in itertools.product(range(bins), repeat=len(amounts))
        )
    )
    assert -(-sum(amounts) // capacity) <= bound <= fewest


@pytest.mark.parametrize(
    ("amounts", "capacity", "bins"),
    [
        ([7] * 12, 20, 6),  # two in each, and their sum would go into five
        ([4] * 13, 15, 5),  # three in each
        ([5] * 12, 15, 4),  # exactly three: nothing is lost
        ([14, 14, 7, 7, 7], 20, 4),  # the large ones count for two
    ],
)
def test_how_many_go_into_a_vehicle_is_counted(amounts, capacity, bins):
    assert packing_bound(np.array(amounts, dtype=float), float(capacity))[0] == bins


def test_loads_of_which_only_two_fit_a_vehicle_are_proven():
    problem = Problem(
        capacity=20, delivery=[7] * 12, coords=[(0, 0), *((i, 1) for i in range(12))], fleet=5, names=()
    )
    (finding,) = proofs(problem)
    assert (finding.kind, finding.needed, finding.available) == ("load", 6, 5)
    assert proofs(problem.replace(fleet=6)) == []


@given(st.integers(1, 7), st.integers(0, 2**32 - 1))
def test_the_largest_clique_of_a_small_graph(n, seed):
    adjacent = np.random.default_rng(seed).random((n, n)) < 0.6
    adjacent = adjacent & adjacent.T & ~np.eye(n, dtype=bool)
    found = largest_clique(adjacent)
    assert all(adjacent[i, j] for i, j in itertools.permutations(found, 2))
    sizes = (
        size
        for size in range(n, 0, -1)
        for some in itertools.combinations(range(n), size)
        if all(adjacent[i, j] for i, j in itertools.permutations(some, 2))
    )
    assert len(found) == next(sizes)


@pytest.mark.parametrize("kind", ["plane", "matrix", "dense"])
def test_proofs_take_little_time(kind):
    """200 customers, with windows and a limit; where many exclude each other the search is cut short."""
    rng = np.random.default_rng(0)
    n = 200
    coords = rng.uniform(0, 100, (n + 1, 2))
    starts = rng.uniform(0, 500 if kind != "dense" else 100, n)
    matrix = np.sqrt(((coords[:, None] - coords) ** 2).sum(2))
    p = Problem(
        capacity=100,
        delivery=rng.integers(1, 10, n),
        time_windows=[(0, 1000), *zip(starts + 150, starts + 190, strict=True)],
        service=np.full(n, 10.0),
        distance_limit=600,
        fleet=20,
        **({"coords": coords} if kind == "plane" else {"distance_matrix": matrix}),
    )
    begin = time.process_time()
    proofs(p)
    assert time.process_time() - begin < 0.5
