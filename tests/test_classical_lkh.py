"""LKH: what it is given and how its answer is read, by a stand-in for the program."""

import stat
import sys

import numpy as np
import pytest
from problems import invent

from chainroute import VARIANTS, ChainRouteError, Problem, check, variant
from chainroute.classical import lkh
from chainroute.formats import read
from chainroute.generate import generate

STAND_IN = """#!{python}
import shutil, sys, time
shutil.copy("problem.vrp", {kept!r})
settings = dict(line.split(" = ") for line in open(sys.argv[1]).read().splitlines() if "=" in line)
tour = {tour!r}
if tour:
    with open(settings["TOUR_FILE"], "w") as file:
        print("NAME : it", "TOUR_SECTION", *tour, -1, "EOF", sep="\\n", file=file)
time.sleep({sleep})
"""


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Puts a program LKH on the path that keeps the problem and answers with a tour."""

    def put(tour, sleep=0.0):
        script = STAND_IN.format(
            python=sys.executable, kept=str(tmp_path / "given.vrp"), tour=tour, sleep=sleep
        )
        program = tmp_path / "LKH"
        program.write_text(script)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(tmp_path))
        return tmp_path / "given.vrp"

    return put


def line(**fields):
    n = len(fields["delivery"])
    return Problem(coords=np.c_[np.arange(n + 1.0), np.zeros(n + 1)], **fields)


def codes(error):
    return [(fault.code, fault.where) for fault in error.value.faults]


def test_a_tour_is_cut_at_the_depot_and_its_copies(stand_in):
    """Four nodes; 5 and 6 are copies of the depot, node 1, and the tour begins in the middle of a route."""
    stand_in([3, 5, 6, 4, 1, 2])
    problem = line(capacity=2, delivery=[1, 1, 1])
    result = lkh.solve(problem, 5)
    assert check(problem, result.solution).feasible
    assert {r.visits for r in result.solution.routes} == {(1, 2), (3,)}


def test_the_program_is_given_the_problem_in_whole_numbers(stand_in):
    given = stand_in([1, 2, 3])
    problem = line(capacity=0.3, delivery=[0.1, 0.2], time_windows=[[0, 5], [0.5, 3], [0, np.inf]])
    assert lkh.solve(problem, 5).solution.cost == 4
    text = given.read_text()
    assert "TYPE : CVRPTW" in text
    whole = read(given)
    assert whole.distances[0].tolist() == [0, 100_000, 200_000]
    assert whole.windows[:2].tolist() == [[0, 500_000], [50_000, 300_000]]
    for numbers in (whole.distances, whole.windows, whole.delivery, [whole.capacity]):
        assert (np.asarray(numbers) % 1 == 0).all()


@pytest.mark.parametrize("kind", lkh.VARIANTS, ids=str)
def test_every_variant_it_solves_can_be_written(kind, stand_in):
    """The stand-in finds no tour, which is told; the file that it was given is of the same variant."""
    (problem,) = generate(kind, 8, 1, seed=0)
    given = stand_in([])
    with pytest.raises(ChainRouteError) as error:
        lkh.solve(problem, 5)
    assert codes(error) == [("no-solution", problem.name)]
    assert read(given).variant == kind


def test_what_it_cannot_solve_is_refused(stand_in):
    stand_in([])
    for kind in set(VARIANTS) - set(lkh.VARIANTS):
        with pytest.raises(ChainRouteError, match="LKH solves CVRP") as error:
            lkh.solve(invent(kind, 0, customers=3), 1)
        assert codes(error)[0] == ("unsupported-feature", "solver")
    lopsided = invent(variant("CVRP"), 0, kind="asymmetric")
    with pytest.raises(ChainRouteError) as error:
        lkh.solve(lopsided, 1)
    assert codes(error) == [("unsupported-feature", "distance_matrix")]


def test_a_program_that_goes_on_is_ended_and_its_tour_counts(stand_in):
    stand_in([1, 2, 3], sleep=60)
    result = lkh.solve(line(capacity=2, delivery=[1, 1]), 1.5)
    assert check(result.solution.problem, result.solution).feasible
    assert result.solution.cost == 4
    assert result.seconds < 1.7


def test_a_missing_program_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ChainRouteError, match="no program LKH on the path") as error:
        lkh.solve(line(capacity=1, delivery=[1]), 1)
    assert codes(error) == [("missing-extra", "solver")]
