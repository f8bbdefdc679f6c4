"""Validation: every fault is found, named and reported together with the others; nothing sound is refused."""

import ast
import inspect
import math

import numpy as np
import pytest

from chainroute import ChainRouteError, Problem, Solution, VehicleType, check
from chainroute.errors import CODES
from chainroute.problem import fields, fleet, servable, validate

INF, NAN = math.inf, math.nan
SQUARE = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]


def faults(**fields):
    """(code, where) of everything that is wrong with two customers 3 and 4 away from the depot."""
    base = {"capacity": 10, "delivery": [1, 2], "coords": [(0, 0), (3, 0), (0, 4)]}
    with pytest.raises(ChainRouteError) as error:
        Problem(**{**base, **fields})
    return [(f.code, f.where) for f in error.value.faults]


# One fault each, in the smallest problem that has it.
SINGLE = [
    ("no-depot", "num_depots", {"num_depots": 0}),
    ("no-customer", "delivery", {"delivery": []}),
    ("too-large", "delivery", {"delivery": np.zeros(10_100)}),
    ("no-distances", "coords", {"coords": None}),
    ("wrong-shape", "delivery", {"delivery": [[1, 2]]}),
    ("wrong-shape", "delivery", {"delivery": 5}),
    ("wrong-shape", "coords", {"coords": [(0, 0), (3, 0)]}),
    ("wrong-shape", "coords", {"coords": [(0, 0, 0)] * 3}),
    ("wrong-shape", "pickup", {"pickup": [1, 2, 3]}),
    ("wrong-shape", "service", {"service": [1]}),
    ("wrong-shape", "distance_matrix", {"distance_matrix": [[0, 1], [1, 0]]}),
    ("wrong-shape", "distance_matrix", {"distance_matrix": [0, 1]}),
    ("wrong-shape", "time_windows", {"time_windows": [(0, 9)] * 2}),
    ("wrong-shape", "names", {"names": ["depot", "a"]}),
    ("wrong-type", "num_depots", {"num_depots": 1.5}),
    ("wrong-type", "num_depots", {"num_depots": True}),
    ("wrong-type", "delivery", {"delivery": ["one", "two"]}),
    ("wrong-type", "coords", {"coords": [(0, 0), (3,), (0, 4)]}),
    ("wrong-type", "distance_matrix", {"distance_matrix": [[0, 1, 1], [1, 0], [1, 1, 0]]}),
    ("wrong-type", "capacity", {"capacity": "10"}),
    ("wrong-type", "capacity", {"capacity": None}),
    ("wrong-type", "distance_limit", {"distance_limit": "far"}),
    ("wrong-type", "fleet", {"fleet": 2.5}),
    ("wrong-type", "fleet", {"fleet": float("nan")}),
    ("wrong-type", "fleet", {"fleet": float("inf")}),
    ("not-positive", "fleet", {"fleet": -1.0}),
    ("number-too-large", "fleet", {"fleet": 1e300}),
    ("wrong-type", "open", {"open": "yes"}),
    ("wrong-type", "limit_counts_service", {"limit_counts_service": 1}),
    ("wrong-type", "names", {"names": "abc"}),
    ("wrong-type", "names", {"names": ["depot", 1, 2]}),
    ("not-finite", "capacity", {"capacity": NAN}),
    ("not-finite", "delivery[1]", {"delivery": [1, INF]}),
    ("not-finite", "coords[1, 0]", {"coords": [(0, 0), (NAN, 0), (0, 4)]}),
    ("not-finite", "service[0]", {"service": [NAN, 0]}),
    ("not-finite", "distance_matrix[0, 1]", {"distance_matrix": [[0, NAN, 1], [1, 0, 1], [1, 1, 0]]}),
    ("negative", "distance_matrix[0, 1]", {"distance_matrix": [[0, -INF, 1], [1, 0, 1], [1, 1, 0]]}),
    ("no-road", "customer '2'", {"distance_matrix": [[0, 1, None], [1, 0, None], [1, 1, 0]]}),
    ("no-road", "customer '2'", {"distance_matrix": [[0, 1, 1], [1, 0, 1], [None, None, 0]]}),
    ("no-road", "customer '1'", {"duration_matrix": [[0, INF, 1], [1, 0, 1], [1, INF, 0]]}),
    ("not-finite", "time_windows[1, 1]", {"time_windows": [(0, 9), (0, NAN), (0, 9)]}),
    ("not-finite", "time_windows[1]", {"time_windows": [(0, 9), (-INF, 9), (0, 9)]}),
    ("number-too-large", "coords[1, 0]", {"coords": [(0, 0), (1e151, 0), (0, 4)]}),
    ("number-too-large", "delivery[1]", {"delivery": [0, 1e151]}),
    ("number-too-large", "service[1]", {"service": [0, 1e151]}),
    ("number-too-large", "capacity", {"capacity": 1e151}),
    ("number-too-large", "distance_limit", {"distance_limit": 1e151}),
    ("number-too-large", "time_windows[2, 1]", {"time_windows": [(0, 9), (0, 9), (0, 1e151)]}),
    ("number-too-large", "duration_matrix[0, 1]", {"duration_matrix": [[0, 1e151, 1], [1, 0, 1], [1, 1, 0]]}),
    ("negative", "delivery[1]", {"delivery": [1, -2]}),
    ("negative", "pickup[0]", {"pickup": [-1, 0]}),
    ("negative", "service[1]", {"service": [0, -1]}),
    ("negative", "distance_matrix[0, 2]", {"distance_matrix": [[0, 1, -1], [1, 0, 1], [1, 1, 0]]}),
    ("negative", "duration_matrix[2, 0]", {"duration_matrix": [[0, 1, 1], [1, 0, 1], [-1, 1, 0]]}),
    ("not-positive", "capacity", {"capacity": 0}),
    ("not-positive", "distance_limit", {"distance_limit": -3}),
    ("not-positive", "fleet", {"fleet": 0}),
    ("coordinate-range", "coords[1]", {"metric": "haversine", "coords": [(0, 0), (0, 91), (180, 90)]}),
    ("matrix-not-square", "distance_matrix", {"distance_matrix": [[0, 1, 1], [1, 0, 1]]}),
    ("matrix-diagonal", "duration_matrix[1, 1]", {"duration_matrix": [[0, 1, 1], [1, 2, 1], [1, 1, 0]]}),
    ("window-reversed", "time_windows[2]", {"time_windows": [(0, 9), (0, 9), (5, 4)]}),
    ("duplicate-name", "names", {"names": ["depot", "a", "a"]}),
    ("unknown-value", "backhaul", {"backhaul": "sometimes"}),
    ("unknown-value", "metric", {"metric": "manhattan"}),
    ("unknown-value", "rounding", {"rounding": "banker"}),
    ("unknown-value", "day", {"day": "tomorrow"}),
    ("backhaul-rule-missing", "backhaul", {"delivery": [1, 0], "pickup": [0, 1]}),
    ("demand-above-capacity", "customer '2'", {"delivery": [1, 10.1]}),
    ("demand-above-capacity", "customer '1'", {"delivery": [0, 1], "pickup": [11, 0], "backhaul": "mixed"}),
    ("demand-above-capacity", "customer '2'", {"capacity": 1e7, "delivery": [1, 1e7 + 1]}),  # whole: exactly
    ("fleet-too-small", "fleet", {"delivery": [6, 7], "fleet": 1}),
    ("fleet-too-small", "fleet", {"capacity": 1e7, "delivery": [5e6, 5e6 + 1], "fleet": 1}),
    ("window-unreachable", "customer '2'", {"time_windows": [(0, 99), (0, 9), (0, 3)]}),
    ("limit-too-short", "customer '2'", {"distance_limit": 7}),
    # -- beyond the 48 variants
    ("negative", "cost_per_time", {"cost_per_time": -1}),
    ("not-finite", "fixed_cost", {"fixed_cost": NAN}),
    ("wrong-shape", "prize", {"prize": [1]}),
    ("negative", "prize[1]", {"prize": [1, -1]}),
    ("not-finite", "prize[0]", {"prize": [NAN, 1]}),
    ("wrong-shape", "skills", {"skills": [["lift"]]}),
    ("wrong-type", "skills[0]", {"skills": ["lift", []]}),
    ("wrong-type", "skills[1]", {"skills": [[], [1]]}),
    ("skill-missing", "customer '1'", {"skills": [["lift"], []]}),
    ("wrong-shape", "customer_windows", {"customer_windows": [[(0, 9)]]}),
    ("wrong-type", "customer_windows[0]", {"customer_windows": [[5, 6], []]}),
    ("window-reversed", "customer_windows[1]", {"customer_windows": [[], [(0, 9), (8, 7)]]}),
    ("not-finite", "customer_windows[1]", {"customer_windows": [[], [(0, 9), (INF, INF)]]}),
    ("window-unreachable", "customer '2'", {"customer_windows": [[(0, 9), (20, 30)], [(0, 1), (2, 3)]]}),
    ("wrong-type", "vehicle_types", {"vehicle_types": [{"capacity": 5}]}),
    ("too-large", "vehicle_types", {"vehicle_types": [VehicleType()] * 1001}),
    ("duplicate-name", "vehicle_types", {"vehicle_types": [VehicleType(name="van")] * 2}),
    ("wrong-type", "vehicle_types[1].name", {"vehicle_types": [VehicleType(), VehicleType(name=3)]}),
    ("not-positive", "vehicle_types[0].count", {"vehicle_types": [VehicleType(count=0)]}),
    ("wrong-type", "vehicle_types[0].count", {"vehicle_types": [VehicleType(count=1.5)]}),
    ("not-positive", "vehicle_types[0].capacity", {"vehicle_types": [VehicleType(capacity=0)]}),
    ("wrong-type", "vehicle_types[0].open", {"vehicle_types": [VehicleType(open="no")]}),
    ("negative", "vehicle_types[0].fixed_cost", {"vehicle_types": [VehicleType(fixed_cost=-1)]}),
    ("not-positive", "vehicle_types[0].max_duration", {"vehicle_types": [VehicleType(max_duration=0)]}),
    ("not-positive", "vehicle_types[0].speed", {"vehicle_types": [VehicleType(speed=0)]}),
    ("unknown-location", "vehicle_types[0].depot", {"vehicle_types": [VehicleType(depot=1)]}),
    ("unknown-location", "vehicle_types[0].end", {"vehicle_types": [VehicleType(end=-1)]}),
    ("window-reversed", "vehicle_types[0].shift", {"vehicle_types": [VehicleType(shift=(9, 8))]}),
    ("wrong-shape", "vehicle_types[0].shift", {"vehicle_types": [VehicleType(shift=(9,))]}),
    ("wrong-type", "vehicle_types[0].skills", {"vehicle_types": [VehicleType(skills="lift")]}),
    ("not-positive", "vehicle_types[0].max_trips", {"vehicle_types": [VehicleType(max_trips=0)]}),
    (
        "wrong-type",
        "vehicle_types[0].reload_depots",
        {"vehicle_types": [VehicleType(max_trips=2, reload_depots=0)]},
    ),
    (
        "unknown-location",
        "vehicle_types[0].reload_depots",
        {"vehicle_types": [VehicleType(max_trips=2, reload_depots=[1])]},
    ),
    (
        "conflicting-fields",
        "vehicle_types[0].reload_depots",
        {"vehicle_types": [VehicleType(reload_depots=[0])]},
    ),
    ("conflicting-fields", "vehicle_types[0].end", {"vehicle_types": [VehicleType(open=True, end=0)]}),
    ("conflicting-fields", "vehicle_types[0].end", {"open": True, "vehicle_types": [VehicleType(end=0)]}),
    (
        "conflicting-fields",
        "vehicle_types[0].speed",
        {"vehicle_types": [VehicleType(speed=2, duration_matrix=SQUARE)]},
    ),
    (
        "matrix-diagonal",
        "vehicle_types[0].duration_matrix[0, 0]",
        {"vehicle_types": [VehicleType(duration_matrix=[[1, 1, 1], [1, 0, 1], [1, 1, 0]])]},
    ),
    (
        "fleet-too-small",
        "fleet",
        {"vehicle_types": [VehicleType(count=1, capacity=c) for c in (0.5, 2)]},
    ),
    ("window-unreachable", "customer '2'", {"vehicle_types": [VehicleType(shift=(0, 7))]}),
    ("window-unreachable", "customer '2'", {"vehicle_types": [VehicleType(max_duration=7)]}),
    (
        "demand-above-capacity",
        "customer '2'",
        {
            "skills": [[], ["lift"]],
            "vehicle_types": [VehicleType(), VehicleType(capacity=1, skills=["lift"])],
        },
    ),
]


