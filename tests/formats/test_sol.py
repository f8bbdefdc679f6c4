"""CVRPLIB's solution files, and our comment for several depots."""

from pathlib import Path

import pytest
import vrplib
from where import DATA

from chainroute import ChainRouteError, Route, Solution, check
from chainroute.formats import parse_solution, read, read_solution, write_solution


def codes_of(text: str, problem_file: str, tmp_path: Path) -> set[str]:
    path = tmp_path / "it.sol"
    path.write_text(text)
    with pytest.raises(ChainRouteError) as caught:
        read_solution(path, read(DATA / problem_file))
    return {fault.code for fault in caught.value.faults}


def test_routes_by_number() -> None:
    problem = read(DATA / "five.vrp")
    solution = read_solution(DATA / "five.sol", problem)
    assert solution.routes == (Route(0, (1, 2)), Route(0, (3, 4)))
    verdict = check(problem, solution)
    assert verdict.feasible
    assert verdict.cost == 48


@pytest.mark.parametrize(
    "text",
    [
        "Route #1: 1 2\r\nRoute #2: 3 4\r\nCost 48\r\n",
        "Route #1: 1 2 \nRoute #2:\t3  4\n\nCost: 48.0\n",
        "route 1: 1 2\nroute 2: 3 4\ncost 48",
        "# by hand\nRoute #1: 1 2\nRoute #2: 3 4\n",
        "Route #1: 1 2\nRoute #2: 3 4\nCost 48\nTime 12.3\nbest iteration: 5e3\n",
    ],
)
def test_ways_to_write_it(text: str, tmp_path: Path) -> None:
    path = tmp_path / "it.sol"
    path.write_bytes(text.encode())
    problem = read(DATA / "five.vrp")
    assert read_solution(path, problem).routes == (Route(0, (1, 2)), Route(0, (3, 4)))


HEAD = """Instance name : five
Authors     : Müller, J., and others
Date        : 2026-11-18
Reference   : "Ways of five", Networks 5, 3-7;
              route planning of 5: a survey
Solution
"""


@pytest.mark.parametrize("code", ["utf-8", "cp1252"])
@pytest.mark.parametrize(
    "text",
    [
        HEAD + "Route 1 : 1 2\nRoute 2 : 3 4\n",
        HEAD.replace("\n", "\r\n") + "\r\nRoute  1:1 2\r\nRoute  2:3 4",
    ],
)
def test_solutions_that_sintef_publishes(text: str, code: str, tmp_path: Path) -> None:
    """Their head is not read; lines count from its beginning; and it is told as no problem."""
    path = tmp_path / "it.txt"
    path.write_bytes(text.encode(code))
    assert read_solution(path, read(DATA / "five.vrp")).routes == (Route(0, (1, 2)), Route(0, (3, 4)))
    with pytest.raises(ChainRouteError, match="is a solution, not a problem"):
        read(path)


def test_a_published_solution_is_broken() -> None:
    problem = read(DATA / "five.vrp")
    for text in (
        f"{HEAD}Route 1 : 1 2\nRoute 2 : 3 x\n",
        "Instance name : five\nRoute 1 : 1\n\n\nDate\n\n\nx",
    ):
        with pytest.raises(ChainRouteError, match="line 8"):
            parse_solution(text.encode(), problem, "it.txt")
    with pytest.raises(ChainRouteError, match="is neither a route nor a cost"):
        parse_solution(HEAD.encode(), problem, "it.txt")


def test_the_stated_cost_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "it.sol"
    path.write_text("Route #1: 1 2\nRoute #2: 3 4\nCost 1\n")
    assert read_solution(path, read(DATA / "five.vrp")).cost == 48


def test_several_depots_are_a_comment_that_vrplib_skips(tmp_path: Path) -> None:
    problem = read(DATA / "depots.vrp")
    solution = read_solution(DATA / "depots.sol", problem)
    assert solution.routes == (Route(0, (2,)), Route(1, (3, 4)))
    assert check(problem, solution).feasible
    write_solution(solution, tmp_path / "copy.sol")
    theirs = vrplib.read_solution(tmp_path / "copy.sol")
    assert theirs["routes"] == [[2], [3, 4]]
    assert theirs["cost"] == pytest.approx(solution.cost)
    assert theirs.keys() == {"routes", "cost"}


def test_cost_is_written_in_full(tmp_path: Path) -> None:
    problem = read(DATA / "windows.txt")
    solution = Solution.of(problem, [(0, [1, 2]), (0, [3])])
    assert check(problem, solution).feasible
    write_solution(solution, tmp_path / "it.sol")
    assert vrplib.read_solution(tmp_path / "it.sol")["cost"] == solution.cost


def test_facts_that_vrplib_writes_are_passed_over(tmp_path: Path) -> None:
    vrplib.write_solution(tmp_path / "it.sol", [[1, 2], [3, 4]], {"Cost": 48, "Time": 12.3})
    solution = read_solution(tmp_path / "it.sol", read(DATA / "five.vrp"))
    assert ([route.visits for route in solution.routes], solution.stated_cost) == ([(1, 2), (3, 4)], 48)


def test_several_depots_must_be_named(tmp_path: Path) -> None:
    text = "Route #1: 2\nRoute #2: 3 4\n"
    assert codes_of(text, "depots.vrp", tmp_path) == {"missing-field"}
    with pytest.raises(ChainRouteError, match="add a line '# Depots: "):
        read_solution(tmp_path / "it.sol", read(DATA / "depots.vrp"))


@pytest.mark.parametrize(
    ("text", "problem", "codes"),
    [
        ("Route #1: 1 2\nRoute #2: 3 9\n", "five.vrp", {"unknown-location"}),
        ("Route #1: 0 1 2 0\n", "five.vrp", {"unknown-location"}),
        ("Route #1: 1 two\n", "five.vrp", {"bad-syntax"}),
        ("Route #1: 1 2.5\n", "five.vrp", {"bad-syntax"}),
        ("Route #1 1 2\n", "five.vrp", {"bad-syntax"}),
        ("Route #1: 1 2\nRuote #2: 3 4\n", "five.vrp", {"bad-syntax"}),
        ("Route #1: 1 2\nCost much\n", "five.vrp", {"bad-syntax"}),
        ("Route #1: 1 2\nroute: 3\n", "five.vrp", {"bad-syntax"}),
        ("Route #1: 1 2\nTime 1 2\n", "five.vrp", {"bad-syntax"}),
        ("Route #1: 1 2\nCost nan\n", "five.vrp", {"not-finite"}),
        ("Route #1: 2\nRoute #2: 3 4\n# Depots: 0\n", "depots.vrp", {"wrong-count"}),
        ("Route #1: 2\nRoute #2: 3 4\n# Depots: 0 2\n", "depots.vrp", {"unknown-location"}),
        ("Route #1: 2\nRoute #2: 3 4\n# Depots: 0 one\n", "depots.vrp", {"bad-syntax", "wrong-count"}),
        ("", "five.vrp", {"file-empty"}),
        ("nothing of the kind\n", "five.vrp", {"unknown-format"}),
    ],
)
def test_broken_solutions(text: str, problem: str, codes: set[str], tmp_path: Path) -> None:
    """Each fault has its code."""
    assert codes_of(text, problem, tmp_path) == codes
