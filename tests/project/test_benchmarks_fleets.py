"""The benchmark of few vehicles runs in a small form, on problems that have the fleets that it says."""

import pytest

from benchmarks import fleets
from benchmarks.rows import read_rows
from chainroute import Problem, Solution

pytestmark = pytest.mark.skipif(
    not fleets.LIBRARY.is_dir(), reason="the libraries are not beside the checkout"
)


def test_fleets_are_the_files_own_or_those_of_stored_plans():
    """The smallest problem of Cordeau's has one vehicle at each depot, and needs them."""
    names = ("solomon", "solomon=", "mdvrp", "mdvrp=", "X")
    found = [next(fleets.problems(name, fleets.LIBRARY, 1)).fleet for name in names]
    assert found == [25, 10, 1, 1, None]


def test_made_problems_are_of_their_kind():
    """The fleets of both are in the file that is kept."""
    made = [next(fleets.problems(name, fleets.LIBRARY, 1)) for name in ("solomon+B2", "solomon+O")]
    assert [problem.variant.name for problem in made] == ["VRPBTW", "OVRPTW"]
    assert [problem.name for problem in made] == ["C101+B2", "C101+O"]
    assert (made[0].delivery > 0).sum() == (made[0].pickup > 0).sum() == 50


def test_the_first_plan_ends_a_call_and_rows_are_not_made_twice(tmp_path, capsys):
    rows = tmp_path / "out" / "fleets.csv"
    arguments = [str(rows), "--sets", "vrpb", "--customers", "25"]
    fleets.main(arguments)
    (names, kinds) = zip(*((row.instance, row.source) for row in read_rows(rows, fleets.Row)), strict=True)
    assert names == ("A1", "A2", "A3", "A4")
    assert set(kinds) <= {"construction", "search"}
    fleets.main(arguments)
    assert len(read_rows(rows, fleets.Row)) == 4
    assert "| vrpb | 4 | 4 |" in capsys.readouterr().out


def test_vehicles_are_counted_at_the_busiest_depot():
    """Two leave the first depot, one the second, and one stays at home."""
    coords = [(0, 0), (9, 0), (1, 0), (2, 0), (8, 0)]
    problem = Problem(capacity=1, delivery=[1, 1, 1], coords=coords, num_depots=2)
    assert fleets.vehicles(Solution.of(problem, [(0, [2]), (0, [3]), (1, [4]), (1, [])])) == 2
