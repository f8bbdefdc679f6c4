"""The judge beyond the 48 variants: each rule, each way to break it, and each part of the cost, by hand.

Customers A, B and C lie on a line, 10, 20 and 30 from the depot; a second depot, where there is one, at 40.
"""

import math

import pytest

from chainroute import ChainRouteError, Problem, Solution, VehicleType, check
from chainroute.plan.check import Parts


def line(**fields):
    depots = fields.get("num_depots", 1)
    places = [*[(0, 0), (40, 0)][:depots], (10, 0), (20, 0), (30, 0)]
    names = [*["west", "east"][:depots], "A", "B", "C"]
    return Problem(**{"capacity": 10, "delivery": [4, 3, 2], "coords": places, "names": names} | fields)


def judged(problem, *routes):
    return check(problem, Solution.of(problem, routes))


def broken(problem, *routes):
    """(code, amount) of each violation."""
    return [(v.code, v.amount) for v in judged(problem, *routes).violations]


VANS = (VehicleType(name="van", count=2, capacity=5), VehicleType(name="truck", count=1, capacity=9))


# -- the fleet


def test_each_type_has_its_capacity():
    """All three weigh 9: the truck takes them, the van is 4 over."""
    p = line(vehicle_types=VANS)
    assert broken(p, (0, [1, 2, 3], 1)) == []
    assert broken(p, (0, [1, 2, 3], 0)) == [("capacity-exceeded", 4)]


def test_each_type_has_its_number():
    """There is one truck, and two vans."""
    p = line(vehicle_types=VANS)
    assert broken(p, (0, [1], 1), (0, [2, 3], 0)) == []
    assert broken(p, (0, [1], 1), (0, [2, 3], 1)) == [("fleet-exceeded", 1)]
    assert broken(p, (0, [1], 0), (0, [2], 0), (0, [3], 0)) == [("fleet-exceeded", 1)]


def test_numbers_may_differ_between_depots():
    """One vehicle in the west, two in the east."""
    p = line(
        num_depots=2,
        vehicle_types=[VehicleType(name="w", depot=0, count=1), VehicleType(name="e", depot=1, count=2)],
    )
    assert broken(p, (0, [2], 0), (1, [3], 1), (1, [4], 1)) == []
    assert broken(p, (0, [2], 0), (0, [3], 0), (1, [4], 1)) == [("fleet-exceeded", 1)]


def test_a_vehicle_starts_at_a_depot_of_its_type():
    p = line(num_depots=2, vehicle_types=[VehicleType(name="w", depot=0), VehicleType(name="e", depot=1)])
    assert broken(p, (1, [2, 3, 4], 1)) == []
    assert broken(p, (1, [2, 3, 4], 0)) == [("wrong-depot", 1)]


def test_a_type_may_end_at_another_depot_or_at_its_last_customer():
    """From the west through all to the east is 40; without the last leg 30; back to the west 60."""
    kinds = [
        VehicleType(name="through", end=1),
        VehicleType(name="open", open=True),
        VehicleType(name="back"),
    ]
    p = line(num_depots=2, vehicle_types=kinds)
    assert [judged(p, (0, [2, 3, 4], kind)).cost for kind in range(3)] == [40, 30, 60]


def test_a_type_may_begin_at_its_first_customer():
    """No way out is counted, and no time for it: from C, 30 home, or 20 to A where it may end. The day begins
    when the depot opens, at the first customer."""
    p = line(service=[3, 3, 3], vehicle_types=[VehicleType(open_start=True, max_duration=39)])
    assert p.kind == "CVRP + free start + shifts"
    plan = Solution.of(p, [(0, [3, 2, 1])])
    assert judged(p, (0, [3, 2, 1])).parts == plan.parts == Parts(30)
    assert plan.facts[0].duration == 39
    assert plan.path(plan.routes[0]) == [3, 2, 1, 0]
    assert "  1. C - B - A - west" in str(plan)
    assert broken(p, (0, [2, 1, 3])) == [("duration-exceeded", 30)]
    ends = line(vehicle_types=[VehicleType(open_start=True, open=True)])
    assert judged(ends, (0, [3, 2, 1])).cost == 20
    late = line(
        time_windows=[(5, 99), (0, 24), (0, 99), (0, 99)], vehicle_types=[VehicleType(open_start=True)]
    )
    assert broken(late, (0, [1, 2, 3])) == []
    assert broken(late, (0, [3, 2, 1])) == [("window-missed", 1)]  # at 5 with C, at 25 with A
    with pytest.raises(ChainRouteError, match="conflicting-fields"):
        line(vehicle_types=[VehicleType(open_start=True, max_trips=2)])


