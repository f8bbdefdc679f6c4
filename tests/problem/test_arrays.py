"""The benchmark's arrays and the problems in them."""

import numpy as np
import pytest

from chainroute import VARIANTS, Backhaul, ChainRouteError, Problem
from chainroute.generate import generate_arrays
from chainroute.problem.arrays import arrays_from_problems, problems_from_arrays
from chainroute.problem.variants import Variant


def test_arrays_by_hand() -> None:
    """Two problems with two depots and one customer each, every attribute present."""
    arrays = {
        "locs": np.array([[[0, 0], [1, 0], [0, 1]], [[0, 0], [0, 2], [0, 1]]], np.float32),
        "demand_linehaul": np.array([[0.5], [0]], np.float32),
        "demand_backhaul": np.array([[0], [0.25]], np.float32),
        "backhaul_class": np.array([[1], [2]], np.float32),
        "open_route": np.array([[True], [False]]),
        "time_windows": np.array([[[0, 9], [0, 8], [1, 2]], [[0, 9], [0, 9], [3, 4]]], np.float32),
        "service_time": np.array([[0, 0, 0.5], [0, 0, 0.25]], np.float32),
        "distance_limit": np.array([[3], [np.inf]], np.float32),
        "vehicle_capacity": np.array([[1], [2]], np.float32),
        "speed": np.ones((2, 1), np.float32),
        "num_depots": np.array([[2], [2]], np.int32),
    }
    first, second = problems_from_arrays(arrays, "pair")
    assert first == Problem(
        name="pair[0]", num_depots=2, coords=[[0, 0], [1, 0], [0, 1]], delivery=[0.5], service=[0.5],
        time_windows=[[0, 9], [0, 8], [1, 2]], distance_limit=3, open=True, capacity=1,
        backhaul=Backhaul.LINEHAULS_FIRST,
    )  # fmt: skip
    assert second == Problem(
        name="pair[1]", num_depots=2, coords=[[0, 0], [0, 2], [0, 1]], delivery=[0], pickup=[0.25],
        service=[0.25], time_windows=[[0, 9], [0, 9], [3, 4]], capacity=2, backhaul=Backhaul.MIXED,
    )  # fmt: skip


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_arrays_come_back_bit_for_bit(variant: Variant) -> None:
    arrays = generate_arrays(variant, 5, 3, seed=1)
    problems = problems_from_arrays(arrays, "some")
    assert [p.variant for p in problems] == [variant] * 3
    back = arrays_from_problems(problems)
    assert back.keys() == arrays.keys()
    for key, array in arrays.items():
        assert back[key].dtype == array.dtype, key
        np.testing.assert_array_equal(back[key], array, key)


def test_numbers_that_single_precision_would_change_stay_double() -> None:
    problem = Problem(capacity=3, delivery=[0.1], coords=[[0, 0], [0.5, 0.25]])
    arrays = arrays_from_problems([problem])
    assert arrays["demand_linehaul"].dtype == np.float64
    assert arrays["locs"].dtype == np.float32


def test_one_problem_keeps_the_name() -> None:
    problem = Problem(name="alone", capacity=3, delivery=[1], coords=[[0, 0], [0.5, 0.25]])
    assert problems_from_arrays(arrays_from_problems([problem]), "alone") == [problem]


def test_problems_of_different_kind_do_not_share_arrays() -> None:
    one = Problem(capacity=3, delivery=[1], coords=[[0, 0], [1, 1]])
    for other in (
        one.replace(open=True),
        Problem(capacity=3, delivery=[1, 1], coords=[[0, 0], [1, 1], [2, 2]]),
    ):
        with pytest.raises(ChainRouteError, match="cannot-express"):
            arrays_from_problems([one, other])


@pytest.mark.parametrize(
    "problems", [[], [Problem(capacity=3, delivery=[1], coords=[[0, 0], [1, 1]], fleet=1)]]
)
def test_what_arrays_cannot_hold_is_refused(problems: list[Problem]) -> None:
    with pytest.raises(ChainRouteError):
        arrays_from_problems(problems)


def test_faults_name_the_problem_and_are_no_flood() -> None:
    arrays = generate_arrays(VARIANTS[0], 10, 30, seed=1)
    arrays["demand_linehaul"][4:] = 2
    with pytest.raises(ChainRouteError) as caught:
        problems_from_arrays(arrays, "bad")
    assert caught.value.faults[0].where.startswith("bad[4]: customer '1'")
    assert len(caught.value.faults) == 21
    assert str(caught.value.faults[-1].message) == "and 240 more."  # of 26 problems with 10 customers each
