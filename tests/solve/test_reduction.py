"""The network beyond the 48 variants: a problem that it knows stands for one that it does not."""

import json

import numpy as np
import pytest
from services import listening

from chainroute import ChainRouteError, Problem, Solution, VehicleType, check, solve
from chainroute.formats import json as our_json
from chainroute.options import Effort
from chainroute.search.own.construct import construct
from chainroute.service.app import create_app
from chainroute.service.settings import Settings
from chainroute.solve import policy_process
from chainroute.solve.first_plans import first_plan
from chainroute.solve.portfolio import Race
from chainroute.solve.reduction import is_reducible, reduction

# Eight customers on a line between two depots; more than are tried one by one.
FIELDS = {
    "num_depots": 2,
    "capacity": 4,
    "delivery": [1.0] * 8,
    "coords": [(0, 0), (90, 0), *((10 * x, 0) for x in range(1, 9))],
}
UNEQUAL = Problem(
    **FIELDS,
    vehicle_types=[VehicleType(name="north", count=1, depot=0), VehicleType(name="south", count=2, depot=1)],
)
OPTIONAL = Problem(**FIELDS, fleet=2, prize=[1, *[99] * 7])


def test_unequal_numbers_are_vehicles_that_are_alike():
    """The other way round, each route gets a vehicle of its depot, if there is one left."""
    known = reduction(UNEQUAL)
    assert known.problem.extras == ()
    assert known.problem.fleet is None
    plan = known.plan(Solution.of(known.problem, [(0, [2, 3, 4, 5]), (1, [9, 8, 7, 6])]))
    assert check(UNEQUAL, plan).feasible
    assert [route.vehicle for route in plan.routes] == [0, 1]
    assert known.plan(Solution.of(known.problem, [(0, [2, 3, 4, 5]), (0, [6, 7, 8, 9])])) is None


def test_those_who_are_left_out_are_not_there():
    known = reduction(OPTIONAL, [2])
    assert known.problem.num_customers == 7
    assert known.problem.names[2:] == OPTIONAL.names[3:]
    plan = known.plan(Solution.of(known.problem, [(0, [2, 3, 4]), (1, [8, 7, 6, 5])]))
    assert check(OPTIONAL, plan).feasible
    assert plan.left_out == (2,)
    assert reduction(OPTIONAL, range(2, 10)) is None


@pytest.mark.parametrize(
    ("fields", "reducible"),
    [
        ({}, True),
        ({"cost_per_distance": 3.0}, True),
        ({"prize": [5] * 8}, True),
        ({"fixed_cost": 3.0}, False),
        ({"cost_per_time": 1.0}, False),
        ({"skills": [["lift"], *[()] * 7], "vehicle_types": [VehicleType(skills=["lift"])]}, False),
        ({"vehicle_types": [VehicleType(name="a"), VehicleType(name="b", capacity=9)]}, False),
        ({"vehicle_types": [VehicleType(name="a"), VehicleType(name="b", count=2)]}, True),
        ({"vehicle_types": [VehicleType(depot=0)]}, False),  # the network has vehicles at every depot
    ],
)
def test_what_can_be_reduced(fields, reducible):
    problem = Problem(**{**FIELDS, **fields})
    assert is_reducible(problem) is reducible


@pytest.mark.parametrize("problem", [UNEQUAL, OPTIONAL], ids=["unequal", "optional"])
def test_the_network_takes_part(problem):
    """It is asked for a plan of what it knows; the answer counts for the problem that was given."""
    asked = []

    def propose(known, deadline):
        asked.append(known.problem)
        return construct(known.problem)

    result = solve(problem, 1.0, propose=propose)
    assert check(problem, result.solution).feasible
    assert asked
    assert all(known.extras == () for known in asked)
    assert not any("Without the network" in note for note in result.notes)


@pytest.mark.parametrize("problem", [UNEQUAL, OPTIONAL], ids=["unequal", "optional"])
def test_the_network_takes_part_in_the_service(problem):
    """It decodes one of the 48 variants; its routes are told as a plan of the problem that was sent."""
    asked = []

    def decode(problems, *_):
        asked.extend(problems)
        return [construct(known) for known in problems]

    with listening(create_app(Settings(running=2), solve, decode)) as client:
        order = {"problem": json.loads(our_json.write(problem)), "time_limit": 1.0}
        job = client.post("/v1/solve?wait=true", json=order).json()
    assert job["status"] == "done", job
    assert [known.extras for known in asked] == [()]
    assert job["without_policy"] is None
    assert check(problem, our_json.to_solution(job["first"], problem)).feasible


def test_many_problems_are_reduced_alike(monkeypatch):
    """In a batch, a plan for the problem for which another stands, and a word on that for which nothing
    does."""
    heard = {}

    def run(task, args, deadline, on_report, *_):
        problems = args[0]
        assert [p.extras for p in problems] == [()]
        on_report((0, construct(problems[0]).pairs()))

    monkeypatch.setattr(policy_process, "_run", run)
    found = policy_process.propose_many([OPTIONAL, UNEQUAL], on_answer=heard.__setitem__)
    assert found[0] is None
    assert heard[0].code == "unsupported-feature"
    assert check(UNEQUAL, found[1]).feasible
    assert heard[1] is found[1]


def test_the_network_alone_cannot_decide_whom_to_leave_out():
    with pytest.raises(ChainRouteError, match=r"unsupported-feature.*optional"):
        solve(OPTIONAL, 1.0, effort=Effort(polish=False))


def tight(seed):
    """Five to nine customers with a prize or without, one to three vehicles, who cannot all be served."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(5, 10)), int(rng.integers(1, 3))
    fields = {
        "num_depots": m,
        "capacity": 10,
        "coords": rng.integers(0, 50, (m + n, 2)),
        "delivery": rng.uniform(1, 14, n).round(2),
        "prize": rng.uniform(1, 80, n).round(2),
        "fleet": 1,
    }
    if rng.random() < 0.4:
        fields["distance_limit"] = 80
    if rng.random() < 0.4:
        closing = rng.integers(1, 90, n)
        fields["time_windows"] = [*[(0, 200)] * m, *((0, b) for b in closing)]
    if rng.random() < 0.4:
        fields["vehicle_types"] = [VehicleType(name=name, count=1) for name in "ab"]
    return Problem(**fields)


@pytest.mark.parametrize("seed", range(60))
def test_optional_customers_who_cannot_all_be_served_are_no_reason_to_refuse(seed):
    """What is there at once leaves some out; what stands for the problem has all who can be served, or does
    not exist where the vehicles are too few for them."""
    problem = tight(seed)
    assert is_reducible(problem)
    first = first_plan(Race(problem, 1.0, 0, Effort()).attempt, by_parts=False)
    assert first is None or check(problem, first).feasible
    known = reduction(problem)
    if known is not None:
        left_out = set(problem.customers) - set(known.places)
        assert all(not problem.reach.possible[c - problem.num_depots] for c in left_out)


@pytest.mark.parametrize("seed", range(3))
def test_optional_customers_who_cannot_all_be_served_are_left_out(seed):
    problem = tight(seed)
    result = solve(problem, effort=Effort(iterations=30), propose=lambda *_: None)
    assert check(problem, result.solution).feasible
    assert result.solution.left_out