@pytest.mark.parametrize(("code", "where", "fields"), SINGLE, ids=[f"{c}:{w}" for c, w, _ in SINGLE])
def test_fault_is_found_alone(code, where, fields):
    assert faults(**fields) == [(code, where)]


def test_every_code_of_these_modules_has_an_example_above():
    """Each code that a field, a vehicle type, or what they mean together can raise, is raised by a case."""
    trees = [ast.parse(inspect.getsource(module)) for module in (fields, fleet, servable, validate)]
    texts = {node.value for tree in trees for node in ast.walk(tree) if type(node) is ast.Constant}
    assert {code for code, _, _ in SINGLE} == texts & set(CODES)


def test_all_faults_come_at_once():
    """Eight fields are wrong, each in its own way; none hides another."""
    found = faults(
        capacity=-1,
        delivery=[1, -2],
        coords=[(0, 0), (NAN, 0), (0, 4)],
        service=[0, 0, 0],
        time_windows=[(0, 9), (5, 4), (7, 6)],
        fleet=0,
        names=["x", "x", "y"],
        rounding="up",
        open=None,
    )
    assert sorted(found) == sorted(
        [
            ("unknown-value", "rounding"),
            ("wrong-type", "open"),
            ("negative", "delivery[1]"),
            ("wrong-shape", "service"),
            ("not-positive", "capacity"),
            ("not-positive", "fleet"),
            ("not-finite", "coords[1, 0]"),
            ("window-reversed", "time_windows[1]"),
            ("window-reversed", "time_windows[2]"),
            ("duplicate-name", "names"),
        ]
    )


