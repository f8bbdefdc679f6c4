"""problem/budget.py: nothing large is made before its size is known to fit, no matrix before it is needed."""

import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainroute import ChainRouteError, Problem, Solution, VehicleType, check
from chainroute.problem import fleet
from chainroute.problem.budget import MAX_MATRIX_BYTES


def along_a_line(customers, *types, **more):
    """Customers at 1, 2, 3, ... along a line from the depot."""
    coords = [(i, 0) for i in range(customers + 1)]
    return Problem(capacity=99, delivery=[1] * customers, coords=coords, vehicle_types=types, **more)


def made(problem):
    """How many matrices of vehicle types have been made."""
    ways = {id(w): w for t in problem.types for w in (t.lengths, t.times) if w is not None}
    return sum("matrix" in vars(w) for w in ways.values())


def test_matrices_of_types_are_made_when_they_are_needed_and_once_per_speed():
    types = [VehicleType(name=f"v{i}", count=1, speed=1 + i % 3) for i in range(30)]
    p = along_a_line(4, *types)
    verdict = check(p, Solution.of(p, [(0, [1, 2, 3, 4], 1)]))
    assert (verdict.feasible, verdict.cost) == (True, 8)
    assert p.ways(p.types[1], [0, 4, 0]) == ([4, 4], [2, 2])
    assert made(p) == 0
    assert p.types[1].durations is p.types[4].durations
    assert made(p) == 1
    assert p.types[2].durations[0, 3] == 1
    assert len({id(t.durations) for t in p.types}) == 3


@pytest.mark.parametrize(("customers", "speeds"), [(1000, 1000), (2000, 200), (10_000, 5)])
def test_too_many_speeds_are_refused_before_a_matrix_is_made(customers, speeds):
    tracemalloc.start()
    begin = time.process_time()
    with pytest.raises(ChainRouteError) as caught:
        along_a_line(customers, *(VehicleType(speed=1 + i) for i in range(speeds)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    (fault,) = caught.value.faults
    assert (fault.code, fault.at.field) == ("too-large", "vehicle_types")
    assert f"{speeds} matrices" in fault.message
    assert f"{MAX_MATRIX_BYTES / 1e6:,.0f}" in fault.message
    assert peak < 8 * (customers + 1) ** 2 < MAX_MATRIX_BYTES
    assert time.process_time() - begin < 5


def test_a_fleet_of_many_speeds_takes_less_memory_than_one_matrix():
    tracemalloc.start()
    p = along_a_line(3000, *(VehicleType(speed=1 + i, max_duration=9000) for i in range(20)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert p.matrix_count == 21
    assert peak < 8 * 3001**2 / 4


TYPES = st.builds(
    VehicleType,
    speed=st.sampled_from([None, 0.5, 1.0, 2.0, 3.0]),
    open_start=st.booleans(),
    distance_matrix=st.sampled_from([None, np.abs(np.subtract.outer(range(5), range(5))) * 1.5]),
)


@given(st.lists(TYPES, min_size=1, max_size=4), st.booleans())
def test_entries_are_those_of_the_matrices(types, several_depots):
    """Of each vehicle, as computed one by one before any matrix is there, and by the literal rule."""
    more = {"duration_matrix": np.abs(np.subtract.outer(range(5), range(5))) * 7.0} if several_depots else {}
    coords = [(0, 0), (1, 2), (5, 5), (3, 0), (0, 4)]
    depots = 1 + several_depots
    p = Problem(
        capacity=9, delivery=[1] * (5 - depots), num_depots=depots, coords=coords,
        vehicle_types=types, **more,
    )  # fmt: skip
    assert 0 <= fleet.count_matrices(p.vehicle_types) <= 2 * len(types)
    for t, v in zip(p.vehicle_types or types, p.types, strict=True):
        single = [[p.ways(v, [a, b]) for b in range(5)] for a in range(5)]
        length = p.distances if t.distance_matrix is None else t.distance_matrix
        time = p.durations if p.duration_matrix is not None or t.distance_matrix is None else length
        time = time if t.speed is None else length / t.speed
        if t.open_start:
            length, time = length.copy(), time.copy()
            length[:depots, depots:] = time[:depots, depots:] = 0
        assert np.array_equal([[ways[0][0] for ways in row] for row in single], length)
        assert np.array_equal([[ways[1][0] for ways in row] for row in single], time)
        assert np.array_equal(p.distances if v.distances is None else v.distances, length)
        assert np.array_equal(p.durations if v.durations is None else v.durations, time)


def test_trips_of_types_from_depots_to_customers_are_priced():
    """A thousand types that start at each of a thousand depots are a file of 100 kB."""
    types = [VehicleType(fixed_cost=i) for i in range(1000)]
    coords = [(i, 0) for i in range(2000)]
    with pytest.raises(ChainRouteError, match="1,000,000,000 trips") as caught:
        Problem(capacity=1, delivery=[1] * 1000, num_depots=1000, coords=coords, vehicle_types=types)
    assert [f.code for f in caught.value.faults] == ["too-large"]
