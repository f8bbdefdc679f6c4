"""Problem: an immutable value in the user's units, whose variant follows from its attributes."""

import dataclasses

import numpy as np
import pytest

from chainroute import VARIANTS, Backhaul, ChainRouteError, Metric, Problem, Rounding


def small(**fields):
    """Two customers, 3 and 4 away from the depot, 5 away from each other."""
    return Problem(**{"capacity": 10, "delivery": [1, 2], "coords": [(0, 0), (3, 0), (0, 4)], **fields})


def test_locations_are_depots_first():
    p = small(num_depots=2, delivery=[7])
    assert (p.num_depots, p.num_customers, p.num_locations) == (2, 1, 3)
    assert (list(p.depots), list(p.customers)) == ([0, 1], [2])
    assert p.names == ("depot 1", "depot 2", "1")
    assert p.deliveries.tolist() == [0, 0, 7]


def test_distances_come_from_coordinates_with_the_problems_rounding():
    assert small().distances.tolist() == [[0, 3, 4], [3, 0, 5], [4, 5, 0]]
    halves = small(coords=[(0, 0), (1.5, 0), (0, 2)], rounding="round")
    assert halves.distances.tolist() == [[0, 2, 2], [2, 0, 3], [2, 3, 0]]
    assert float(halves.distance(0, 1)) == 2


def test_a_matrix_goes_before_the_coordinates_and_is_never_rounded():
    matrix = [[0, 1.25, 9], [2.5, 0, 1], [3, 4, 0]]
    p = small(distance_matrix=matrix, rounding="round")
    assert p.distances.tolist() == matrix
    assert p.distance([0, 1], [1, 0]).tolist() == [1.25, 2.5]
    assert p.durations.tolist() == matrix


def test_distances_are_the_same_once_the_matrix_is_made():
    """Also where there is no road, which only the durations tell."""
    durations = np.array([[0.0, 1.0, np.inf], [2.0, 0.0, 3.0], [4.0, 5.0, 0.0]])
    for extra in ({}, {"rounding": "round"}, {"duration_matrix": durations}):
        problem = Problem(capacity=1, delivery=[1, 1], coords=[(0, 0), (1, 1), (3, 7)], **extra)
        start, end = np.repeat(range(3), 3), np.tile(range(3), 3)
        before = problem.distance(start, end)
        np.testing.assert_array_equal(problem.distances.ravel(), before)
        np.testing.assert_array_equal(problem.distance(start, end), before)


def test_durations_may_differ_from_distances():
    p = small(duration_matrix=[[0, 60, 60], [60, 0, 60], [60, 60, 0]])
    assert (float(p.distance(1, 2)), float(p.duration(1, 2))) == (5, 60)
    assert p.durations[1, 2] == 60


def test_defaults_are_filled_in():
    p = small()
    assert p.pickup.tolist() == p.service.tolist() == [0, 0]
    assert p.names == ("depot", "1", "2")
    assert p.windows.tolist() == [[0, np.inf]] * 3
    assert (p.backhaul, p.metric, p.rounding) == (Backhaul.NONE, Metric.EUCLIDEAN, Rounding.EXACT)


def test_an_infinite_limit_is_no_limit():
    assert small(distance_limit=float("inf")).distance_limit is None


@pytest.mark.parametrize("v", VARIANTS, ids=str)
def test_variant_follows_from_the_attributes(v):
    p = small(
        num_depots=2 if v.multi_depot else 1,
        delivery=[1] if v.multi_depot else [1, 1],
        open=v.open,
        backhaul=v.backhaul,
        distance_limit=20 if v.limit else None,
        time_windows=[(0, 20)] * 3 if v.time_windows else None,
    )
    assert p.variant == v
    assert str(v) in str(p)


def test_fields_cannot_be_assigned():
    with pytest.raises(dataclasses.FrozenInstanceError):
        small().capacity = 5


@pytest.mark.parametrize(
    "field", ["delivery", "pickup", "service", "coords", "time_windows", "distance_matrix"]
)
def test_arrays_cannot_be_written(field):
    p = small(time_windows=[(0, 9)] * 3, distance_matrix=np.zeros((3, 3)))
    with pytest.raises(ValueError, match="read-only"):
        getattr(p, field)[0] = 1


@pytest.mark.parametrize("field", ["distances", "durations", "deliveries", "pickups", "services", "windows"])
def test_derived_arrays_cannot_be_written(field):
    with pytest.raises(ValueError, match="read-only"):
        getattr(small(), field)[0] = 1


def test_the_callers_arrays_stay_theirs():
    """Neither does the problem lock them, nor do later changes reach it."""
    delivery = np.array([1.0, 2.0])
    p = small(delivery=delivery)
    delivery[0] = 99
    assert p.delivery.tolist() == [1, 2]


def test_numpy_numbers_become_plain_ones():
    p = small(capacity=np.float32(10), fleet=np.int64(2), distance_limit=np.int32(50))
    assert [type(x) for x in (p.capacity, p.fleet, p.distance_limit)] == [float, int, float]
    for fleet in (2.0, np.float64(2), np.float32(2)):  # as pandas has them
        again = small(fleet=fleet)
        assert (again.fleet, type(again.fleet)) == (2, int)


def test_replace_changes_some_fields_and_validates_anew():
    p = small(name="before")
    q = p.replace(capacity=20, name="after")
    assert (p.capacity, p.name, q.capacity, q.name) == (10, "before", 20, "after")
    assert q.replace(capacity=10, name="before") == p
    with pytest.raises(ChainRouteError) as error:
        p.replace(capacity=-1)
    assert [f.code for f in error.value.faults] == ["not-positive"]


@pytest.mark.parametrize(
    "change",
    [
        {"capacity": 11},
        {"delivery": [1, 3]},
        {"coords": [(0, 0), (3, 0), (0, 5)]},
        {"time_windows": [(0, 20)] * 3},
        {"open": True},
        {"names": ["depot", "x", "y"]},
        {"fleet": 3},
        {"rounding": "ceil"},
        {"name": "other"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_equality_looks_at_every_field(change):
    assert small() == small()
    assert small() != small(**change)


def test_equality_with_other_things():
    assert small() != "problem"
    with pytest.raises(TypeError):
        hash(small())


def test_text_says_what_it_is():
    assert str(small(name="two")) == "two: CVRP, 2 customers, 1 depot, capacity 10"
    assert repr(small(name="two", num_depots=2, delivery=[1])) == (
        "<Problem two: MDCVRP, 1 customers, 2 depots, capacity 10>"
    )


def test_a_fleet_that_the_demand_just_fills_is_large_enough():
    """The demand is of whole numbers, then of fractions, whose rounded sum may be a little above."""
    for capacity, delivery in ((10, [4, 6, 10]), (1, [0.1, 0.2, 0.7, 0.3, 0.3, 0.4])):
        coords = [(i, 0) for i in range(len(delivery) + 1)]
        assert Problem(capacity=capacity, delivery=delivery, coords=coords, fleet=2).fleet == 2


def test_a_number_that_is_none_is_told_once():
    """And not also as a place that is off the globe."""
    with pytest.raises(ChainRouteError) as error:
        Problem(capacity=1, delivery=[1], coords=[(0, 0), (np.inf, 0)], metric="haversine")
    assert [fault.code for fault in error.value.faults] == ["not-finite"]