def test_faults_name_customers_by_the_users_names():
    assert faults(delivery=[99, 99], names=["hub", "Ada", "Bob"]) == [
        ("demand-above-capacity", "customer 'Ada'"),
        ("demand-above-capacity", "customer 'Bob'"),
    ]


def test_a_file_that_is_wrong_throughout_gets_a_bounded_answer():
    """The first faults of each kind, and how many more there are."""
    n, most = 500, fields.MAX_FAULTS
    for field, count, given in (
        ("delivery", n, {"delivery": -np.ones(n)}),
        ("coords", n + 1, {"coords": np.full((n + 1, 2), (999.0, 0)), "metric": "haversine"}),
        ("customers", n, {"delivery": np.full(n, 99.0)}),
        ("customers", n, {"distance_limit": 1.0}),
        ("time_windows", n + 1, {"time_windows": [(5, 4)] * (n + 1)}),
        ("names", n // 2, {"names": [f"{i // 2}" for i in range(n + 1)]}),
    ):
        sound = {"capacity": 10, "delivery": np.ones(n), "coords": [(0, 0), *[(3, 4)] * n]}
        with pytest.raises(ChainRouteError) as caught:
            Problem(**{**sound, **given})
        found = caught.value.faults
        assert (len(found), len({fault.code for fault in found})) == (most + 1, 1)
        assert (found[-1].where, found[-1].message) == (field, f"and {count - most} more.")


def test_windows_are_told_together_with_demands():
    """One customer asks for more than a vehicle holds, another closes before anybody can be there."""
    assert faults(delivery=[99, 1], time_windows=[(0, 99), (0, 99), (0, 1)]) == [
        ("demand-above-capacity", "customer '1'"),
        ("window-unreachable", "customer '2'"),
    ]


# -- who cannot be served, and why


def reasons(**fields):
    with pytest.raises(ChainRouteError) as error:
        Problem(**{"capacity": 10, "delivery": [1], "coords": [(0, 0), (3, 4)], **fields})
    return [(f.code, f.message) for f in error.value.faults]


def test_reason_arrival_after_closing():
    """The depot opens at 2, the customer is 5 away and closes at 6."""
    assert reasons(time_windows=[(2, 99), (0, 6)]) == [
        ("window-unreachable", "is reached at 7 at the earliest, but closes at 6.")
    ]


def test_reason_depot_closes_before_the_way_back():
    """Service 1 after the opening at 20, 5 back: 26 is after 25."""
    fields = {"service": [1], "time_windows": [(0, 25), (20, 30)]}
    assert reasons(**fields) == [
        ("window-unreachable", "after service in [20, 30] no vehicle is back before its depot closes.")
    ]
    Problem(capacity=10, delivery=[1], coords=[(0, 0), (3, 4)], open=True, **fields)


def test_reason_limit():
    """There and back is 10; an open route needs 5; with service it is 12."""
    assert reasons(distance_limit=9.5) == [
        ("limit-too-short", "the shortest trip takes 10, the limit is 9.5.")
    ]
    Problem(capacity=10, delivery=[1], coords=[(0, 0), (3, 4)], open=True, distance_limit=5)
    Problem(capacity=10, delivery=[1], coords=[(0, 0), (3, 4)], service=[2], distance_limit=10)
    assert reasons(service=[2], distance_limit=11, limit_counts_service=True) == [
        ("limit-too-short", "the shortest trip takes 12, the limit is 11.")
    ]


def test_reason_one_depot_is_in_time_and_another_within_the_limit():
    """The near depot opens too late for the window, the far one is beyond the limit."""
    found = reasons(
        num_depots=2,
        coords=[(1, 0), (9, 0), (0, 0)],
        distance_limit=10,
        time_windows=[(50, 99), (0, 99), (0, 20)],
    )
    assert found == [
        ("window-unreachable", "no depot reaches it both inside the windows and within the limit.")
    ]


def test_any_depot_will_do():
    Problem(capacity=10, num_depots=2, delivery=[1], coords=[(0, 0), (90, 0), (99, 0)], distance_limit=18)


def test_exact_bounds_are_met():
    """Arrival exactly at closing, return exactly at closing and a trip of exactly the limit are fine."""
    Problem(
        capacity=1,
        delivery=[1],
        service=[1],
        coords=[(0, 0), (3, 4)],
        time_windows=[(0, 11), (0, 5)],
        distance_limit=10,
    )


def test_decimal_windows_do_not_fail_on_rounding_errors():
    """0.1 + 0.2 > 0.3 in floating point, yet nobody is late."""
    Problem(
        capacity=1,
        delivery=[1],
        distance_matrix=[[0, 0.2], [0.2, 0]],
        time_windows=[(0.1, 9), (0, 0.3)],
    )


def test_demand_and_fleet_allow_single_precision_demands():
    """Ten customers of a tenth each, in single precision, sum to a little more than one vehicle."""
    tenth = float(np.float32(0.1))
    assert sum([tenth] * 10) > 1
    Problem(capacity=1, delivery=[tenth] * 10, coords=np.zeros((11, 2)), fleet=1)


# -- a detour may be shorter than the direct way: no false refusal


def judged_feasible(problem, route):
    assert check(problem, Solution.of(problem, [(0, route)])).feasible


def test_no_false_refusal_where_a_matrix_breaks_the_triangle_inequality():
    """The direct way to B takes 100, through A it takes 20: too long alone, fine together."""
    p = Problem(
        capacity=10,
        delivery=[1, 1],
        distance_matrix=[[0, 10, 100], [10, 0, 10], [100, 10, 0]],
        open=True,
        distance_limit=20,
        time_windows=[(0, 99), (0, 10), (0, 20)],
    )
    judged_feasible(p, [1, 2])


def test_no_false_refusal_with_an_asymmetric_matrix():
    """Out by way of A (10 + 10), back by way of nothing (5); alone it would be 100 + 5."""
    matrix = [[0, 10, 100], [99, 0, 10], [5, 99, 0]]
    p = Problem(
        capacity=10,
        delivery=[1, 1],
        distance_matrix=matrix,
        distance_limit=25,
        time_windows=[(0, 25), (0, 10), (0, 20)],
    )
    judged_feasible(p, [1, 2])


def test_no_false_refusal_with_a_duration_matrix_of_its_own():
    """Distances are plain, but the way through A is the quick one."""
    p = Problem(
        capacity=10,
        delivery=[1, 1],
        coords=[(0, 0), (1, 0), (2, 0)],
        duration_matrix=[[0, 10, 100], [10, 0, 10], [10, 10, 0]],
        time_windows=[(0, 99), (0, 99), (0, 20)],
    )
    judged_feasible(p, [1, 2])


def test_no_false_refusal_where_rounding_makes_a_detour_shorter():
    """Legs of 0.4 round to nothing: 4 is 1.6 = 2 away directly, but 0 away stop by stop."""
    coords = [(0.4 * i, 0) for i in range(5)]
    p = Problem(
        capacity=10,
        delivery=[1] * 4,
        coords=coords,
        rounding="round",
        open=True,
        distance_limit=1,
        time_windows=[(0, 99), *[(0, 0)] * 4],
    )
    judged_feasible(p, [1, 2, 3, 4])


def test_asymmetry_is_seen_in_both_directions():
    """Out 10 and back 90: a limit of 99 refuses what the transposed halves would allow."""
    matrix = [[0, 10, 1], [90, 0, 90], [1, 90, 0]]
    found = faults(coords=None, distance_matrix=matrix, distance_limit=99)
    assert found == [("limit-too-short", "customer '1'")]
    Problem(capacity=10, delivery=[1, 1], distance_matrix=matrix, distance_limit=100)


def test_a_detour_too_long_is_refused_on_shortest_paths():
    """Even by way of A, B is 20 out; a limit of 19 on an open route cannot be kept."""
    matrix = [[0, 10, 100], [10, 0, 10], [100, 10, 0]]
    found = faults(coords=None, distance_matrix=matrix, open=True, distance_limit=19)
    assert found == [("limit-too-short", "customer '2'")]


@pytest.mark.parametrize(
    ("code", "where", "fields"),
    [
        ("wrong-type", "pickup", {"pickup": [[1], [1, 2]]}),
        ("wrong-type", "names", {"names": None}),
        ("wrong-type", "name", {"name": 5}),
        ("wrong-type", "distance_limit", {"distance_limit": np.array([1, 2])}),
        ("number-too-large", "capacity", {"capacity": 10**400}),
        ("number-too-large", "fleet", {"fleet": 10**400}),
        ("number-too-large", "delivery", {"delivery": [10**400, 1]}),
        ("number-too-large", "pickup", {"pickup": [10**400, 1]}),
        ("number-too-large", "coords", {"coords": [(0, 0), (10**400, 0), (0, 4)]}),
        ("number-too-large", "distance_matrix", {"distance_matrix": [[10**400] * 3] * 3}),
        ("number-too-large", "time_windows", {"time_windows": [(0, 10**400)] * 3}),
        ("coordinate-range", "coords[1]", {"metric": "haversine", "coords": [(0, 0), (180.5, 0), (0, 4)]}),
        ("matrix-diagonal", "distance_matrix[0, 0]", {"distance_matrix": [[0.5, 1, 1], *SQUARE[1:]]}),
        (
            "number-too-large",
            "distance_matrix[2, 0]",
            {"distance_matrix": [*SQUARE[:2], [1e308, 1, 0]]},
        ),
    ],
)
def test_absurd_values_end_in_a_coded_error_too(code, where, fields):
    assert faults(**fields) == [(code, where)]


def test_bounds_themselves_are_within_bounds():
    """The largest numbers and the largest problem that are allowed, the whole globe, and a full vehicle."""
    Problem(capacity=1e100, delivery=[1], coords=[(0, 0), (1e100, 0)], fleet=int(1e100))
    Problem(capacity=1, delivery=np.ones(10_099), coords=np.zeros((10_100, 2)))
    Problem(capacity=1, delivery=[1], coords=[(-180, 90), (180, -90)], metric="haversine")


def test_arrays_that_are_empty_are_left_out_and_others_are_not():
    given = {"pickup": np.array([3.0]), "service": np.zeros(0)}
    p = Problem(capacity=9, delivery=[0], coords=np.eye(2), backhaul="mixed", **given)
    assert (p.pickup.tolist(), p.service.tolist()) == ([3], [0])


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        ("has shape 1 x 2 where any is needed.", {"delivery": [[1, 2]]}),
        ("has shape a single number where any is needed.", {"delivery": 5}),
        ("has shape 3 x 3 where 3 x 2 is needed.", {"coords": np.eye(3)}),
        ("customer '2' has a pickup, but the rule is 'none'.", {"delivery": [1, 0], "pickup": [0, 0.5]}),
        ("2 vehicles, but the demand fills 3.", {"delivery": [9, 9, 9], "fleet": 2, "coords": np.eye(4, 2)}),
    ],
)
def test_messages_name_the_right_numbers_and_customers(message, fields):
    base = {"capacity": 10, "delivery": [1, 2], "coords": [(0, 0), (3, 0), (0, 4)]}
    with pytest.raises(ChainRouteError) as error:
        Problem(**{**base, **fields})
    assert [f.message for f in error.value.faults] == [message]


