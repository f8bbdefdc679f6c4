"""The benchmark's .npz files."""

import time
from pathlib import Path

import numpy as np
import pytest

from chainroute import ChainRouteError, Rounding, variant
from chainroute.formats import read, read_many, write
from chainroute.generate import generate_arrays
from chainroute.problem.arrays import problems_from_arrays


@pytest.mark.parametrize("name", ["CVRP", "MDOVRPMBLTW"])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_file_of_the_benchmark(name: str, save: object, tmp_path: Path) -> None:
    arrays = generate_arrays(variant(name), 6, 3, seed=7)
    path = tmp_path / "some.npz"
    save(path, **arrays)  # type: ignore[operator]
    problems = read_many(path)
    assert problems == problems_from_arrays(arrays, "some")
    assert {p.rounding for p in problems} == {Rounding.EXACT}
    write(problems, path)
    with np.load(path) as back:
        assert set(back) == set(arrays)
        for key, array in arrays.items():
            assert back[key].dtype == array.dtype
            np.testing.assert_array_equal(back[key], array)


def test_the_same_problems_make_the_same_bytes(tmp_path: Path) -> None:
    problems = problems_from_arrays(generate_arrays(variant("VRPTW"), 6, 3, seed=7), "some")
    write(problems, tmp_path / "a.npz")
    write(problems, tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize("order", ["C", "F"])
def test_one_of_many_is_read_alone(order: str, tmp_path: Path) -> None:
    """200,000 problems in a few kilobytes: the first, one in the middle and the last, with no other made."""
    arrays = {
        "locs": np.zeros((200_000, 3, 2), np.float32),
        "demand_linehaul": np.ones((200_000, 2), np.float32),
        "vehicle_capacity": np.full((200_000, 1), 4, np.float32),
    }
    for i in (0, 123_456, 199_999):
        arrays["locs"][i] = [[0, 0], [1, 0], [0, 1 + i]]
    np.savez_compressed(tmp_path / "many.npz", **{k: np.array(a, order=order) for k, a in arrays.items()})  # type: ignore[call-overload]
    begin = time.process_time()
    for i in (0, 123_456, 199_999):
        problem = read(tmp_path / "many.npz", index=i)
        rows = {key: array[i : i + 1] for key, array in arrays.items()}
        assert problem == problems_from_arrays(rows, f"many[{i}]")[0]
    for index, message in ((None, "holds 200000 problems"), (200_000, "there is no problem 200000")):
        with pytest.raises(ChainRouteError, match=message):
            read(tmp_path / "many.npz", index=index)
    assert time.process_time() - begin < 5  # making all of them takes half a minute


def test_a_row_of_arrays_that_disagree_is_refused(tmp_path: Path) -> None:
    """Three problems, but windows for one: no row of the others is taken for a missing one."""
    arrays = generate_arrays(variant("VRPTW"), 6, 3, seed=7)
    np.savez(tmp_path / "some.npz", **{**arrays, "time_windows": arrays["time_windows"][:1]})  # type: ignore[arg-type]
    for index in (0, 2):
        with pytest.raises(ChainRouteError, match="where there are 3 problems"):
            read(tmp_path / "some.npz", index=index)