def test_a_type_has_its_own_limit():
    """To C and back is 60."""
    p = line(vehicle_types=[VehicleType(name="far"), VehicleType(name="near", distance_limit=59)])
    assert broken(p, (0, [1, 2, 3], 0)) == []
    assert broken(p, (0, [1, 2, 3], 1)) == [("limit-exceeded", 1)]


def test_a_type_may_be_faster_or_have_its_own_roads():
    """At speed 2, C is reached after 15; by the matrix of ones, all three are 4 long together."""
    ones = [[0 if i == j else 1 for j in range(4)] for i in range(4)]
    kinds = [VehicleType(name="slow"), VehicleType(name="fast", speed=2), VehicleType(distance_matrix=ones)]
    p = line(vehicle_types=kinds, time_windows=[(0, 99), (0, 99), (0, 99), (0, 15)])
    assert broken(p, (0, [3], 0), (0, [1, 2], 0)) == [("window-missed", 15)]
    assert broken(p, (0, [3], 1), (0, [1, 2], 0)) == []
    assert judged(p, (0, [1, 2, 3], 2)).cost == 4


def test_a_type_without_a_road_cannot_go_there():
    """The van's matrix has no way from A to B, all other ways are 1."""
    ways = [[0, 1, 1, 1], [1, 0, None, 1], [1, 1, 0, 1], [1, 1, 1, 0]]
    p = line(vehicle_types=[VehicleType(name="van", distance_matrix=ways), VehicleType(name="truck")])
    assert broken(p, (0, [2, 1, 3], 0)) == []
    assert broken(p, (0, [1, 2, 3], 0)) == [("no-road", 1)]


def test_skills():
    """B needs a lift, which the truck has."""
    p = line(
        skills=[[], ["lift"], []],
        vehicle_types=[VehicleType(name="van"), VehicleType(name="truck", skills=["lift", "cooling"])],
    )
    assert broken(p, (0, [1, 2, 3], 1)) == []
    assert broken(p, (0, [1, 2], 0), (0, [3], 1)) == [("skill-missing", 1)]


def test_an_unknown_type_is_refused():
    with pytest.raises(ChainRouteError, match="unknown-vehicle"):
        Solution.of(line(), [(0, [1, 2, 3], 1)])


# -- time


def test_a_shift_begins_and_ends():
    """Leaving at 20, a vehicle is back from C at 80; B closes at 39, and is reached at 40."""
    p = line(vehicle_types=[VehicleType(shift=(20, 80))])
    assert broken(p, (0, [1, 2, 3])) == []
    assert Solution.of(p, [(0, [1, 2, 3])]).facts[0].start == 20
    assert broken(line(vehicle_types=[VehicleType(shift=(20, 79))], service=[0, 0, 0], prize=[9] * 3),
                  (0, [1, 2, 3])) == [("shift-exceeded", 1)]  # fmt: skip
    late = line(vehicle_types=[VehicleType(shift=(20, 90))], time_windows=[(0, 99)] * 2 + [(0, 39), (0, 99)],
                prize=[9] * 3)  # fmt: skip
    assert broken(late, (0, [1, 2, 3])) == [("window-missed", 1)]


def test_a_shift_holds_for_open_routes_too():
    """C is left at 30."""
    p = line(open=True, vehicle_types=[VehicleType(name="a", shift=(0, 29)), VehicleType(name="b")])
    assert broken(p, (0, [1, 2, 3], 0)) == [("shift-exceeded", 1)]
    assert broken(p, (0, [1, 2, 3], 1)) == []


def test_a_shift_is_not_left_for_a_later_window():
    """A is open until 10 and again from 60, B from 50: leaving at 50 would take 40, but end at 90."""
    windows = [(0, 99), (0, 10), (50, 99), (0, 99)]
    p = line(time_windows=windows, customer_windows=[[(0, 10), (60, 99)], [], []], prize=[0, 0, 0],
             vehicle_types=[VehicleType(shift=(0, 80), cost_per_time=1)])  # fmt: skip
    solution = Solution.of(p, [(0, [1, 2])])
    assert (solution.facts[0].start, solution.facts[0].end) == (0, 70)
    assert check(p, solution).parts.time == 70


