"""Why there is no plan: what is proven, what the nearest plan breaks, and relaxations that are sure to do."""

import json
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import hardened, problems

from chainroute import ChainRouteError, Problem, Solution, VehicleType, check
from chainroute.formats import write
from chainroute.problem.infeasible import proofs
from chainroute.search.solvers import pyvrp
from chainroute.solve import explain, explanation, solve, solve_many

COMMAND = [sys.executable, "-c", "from chainroute.cli import main; main()"]


def two(**fields):
    """Ada 10 to the east of the depot and Bob 10 to the west, both until 15, and one van."""
    base = {
        "name": "two",
        "capacity": 10,
        "delivery": [1, 1],
        "coords": [(0, 0), (10, 0), (-10, 0)],
        "names": ["depot", "Ada", "Bob"],
        "fleet": 1,
        "time_windows": [(0, 99), (0, 15), (0, 15)],
    }
    return Problem(**{**base, **fields})


def crowd(n=12, **fields):
    """Customers around a circle of radius 10, with demands of 1."""
    angles = np.linspace(0, 2 * np.pi, n, endpoint=False)
    coords = [(0, 0), *zip(10 * np.cos(angles), 10 * np.sin(angles), strict=True)]
    return Problem(**{"name": "crowd", "capacity": 100, "delivery": np.ones(n), "coords": coords, **fields})


def by_kind(problem, explanation):
    """The relaxations by kind; each has a plan that the judge accepts for what it asks for."""
    for relaxation in explanation.relaxations:
        assert check(relaxation.problem, relaxation.solution).feasible
        assert not check(problem, Solution(problem, relaxation.solution.routes)).feasible
    return {relaxation.kind: relaxation for relaxation in explanation.relaxations}


# -- two customers and one van


def test_two_customers_and_one_van():
    """By way of Ada, Bob is reached at 30: 15 late. A second van serves both in time."""
    problem = two()
    explanation = explain(problem)
    assert explanation.proven
    assert explanation.findings[0].message == (
        "'Ada' and 'Bob' cannot be on one route because of their windows, "
        "so they take 2 vehicles; there is one."
    )
    found = by_kind(problem, explanation)
    assert found.keys() == {"vehicles", "windows"}
    assert (found["vehicles"].message, found["vehicles"].changes) == (
        "with one more vehicle: 2 of them.",
        {"fleet": 2},
    )
    (late,) = found["windows"].changes["windows"]
    assert late in ("Ada", "Bob")
    assert found["windows"].message == f"if '{late}' closed 15 later, at 30."
    assert [(v.code, v.amount) for v in explanation.violations] == [("window-missed", 15)]
    json.dumps(explanation.as_dict(), allow_nan=False)


def test_it_is_told_at_once():
    """Nothing needs to be started or waited for, one at a time or many."""
    begin = time.monotonic()
    with pytest.raises(ChainRouteError) as caught:
        solve(two(), time_limit=30)
    assert time.monotonic() - begin < 5
    assert {fault.code for fault in caught.value.faults} == {"no-solution"}
    assert "cannot be on one route" in str(caught.value)
    (outcome,) = solve_many([two()], time_limit=30)
    assert {fault.code for fault in outcome.error.faults} == {"no-solution"}


def test_what_no_bound_proves_is_settled_by_enumeration():
    """To three in the east, north and west, 10 away, the shortest way is 48.3 long; any two of them can be
    reached within 45, and the nearest ways to each and home make 40."""
    problem = two(
        delivery=[1, 1, 1],
        coords=[(0, 0), (10, 0), (0, 10), (-10, 0)],
        names=["depot", "Ada", "Bob", "Eve"],
        time_windows=None,
        distance_limit=45,
    )
    assert proofs(problem) == []
    with pytest.raises(ChainRouteError) as caught:
        solve(problem, time_limit=30)
    (fault,) = caught.value.faults
    assert (fault.code, fault.message) == ("no-solution", "every plan was tried, and each breaks a rule.")
    explanation = explain(problem)
    assert explanation.proven
    assert "  Proven: every plan was tried" in str(explanation)
    need = by_kind(problem, explanation)["limit"].changes["distance_limit"]
    assert need == pytest.approx(20 + 20 * np.sqrt(2))