def test_each_depot_has_its_fleet():
    """26 on vehicles of 10: two depots with two vehicles each suffice, two with one each do not."""
    fields = {"capacity": 10, "num_depots": 2, "delivery": [9, 9, 8], "coords": np.eye(5, 2)}
    assert Problem(**fields, fleet=2).fleet == 2
    assert faults(**fields, fleet=1) == [("fleet-too-small", "fleet")]


def test_of_several_depots_the_best_is_told():
    """On a line: depots at 0 and 30, customers at 40, 31 and 10. One end is beyond the limit of 18 from
    either, and the others can be served from one depot only, so they are not named."""
    fields = {"num_depots": 2, "delivery": [1, 1, 1], "coords": [(x, 0) for x in (0, 30, 40, 31, 9)]}
    assert reasons(**fields, distance_limit=18) == [
        ("limit-too-short", "the shortest trip takes 20, the limit is 18.")
    ]
    open_at = [(0, 99), (5, 99)]
    assert reasons(**fields, time_windows=[*open_at, (0, 14.5), (0, 99), (0, 99)]) == [
        ("window-unreachable", "is reached at 15 at the earliest, but closes at 14.5.")
    ]
    late = reasons(**fields, time_windows=[*open_at, (0, 99), (0, 99), (3, 8)])
    assert late == [("window-unreachable", "is reached at 9 at the earliest, but closes at 8.")]
    back = reasons(**fields, time_windows=[*open_at, (0, 99), (97, 99.5), (95, 97)], service=[0, 9, 9])
    assert [message for _, message in back] == [
        "after service in [97, 99.5] no vehicle is back before its depot closes.",
        "after service in [95, 97] no vehicle is back before its depot closes.",
    ]