def test_the_duration_counts_from_a_late_departure():
    """B opens at 50. Left at 30, the route takes 40; if A closes at 20, it is left at 10 and takes 60."""
    windows = [(0, 99), (0, 99), (50, 99), (0, 99)]
    p = line(time_windows=windows, vehicle_types=[VehicleType(max_duration=40)], prize=[0, 0, 0])
    assert broken(p, (0, [1, 2])) == []
    assert broken(p.replace(time_windows=[windows[0], (0, 20), *windows[2:]]), (0, [1, 2])) == [
        ("duration-exceeded", 20)
    ]


def test_several_windows():
    """A is open in [0, 5] and [25, 30]: reached at 10, it is served at 25. In a gap at the end it is late."""
    p = line(customer_windows=[[(0, 5), (25, 30)], [], []])
    assert broken(p, (0, [1, 2, 3])) == []
    assert Solution.of(p, [(0, [1, 2, 3])]).facts[0].stops[0].start == 25
    assert broken(p, (0, [2, 3, 1])) == [("window-missed", 20)]


def test_windows_that_meet_are_one_and_their_order_does_not_matter():
    p = line(customer_windows=[[(8, 20), (0, 8)], [], []])
    assert p.customer_windows == ()
    assert p.windows[1].tolist() == [0, 20]


# -- several trips


RELOADING = VehicleType(name="van", capacity=5, max_trips=2, count=1)


def test_a_vehicle_goes_out_again():
    """4 to A, then back for the 5 of B and C: 20 and 60 long."""
    p = line(vehicle_types=[RELOADING])
    verdict = judged(p, (0, [1, 0, 2, 3]))
    assert (verdict.feasible, verdict.cost) == (True, 80)
    facts = Solution.of(p, [(0, [1, 0, 2, 3])]).facts[0]
    assert (facts.trips, facts.initial_load, facts.max_load) == (2, 4, 5)
    assert [stop.load for stop in facts.stops] == [0, 5, 2, 0]


def test_each_trip_has_the_capacity_and_not_more_of_them_are_made():
    p = line(vehicle_types=[RELOADING])
    assert broken(p, (0, [1, 2, 0, 3])) == [("capacity-exceeded", 2)]
    assert broken(p, (0, [1, 0, 2, 0, 3])) == [("trips-exceeded", 1)]


def test_a_vehicle_reloads_where_it_may():
    """It reloads by default where it started, or where the type says."""
    east = VehicleType(name="e", max_trips=2, depot=0, reload_depots=[1])
    p = line(num_depots=2, vehicle_types=[VehicleType(name="w", max_trips=2, depot=0), east])
    assert broken(p, (0, [2, 3, 0, 4], 0)) == []
    assert broken(p, (0, [2, 3, 1, 4], 0)) == [("wrong-depot", 1)]
    assert broken(p, (0, [2, 3, 1, 4], 1)) == []


def test_the_clock_and_the_limit_run_on_over_trips():
    """A takes 20, then C 60: back at 80. The depot closes at 79, or the limit is 79."""
    closing = line(vehicle_types=[RELOADING], time_windows=[(0, 79)] * 4, delivery=[4, 1, 2])
    assert broken(closing, (0, [1, 0, 2, 3])) == [("depot-closed", 1)]
    limited = line(vehicle_types=[VehicleType(capacity=5, max_trips=2, distance_limit=79)])
    assert broken(limited, (0, [1, 0, 2, 3])) == [("limit-exceeded", 1)]


def test_linehauls_come_first_on_each_trip():
    """A pickup at A, then from the depot a delivery to B."""
    van = VehicleType(capacity=9, max_trips=2)
    p = line(delivery=[0, 3, 2], pickup=[4, 0, 0], backhaul="linehauls-first", vehicle_types=[van])
    assert broken(p, (0, [1, 0, 2, 3])) == []
    assert broken(p, (0, [1, 2, 3])) == [("linehaul-after-backhaul", 3), ("linehaul-after-backhaul", 2)]


def test_a_depot_is_no_visit_where_there_is_one_trip():
    with pytest.raises(ChainRouteError, match="unknown-location"):
        Solution.of(line(), [(0, [1, 0, 2, 3])])


# -- customers


def test_delivery_and_pickup_at_once_where_linehauls_come_first():
    """B receives 3 and hands over 2: it may be the last linehaul, and the first backhaul."""
    p = line(delivery=[4, 3, 0], pickup=[0, 2, 2], backhaul="linehauls-first")
    assert broken(p, (0, [1, 2, 3])) == []
    assert broken(p, (0, [2, 1, 3])) == [("linehaul-after-backhaul", 4)]
    assert p.kind == "VRPB + both at once"


