"""Metrics and rounding conventions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainroute.problem.measure import (
    EARTH_RADIUS,
    SLACK,
    Metric,
    Rounding,
    at_most,
    distance,
    is_whole,
    layout,
    planar,
    rounded,
)


def between(a, b, metric=Metric.EUCLIDEAN, rounding=Rounding.EXACT):
    return float(distance(metric, rounding, np.array(a, dtype=float), np.array(b, dtype=float)))


def test_euclidean_is_pythagoras():
    assert between((1, 1), (4, 5)) == 5


@pytest.mark.parametrize(
    ("rounding", "values"),
    [
        (Rounding.EXACT, [2.0, 2.44, 2.5, 2.96]),
        (Rounding.ROUND, [2, 2, 3, 3]),
        (Rounding.CEIL, [2, 3, 3, 3]),
        (Rounding.TRUNC, [2, 2, 2, 2]),
        (Rounding.TRUNC1, [2.0, 2.4, 2.5, 2.9]),
    ],
)
def test_rounding(rounding, values):
    """Each convention on the same four numbers."""
    assert rounded(np.array([2.0, 2.44, 2.5, 2.96]), rounding).tolist() == values


def test_rounding_applies_to_the_distance():
    """(1, 2) is sqrt(5) = 2.236... away."""
    answers = {r: between((0, 0), (1, 2), rounding=r) for r in Rounding}
    assert answers == {"exact": math.sqrt(5), "round": 2, "ceil": 3, "trunc": 2, "trunc1": 2.2}


@given(st.floats(0, 1e6))
def test_rounding_moves_a_distance_by_less_than_its_step(d):
    value = {r: float(rounded(np.array(d), r)) for r in Rounding}
    assert value["exact"] == d
    assert abs(value["round"] - d) <= 0.5
    assert 0 <= value["ceil"] - d <= 1
    assert 0 <= d - value["trunc"] <= 1
    assert -1e-9 <= d - value["trunc1"] < 0.1 + 1e-9


def test_haversine_matches_a_published_figure():
    """Nashville to Los Angeles airport: 2887.2599506 km on a sphere of 6372.8 km (Rosetta Code)."""
    metres = between((-86.67, 36.12), (-118.40, 33.94), Metric.HAVERSINE)
    assert metres == pytest.approx(2_887_259.9506 * EARTH_RADIUS / 6_372_800, rel=1e-9)


def test_haversine_of_one_degree_and_of_antipodes():
    """A degree of latitude is a 360th of the circumference; antipodes are half of it apart."""
    assert between((10, 20), (10, 21), Metric.HAVERSINE) == pytest.approx(2 * math.pi * EARTH_RADIUS / 360)
    assert between((0, 0), (180, 0), Metric.HAVERSINE) == pytest.approx(math.pi * EARTH_RADIUS)


def test_haversine_crosses_the_date_line():
    assert between((179.5, 0), (-179.5, 0), Metric.HAVERSINE) == pytest.approx(
        between((0, 0), (1, 0), Metric.HAVERSINE)
    )


@pytest.mark.parametrize("metric", Metric)
def test_distance_broadcasts_to_a_symmetric_matrix_with_zero_diagonal(metric):
    places = np.random.default_rng(0).uniform(-80, 80, (7, 2))
    matrix = distance(metric, Rounding.EXACT, places[:, None], places[None])
    assert matrix.shape == (7, 7)
    assert (matrix == matrix.T).all()
    assert (np.diagonal(matrix) == 0).all()
    assert matrix[2, 5] == between(places[2], places[5], metric)


def test_at_most_forgives_rounding_errors_only():
    assert at_most(np.array(0.1 + 0.2), 0.3, SLACK)
    assert at_most(np.array(1e300), math.inf, SLACK)
    assert not at_most(np.array(1000.001), 1000.0, SLACK)
    assert not at_most(np.array(0.1 + 0.2), 0.3, 0.0)


def test_whole_numbers_are_those_that_add_up_exactly():
    """Infinity is no number here; above 2^53 a sum of whole numbers may be rounded."""
    assert is_whole(1.0, np.array([[0.0, -3.0], [2.0**53 - 1, math.inf]]))
    for other in (0.5, 1e7 + 1e-6, 2.0**53):
        assert not is_whole(1.0, np.array([[1.0, 2.0], [3.0, other]]))


def test_layout_finds_places_with_the_given_distances():
    """Nine places in the plane come back from their distances alone, turned and mirrored at most."""
    places = np.random.default_rng(1).uniform(0, 100, (9, 2))
    matrix = distance(Metric.EUCLIDEAN, Rounding.EXACT, places[:, None], places[None])
    found = layout(matrix)
    assert distance(Metric.EUCLIDEAN, Rounding.EXACT, found[:, None], found[None]) == pytest.approx(matrix)
    assert layout(matrix[::-1, ::-1]) == pytest.approx(found[::-1])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_layout_of_a_few_or_coinciding_places(n):
    assert layout(np.zeros((n, n))).tolist() == [[0, 0]] * n


def test_planar_keeps_plane_coordinates():
    coords = np.array([(0.0, 0.0), (3.0, 4.0)])
    assert planar(Metric.EUCLIDEAN, coords) is coords


def test_planar_of_a_town_is_true_to_scale():
    """Within a few kilometres the sphere is flat: distances on the plane are those on the globe."""
    town = np.array([(8.54, 47.37), (8.56, 47.37), (8.54, 47.39)])
    x = planar(Metric.HAVERSINE, town)
    for i, j in [(0, 1), (0, 2), (1, 2)]:
        assert math.dist(x[i], x[j]) == pytest.approx(between(town[i], town[j], Metric.HAVERSINE), rel=1e-3)
