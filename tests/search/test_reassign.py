"""Routes given to other vehicles: what each costs by hand, and that the judge agrees."""

from fleets import invent

from chainroute import Problem, Solution, VehicleType, check
from chainroute.search.own.construct import inserted
from chainroute.search.own.reassign import reassigned

# Two stops on a line, to the west of one depot and the east of another.
LINE = Problem(
    num_depots=2,
    capacity=9,
    delivery=[5, 1],
    coords=[(0, 0), (100, 0), (10, 0), (90, 0)],
    vehicle_types=[
        VehicleType(name="van", count=1, cost_per_distance=2.0),
        VehicleType(name="bike", count=1, capacity=2.0),
    ],
)


def test_a_route_goes_to_the_cheaper_vehicle_at_the_nearer_depot():
    """The far van costs 2 * 180, the near bike 20; what does not fit on the bike stays with a van."""
    plan = reassigned(Solution.of(LINE, [(1, [2], 0), (0, [3], 0)]))
    assert check(LINE, plan).feasible
    assert plan.cost == 40 + 20
    assert {(r.visits, r.depot, r.vehicle) for r in plan.routes} == {((2,), 0, 0), ((3,), 1, 1)}


def test_routes_are_exchanged_where_no_vehicle_is_free():
    """A van each for the other's stop: neither can move alone."""
    problem = LINE.replace(vehicle_types=[VehicleType(name="van", count=1, shift=(0, 999))])
    plan = reassigned(Solution.of(problem, [(1, [2], 0), (0, [3], 0)]))
    assert check(problem, plan).feasible
    assert plan.cost == 40


def test_no_plan_gets_worse_or_breaks_a_rule():
    """Plans by insertion, which are feasible, with their routes given to other vehicles."""
    changes = 0
    for seed in range(30):
        problem = invent(seed)
        plan = next(iter(inserted(problem)), None)
        if plan is not None:
            changed = reassigned(plan)
            assert check(problem, plan).feasible
            assert check(problem, changed).feasible
            assert changed.cost <= plan.cost + 1e-9
            changes += changed.cost < plan.cost
    assert changes >= 1