def test_a_prize_is_the_cost_of_leaving_out():
    """C is left out for 7; B has to be served."""
    p = line(prize=[5, math.inf, 7])
    verdict = judged(p, (0, [1, 2]))
    assert (verdict.feasible, verdict.cost) == (True, 47)
    assert verdict.parts == Parts(distance=40, prizes=7)
    assert broken(p, (0, [1])) == [("customer-missing", 1)]
    assert Solution.of(p, [(0, [2])]).left_out == (1, 3)


# -- the cost


def test_money_part_by_part():
    """The van: 20 for leaving, 40 long at 2 each, 44 of time at a half. The truck: 60 long at 1."""
    van = VehicleType(name="van", fixed_cost=20, cost_per_distance=2, cost_per_time=0.5)
    p = line(vehicle_types=[van, VehicleType(name="truck")], service=[2, 2, 2])
    solution = Solution.of(p, [(0, [1, 2], 0), (0, [3], 1), (0, [], 0)])
    verdict = check(p, solution)
    assert verdict.parts == solution.parts == Parts(distance=140, time=22, fixed=20)
    assert verdict.cost == solution.cost == 182


def test_time_is_the_cost_where_the_problem_says_so():
    """B opens at 50: left at 30, back at 70."""
    p = line(
        cost_per_distance=0,
        cost_per_time=1,
        time_windows=[(0, 99), (0, 99), (50, 99), (0, 99)],
        prize=[0] * 3,
    )
    assert judged(p, (0, [1, 2])).cost == 40


def test_the_kind_has_words_for_everything():
    p = line(
        prize=[5, 5, 5],
        time_windows=[(0, 99)] * 4,
        vehicle_types=[VehicleType(name="a", count=1), VehicleType(name="b", fixed_cost=3)],
    )
    assert p.kind == "VRPTW + mixed fleet + optional + money"
    assert line().kind == "CVRP"


def test_a_single_plain_type_is_the_problem_itself():
    """Its capacity, number, limit and ending become the problem's, which is then one of the 48 variants."""
    p = line(vehicle_types=[VehicleType(capacity=9, count=2, distance_limit=70, open=True)])
    assert p == line(capacity=9, fleet=2, distance_limit=70, open=True)
    assert (p.extras, p.kind) == ((), "OVRPL")


# -- the rules in full (docs/modelling.md)


def test_a_vehicle_leaves_before_its_depot_closes():
    """The depot is open until 50, C from 200 on: left at 50, it is waited for 120, whoever may wait so long.
    It is so with an open end and an open start, too; then the way out takes no time."""
    windows = [(0, 50), (0, 999), (0, 999), (200, 250)]

    def out(**fields):
        p = line(open=True, time_windows=windows, prize=[0] * 3, vehicle_types=[VehicleType(**fields)])
        (facts,) = Solution.of(p, [(0, [3])]).facts
        return facts.start, facts.duration, broken(p, (0, [3]))

    assert out(max_duration=150) == (50, 150, [])
    assert out(max_duration=149) == (50, 150, [("duration-exceeded", 1)])
    assert out(max_duration=149, open_start=True) == (50, 150, [("duration-exceeded", 1)])


@pytest.mark.parametrize(
    "fields", [{"open": True}, {"open": True, "open_start": True}, {"max_duration": 500}]
)
def test_a_shift_that_begins_after_its_depot_has_closed_cannot_be_worked(fields):
    """The depot closes at 50, and the shift begins at 100."""
    late = VehicleType(shift=(100, 900), **fields)
    windows = [(0, 50), (0, 900), (0, 900), (0, 900)]
    p = line(time_windows=windows, vehicle_types=[late], prize=[5] * 3)
    assert ("depot-closed", 50) in broken(p, (0, [1]))
    assert p.reach.reason(0)[1] == "the shift of every vehicle for it begins after its depot has closed."
    with pytest.raises(ChainRouteError, match=r"window-unreachable.*shift of every vehicle"):
        line(time_windows=windows, vehicle_types=[late])
    early = line(time_windows=[(0, 100), *windows[1:]], vehicle_types=[late], prize=[5] * 3)
    assert ("depot-closed", 50) not in broken(early, (0, [1]))


