"""Cordeau's format for several depots, and its solutions."""

from pathlib import Path

import pytest
from where import DATA

from chainroute import ChainRouteError, Problem, Route, check
from chainroute.formats import read, read_solution, write

DEPOTS = Problem(
    name="mdvrp",
    num_depots=2,
    fleet=2,
    capacity=10,
    distance_limit=40,
    limit_counts_service=True,
    coords=[[0, 0], [20, 0], [3, 4], [17, 4], [20, 5], [0, 2]],
    delivery=[7, 7, 2, 1],
    service=[2, 2, 1, 3],
)


def test_file_by_hand() -> None:
    assert read(DATA / "mdvrp.txt") == DEPOTS


def test_a_limit_of_zero_is_none(tmp_path: Path) -> None:
    path = tmp_path / "mdvrp.txt"
    path.write_text((DATA / "mdvrp.txt").read_text().replace("40 10", "0 10"))
    assert read(path) == DEPOTS.replace(distance_limit=None, limit_counts_service=False)


def test_a_limit_without_service_times_has_nothing_to_count(tmp_path: Path) -> None:
    problem = DEPOTS.replace(service=(), limit_counts_service=False)
    write(problem, tmp_path / "mdvrp.txt")
    assert read(tmp_path / "mdvrp.txt") == problem


def test_as_many_vehicles_as_customers_is_no_limit(tmp_path: Path) -> None:
    write(DEPOTS.replace(fleet=None), tmp_path / "mdvrp.txt")
    assert (tmp_path / "mdvrp.txt").read_text().startswith("2 4 4 2\n")
    assert read(tmp_path / "mdvrp.txt").fleet is None


def test_windows_are_the_last_columns(tmp_path: Path) -> None:
    windows = [[0, 99], [5, 98], [6, 20], [0, 50], [40, 60], [1, 2]]
    problem = DEPOTS.replace(time_windows=windows, distance_limit=None, limit_counts_service=False)
    path = tmp_path / "mdvrp.txt"
    write(problem, path)
    lines = path.read_text().splitlines()
    assert lines[0] == "6 2 4 2"
    assert lines[3] == "1 3 4 2 7 1 2 1 2 6 20"
    assert lines[-1] == "6 20 0 0 0 0 0 5 98"
    assert read(path) == problem


def test_a_limit_together_with_windows_would_count_waiting(tmp_path: Path) -> None:
    with pytest.raises(ChainRouteError, match="waiting"):
        write(DEPOTS.replace(time_windows=[[0, 99]] * 6), tmp_path / "it.txt")


def test_solution_with_either_depot_mark() -> None:
    problem = read(DATA / "mdvrp.txt")
    solution = read_solution(DATA / "mdvrp.res", problem)
    assert solution.routes == (Route(0, (2, 5)), Route(1, (3, 4)))
    verdict = check(problem, solution)
    assert verdict.feasible
    assert verdict.cost == pytest.approx(23.77, abs=0.005)


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        ("3 1 15.61 8 0 1 4 0", {"unknown-location"}),
        ("1.5 1 15.61 8 0 1 4 0", {"unknown-location"}),
        ("1 1 15.61 8 0 1 5 0", {"unknown-location"}),
        ("1 1 15.61 8 0 1 1.5 0", {"unknown-location"}),
        ("1 1 15.61 8 0 1 4", {"bad-syntax"}),
        ("1 1 15.61 8 6 1 4 6", {"bad-syntax"}),
        ("1 1 15.61 8", {"bad-syntax"}),
        ("1 1 15.61 8 0 one 4 0", {"bad-syntax", "unknown-location"}),
        ("1 1 15.61 nan 0 1 4 0", {"not-finite"}),
    ],
)
def test_broken_solutions(line: str, codes: set[str], tmp_path: Path) -> None:
    """Each fault has its code and names the line."""
    path = tmp_path / "it.res"
    path.write_text((DATA / "mdvrp.res").read_text().replace("1 1 15.61 8 0 1 4 0", line))
    with pytest.raises(ChainRouteError) as caught:
        read_solution(path, DEPOTS)
    assert {fault.code for fault in caught.value.faults} == codes
    assert {fault.where for fault in caught.value.faults} == {"line 2"}