# -- with more customers, by searching


@pytest.fixture(scope="module", autouse=True)
def _warm():
    pyvrp.warm_up()


def test_with_how_many_vehicles():
    """Four of 6 and two of 3 in vehicles of 10: their sum fills three, but each of the four takes one."""
    problem = crowd(6, delivery=[6, 6, 6, 6, 3, 3], capacity=10, fleet=3)
    with pytest.raises(ChainRouteError, match="take at least 4 vehicles"):
        solve(problem, time_limit=10)
    explanation = explain(problem)
    assert explanation.proven
    assert by_kind(problem, explanation)["vehicles"].changes == {"fleet": 4}


def test_how_much_vehicles_would_have_to_carry():
    """Three of 6 and two of 1 on two vehicles of 10: two of 6 together take 12."""
    problem = crowd(5, delivery=[6, 6, 6, 1, 1], capacity=10, fleet=2)
    with pytest.raises(ChainRouteError):
        solve(problem, time_limit=10)
    found = by_kind(problem, explain(problem))
    assert found["capacity"].changes == {"capacity": 12.0}
    assert found["capacity"].message == "if vehicles carried 2 more, up to 12."
    assert found["vehicles"].message == "with one more vehicle: 3 of them."


def test_how_long_routes_would_have_to_be():
    """Twelve around a circle and two vehicles: half a circle, there and back, is 2 x 10 and five of twelve
    sides of 5.18 long."""
    problem = crowd(12, fleet=2, distance_limit=30)
    explanation = explain(problem)
    need = by_kind(problem, explanation)["limit"].changes["distance_limit"]
    side = 2 * 10 * np.sin(np.pi / 12)
    assert need == pytest.approx(20 + 5 * side)
    assert {violation.code for violation in explanation.violations} == {"limit-exceeded"}