def test_a_vehicle_waits_for_the_depot_where_it_ends_or_reloads():
    """The east, at 40, opens at 100: a vehicle that gets there at 40 is out until 100, or leaves later."""
    windows = [(0, 30), (100, 500), *[(0, 500)] * 3]
    through = VehicleType(name="through", end=1, cost_per_distance=0, cost_per_time=1)
    p = line(num_depots=2, time_windows=windows, vehicle_types=[through])
    assert judged(p, (0, [2, 3, 4])).cost == 70  # from 30 to 100
    reload = VehicleType(max_trips=2, reload_depots=[1], depot=0, cost_per_distance=0, cost_per_time=1)
    p = line(num_depots=2, time_windows=[(0, 500), *windows[1:]], vehicle_types=[reload])
    facts = Solution.of(p, [(0, [2, 3, 1, 4])]).facts[0]
    assert (facts.start, facts.stops[2].start, facts.end) == (60, 100, 140)
    assert judged(p, (0, [2, 3, 1, 4])).cost == 80


def test_empty_routes_are_free_and_trips_to_nobody_are_allowed():
    """A vehicle that only reloads has left its depot: it pays its fixed cost, its way and its time."""
    van = VehicleType(max_trips=3, reload_depots=[1], fixed_cost=7, depot=0)
    p = line(num_depots=2, vehicle_types=[van], prize=[0] * 3)
    assert judged(p, (0, [])).cost == 0
    assert (judged(p, (0, [1])).cost, broken(p, (0, [1]))) == (87, [])
    assert (judged(p, (0, [1, 2])).cost, broken(p, (0, [1, 2]))) == (7 + 40 + 30 + 10, [])
    assert broken(p, (0, [1, 1, 1, 2])) == [("trips-exceeded", 1)]


def test_service_at_the_last_stop_of_an_open_route_counts():
    """For the time, the shift and a limit that counts service: C is reached at 30 and left at 35."""
    p = line(open=True, service=[0, 0, 5], limit_counts_service=True, distance_limit=34, prize=[0] * 3,
             vehicle_types=[VehicleType(shift=(0, 34), max_duration=34)])  # fmt: skip
    assert broken(p, (0, [3])) == [("shift-exceeded", 1), ("limit-exceeded", 1), ("duration-exceeded", 1)]


def test_slack_is_for_fractions_and_for_the_end_of_a_shift_too():
    """A tenth of a millionth of a millionth later is rounding; what is whole is judged exactly."""
    tiny = 30 * 1e-11
    p = line(vehicle_types=[VehicleType(open=True, shift=(0.5, 30.5 - tiny))], prize=[0] * 3)
    assert broken(p, (0, [3])) == []
    p = line(vehicle_types=[VehicleType(open=True, shift=(0.5, 30.49))], prize=[0] * 3)
    assert [code for code, _ in broken(p, (0, [3]))] == ["shift-exceeded"]


def test_costs_that_are_given_take_the_place_of_the_one_or_come_on_top():
    assert judged(line(cost_per_distance=3), (0, [1, 2, 3])).cost == 180
    assert judged(line(fixed_cost=7, cost_per_time=1), (0, [1, 2, 3])).cost == 60 + 60 + 7


@pytest.mark.parametrize(
    ("own", "gone"),
    [
        ({}, True),
        ({"distance_matrix"}, True),
        ({"duration_matrix"}, True),
        ({"distance_matrix", "duration_matrix"}, False),
    ],
)
@pytest.mark.parametrize("missing", ["distance_matrix", "duration_matrix"])
def test_a_missing_road_is_missing_for_all_but_types_with_lengths_and_times_of_their_own(own, gone, missing):
    """From A to B there is none."""
    ones = [[0 if i == j else 1 for j in range(4)] for i in range(4)]
    null = [[None if (i, j) == (1, 2) else x for j, x in enumerate(row)] for i, row in enumerate(ones)]
    types = [VehicleType(name="a", **dict.fromkeys(own, ones)), VehicleType(name="b")]
    p = line(**{"distance_matrix": ones, "duration_matrix": ones, missing: null}, vehicle_types=types)
    assert broken(p, (0, [1, 2], 0), (0, [3], 1)) == [("no-road", 1)] * gone


def test_a_message_shows_the_difference():
    """4 of the 9.000001 that do not fit into 9."""
    p = line(capacity=9, delivery=[4, 3, 2.00001])
    assert "carries 9.00001 when leaving west, capacity 9." in judged(p, (0, [1, 2, 3])).violations[0].message
