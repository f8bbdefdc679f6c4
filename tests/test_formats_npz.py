"""The benchmark's .npz files."""

from pathlib import Path

import numpy as np
import pytest

from chainroute import Rounding, variant
from chainroute.arrays import problems_from_arrays
from chainroute.formats import read_many, write
from chainroute.generate import generate_arrays


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