def test_one_customer_who_closes_too_early():
    """One van has time for a round of everyone; the one opposite closes before it can be there, unless the
    others, who open late, come after."""
    n = 8
    windows = [(0, 999), *[(100, 200)] * n]
    windows[1 + n // 2] = (0, 12)
    windows[1] = (0, 12)
    problem = crowd(n, fleet=1, time_windows=windows)
    explanation = explain(problem)
    assert explanation.proven
    changes = by_kind(problem, explanation)["windows"].changes["windows"]
    assert changes.keys() <= {"1", f"{n // 2 + 1}"}
    assert len(changes) == 1


def test_where_there_is_a_plan_it_says_so():
    explanation = explain(crowd(6, fleet=2))
    assert (explanation.proven, explanation.violations, explanation.relaxations) == (False, (), ())
    assert str(explanation).startswith("A plan was found after all")


@given(problem=problems(max_customers=4), closing=st.floats(0.2, 1), limit=st.floats(0.7, 1))
def test_every_claim_is_true(problem, closing, limit):
    """Small problems of every variant are made hard: what is proven is so, since every plan breaks a rule,
    and the judge accepts each relaxation."""
    hard = hardened(problem, closing, limit, fleet=1)
    if hard is None:
        return
    explanation = explain(hard, seconds=1.0)
    by_kind(hard, explanation)
    json.dumps(explanation.as_dict(), allow_nan=False)
    if explanation.nearest is not None:
        assert check(hard, explanation.nearest).violations == explanation.violations
    assert not (explanation.proven and explanation.nearest is not None and not explanation.violations)


# -- on the command line


def test_the_command_explains(tmp_path):
    write(two(), tmp_path / "two.json")
    ended = subprocess.run(
        [*COMMAND, "solve", str(tmp_path / "two.json"), "--explain"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("[no-solution] two: 'Ada' and 'Bob' cannot be on one route")
    lines = ended.stdout.splitlines()
    assert lines[0] == "There is no plan."
    assert "  with one more vehicle: 2 of them." in lines
    ended = subprocess.run(
        [*COMMAND, "solve", str(tmp_path / "two.json"), "--explain", "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    document = json.loads(ended.stdout)
    assert document["explanation"]["proven"]
    assert document["explanation"]["findings"][0]["customers"] == ["Ada", "Bob"]
    assert document["explanation"]["relaxations"][0]["changes"] == {"fleet": 2}
    assert document["error"]["faults"][0]["code"] == "no-solution"


# -- beyond the 48 variants


def test_a_shift_too_short_for_all():
    """80 there and back, in 100: the van has time for one of the two that need its lift; a second van would
    do, or one stop less."""
    problem = Problem(
        capacity=9,
        delivery=[1, 1],
        coords=[(0, 0), (40, 0), (-40, 0)],
        names=["hub", "piano", "organ"],
        skills=[["lift"], ["lift"]],
        vehicle_types=[
            VehicleType(name="van", count=1, shift=(0, 100), skills=["lift"]),
            VehicleType(name="bike", count=1),
        ],
    )
    told = explain(problem)
    assert told.proven
    vehicles, customers = told.relaxations
    assert (vehicles.kind, vehicles.message) == ("vehicles", "with 2 of 'van'.")
    assert customers.kind == "customers"
    assert customers.message in (
        f"without '{name}': it has no place on the routes as they are." for name in ("piano", "organ")
    )
    assert [violation.code for violation in told.violations] != []
    for relaxation in told.relaxations:
        assert check(relaxation.problem, relaxation.solution).feasible


def test_a_fleet_of_which_some_customers_may_be_left_out():
    """Three must be served, a vehicle holds one of them, and there are two."""
    problem = Problem(
        capacity=1, fleet=2, delivery=[0.6, 0.6, 0.6, 0.1], coords=[(x, 0) for x in range(5)],
        prize=[np.inf, np.inf, np.inf, 1],
    )  # fmt: skip
    assert "with 3 of 'vehicle'." in {relaxation.message for relaxation in explain(problem).relaxations}


def test_alike_vehicles_with_a_longest_duration():
    """Two of 30 each, and a van may be out for 50."""
    problem = Problem(
        capacity=9,
        fleet=1,
        delivery=[1, 1],
        coords=[(0, 0), (15, 0), (-15, 0)],
        vehicle_types=[VehicleType(name="van", max_duration=50.0)],
    )
    assert {relaxation.message for relaxation in explain(problem).relaxations} >= {"with 2 of 'van'."}


def test_vehicles_of_several_depots_are_counted_at_each():
    """Two who fill a vehicle each beside the east, which has one; the west is too far for both."""
    problem = Problem(
        capacity=1,
        num_depots=2,
        delivery=[1, 1, 1],
        coords=[(0, 0), (99, 0), (98, 0), (97, 0), (1, 0)],
        fleet=1,
        distance_limit=9.0,
        prize=[np.inf, np.inf, 1],
    )
    assert "with 2 of 'vehicle' at each depot." in {r.message for r in explain(problem).relaxations}


@pytest.mark.parametrize("trips", [1, 2])
def test_beyond_the_variants_a_plan_that_is_found_after_all_is_told(trips, monkeypatch):
    """A search without time for more leaves one out who has a place: there is no prize to name."""
    problem = Problem(
        capacity=3 - trips,
        delivery=[1, 1],
        coords=[(0, 0), (1, 0), (2, 0)],
        vehicle_types=[VehicleType(count=1, max_trips=trips, shift=(0, 99))],
    )
    one_left_out = Solution.of(problem, [(0, [1])])
    monkeypatch.setattr(
        explanation._Relaxer, "plan", lambda self, **fields: one_left_out if "prize" in fields else None
    )
    told = explain(problem)
    assert str(told).startswith("A plan was found after all")
    assert (told.relaxations, check(problem, told.nearest).feasible) == ((), True)


def test_beyond_the_variants_vehicles_that_do_are_a_plan():
    problem = Problem(
        capacity=2,
        delivery=[1, 1],
        coords=[(0, 0), (1, 0), (2, 0)],
        vehicle_types=[VehicleType(count=2, shift=(0, 99))],
    )
    assert str(explain(problem)) == "A plan was found after all, of cost 4: give more time."
