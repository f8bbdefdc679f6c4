"""Sets from libraries: read in their own convention, packed for other machines, and missing only aloud."""

import pytest
from evaluations import small
from where import SHARED

from chainroute import Backhaul, Problem, Rounding, Solution, check
from chainroute.errors import ChainRouteError
from chainroute.formats import read_solution
from chainroute.research.evaluate import paper, real

shared = pytest.mark.skipif(not SHARED.is_dir(), reason="there is no shared/benchmarks beside the checkout")


def test_sets_are_tasks_smallest_instances_first(tmp_path):
    tasks = real.tasks(small(tmp_path), limit=1)
    assert [task.name for task in tasks] == list(real.LIBRARIES)
    assert {(task.count, task.names, task.best_known) for task in tasks} == {(1, ("small",), (10.0,))}
    solomon = next(task for task in tasks if task.name == "solomon")
    assert solomon.problem(0).rounding is Rounding.TRUNC1


def test_packed_sets_are_the_sets(tmp_path):
    folder, packed = small(tmp_path / "sets"), tmp_path / "real.zip"
    assert real.pack(folder, packed) == 14
    for one, other in zip(real.tasks(folder), real.tasks(packed), strict=True):
        assert (one.name, one.names, one.best_known) == (other.name, other.names, other.best_known)
        assert one.problem(1) == other.problem(1)


def test_a_missing_set_is_named_and_never_replaced(tmp_path):
    with pytest.raises(ChainRouteError, match="say where they are") as error:
        real.tasks(None)
    assert error.value.faults[0].code == "data-missing"
    small(tmp_path)
    (tmp_path / "X" / "bks.csv").unlink()
    (tmp_path / "cmt" / "bks.csv").unlink()
    with pytest.raises(ChainRouteError) as error:
        real.tasks(tmp_path)
    assert [fault.code for fault in error.value.faults] == ["data-missing"] * 2
    assert [task.name for task in real.tasks(tmp_path, only=["SOLOMON"])] == ["solomon"]
    (tmp_path / "solomon" / "small.txt").unlink()
    with pytest.raises(ChainRouteError, match=r"no small\.txt"):
        real.tasks(tmp_path, only=["solomon"])[0].problem(0)


def test_odd_files_are_coded_errors(tmp_path):
    small(tmp_path / "sets")
    (tmp_path / "sets" / "X" / "bks.csv").write_text("instance,cost\na,1\n")
    with pytest.raises(ChainRouteError, match="bad-syntax"):
        real.tasks(tmp_path / "sets", only=["X"])
    (tmp_path / "file").write_text("no archive")
    with pytest.raises(ChainRouteError, match="bad-syntax"):
        real.tasks(tmp_path / "file")


def test_the_convention_of_the_backhaul_set_is_every_vehicle_with_a_delivery():
    """Two vehicles, two deliveries and a pickup on a line."""
    problem = Problem(
        capacity=2, delivery=[1, 1, 0], pickup=[0, 0, 1], backhaul=Backhaul.LINEHAULS_FIRST, fleet=2,
        coords=[(0, 0), (1, 0), (2, 0), (3, 0)],
    )  # fmt: skip
    plans = {((1,), (2, 3)): True, ((1, 2, 3),): False, ((1, 2), (3,)): False}
    for plan, fits in plans.items():
        solution = Solution.of(problem, [(0, visits) for visits in plan])
        assert check(problem, solution).feasible
        assert real._full_fleet(solution) is fits


@shared
def test_stored_routes_raise_no_alarm_and_fit_the_convention():
    """The best known plans of the smallest instances of each set."""
    for task in real.tasks(SHARED, limit=2):
        library = real.LIBRARIES[task.name]
        for i, name in enumerate(task.names):
            problem = task.problem(i)
            stored = next(
                p for e in (".sol", ".res") if (p := SHARED / library.folder / f"{name}{e}").exists()
            )
            solution = read_solution(stored, problem)
            assert task.comparable(solution)
            cost = check(problem, solution).cost
            assert cost >= task.best_known[i] - library.slack


@shared
def test_the_papers_instances_are_in_the_sets():
    sets = {task.name: set(task.names) for task in real.tasks(SHARED)}
    assert sum(map(len, sets.values())) == 367
    for row in paper.real():
        assert row.instance in sets[row.library]