def test_the_way_out_is_told_where_it_differs_from_the_way_back():
    matrix = [[0, 7, 1], [2, 0, 9], [1, 9, 0]]
    windows = [(0, 99), (0, 6), (0, 9)]
    found = reasons(delivery=[1, 1], coords=None, distance_matrix=matrix, time_windows=windows)
    assert found == [("window-unreachable", "is reached at 7 at the earliest, but closes at 6.")]


def test_numpy_texts_and_flags_are_taken_as_plain_ones():
    p = Problem(
        capacity=1, delivery=[1], coords=[(0, 0), (1, 1)], open=np.True_, names=np.array(["depot", "A"])
    )
    assert (p.open, p.names) == (True, ("depot", "A"))
    assert (type(p.open), type(p.names[1])) == (bool, str)


# -- the final form of what vehicles and customers may have beyond the 48 variants


def sound(**fields):
    return Problem(**{"delivery": [1, 2], "coords": [(0, 0), (3, 0), (0, 4)], **fields})


def test_without_a_capacity_that_of_the_largest_type_is_taken():
    types = [VehicleType(capacity=c) for c in (5, 9, 7)]
    assert sound(vehicle_types=types).capacity == 9
    assert sound(vehicle_types=types, capacity=20).capacity == 20
    with pytest.raises(ChainRouteError) as error:
        sound(vehicle_types=[VehicleType(capacity=5), VehicleType()])
    assert [f.where for f in error.value.faults] == ["capacity"]


def test_windows_are_sorted_and_joined_and_their_hull_is_the_window():
    """One customer has two after those that meet are joined; a single window is no list of windows."""
    p = sound(capacity=9, customer_windows=[[(50, 60), (10, 20), (20, 30)], None])
    assert p.customer_windows == (((10, 30), (50, 60)), ())
    assert p.time_windows.tolist() == [[0, INF], [10, 60], [0, INF]]
    p = sound(
        capacity=9, customer_windows=[[(10, 30), (15, 20)], []], time_windows=[(0, 99), (1, 2), (3, 40)]
    )
    assert p.customer_windows == ()
    assert p.time_windows.tolist() == [[0, 99], [10, 30], [3, 40]]


@pytest.mark.parametrize("nothing", [(), []])
def test_what_is_left_out_is_an_empty_tuple(nothing):
    p = sound(capacity=9, skills=nothing, customer_windows=nothing, vehicle_types=nothing, prize=nothing)
    assert (p.skills, p.customer_windows, p.vehicle_types, p.prize) == ((), (), (), ())


def test_skills_become_sets_and_nothing_where_nobody_needs_any():
    able = [VehicleType(skills=["lift"])]
    p = sound(capacity=9, skills=[["lift", "lift"], None], vehicle_types=able)
    assert p.skills == (frozenset({"lift"}), frozenset())
    assert sound(capacity=9, skills=[[], None]).skills == ()


def test_prizes_and_limits_that_bind_nobody_are_none():
    assert sound(capacity=9, prize=[INF, INF], distance_limit=INF).prize == ()
    assert sound(capacity=9, distance_limit=INF).distance_limit is None
    assert list(sound(capacity=9, prize=[INF, 3]).prize) == [INF, 3]
