"""The judge: every rule broken by hand is caught with the right code, route, place and amount."""

import json
import math
import time
from pathlib import Path

import numpy as np
import pytest
from problems import line

from chainroute import VARIANTS, Backhaul, ChainRouteError, Problem, Solution, Violation, check


def broken(problem, *routes, depot=0):
    """What the judge says about routes from one depot: (code, route, place, amount)."""
    verdict = check(problem, Solution.of(problem, [(depot, route) for route in routes]))
    return [(v.code, v.route, v.location, pytest.approx(v.amount)) for v in verdict.violations]


def test_a_feasible_plan_has_a_cost_and_no_violations():
    """10 + 10 + 20 and 30 + 30."""
    verdict = check(line(), Solution.of(line(), [(0, [1, 2]), (0, [3])]))
    assert verdict.feasible
    assert verdict.cost == 100
    assert verdict.violations == ()


# -- each visited once


def test_missing_customers():
    """Each customer that no route visits is a violation of its own."""
    assert broken(line(), [2]) == [
        ("customer-missing", None, "A", 1),
        ("customer-missing", None, "C", 1),
    ]


def test_repeated_customers_within_and_across_routes():
    """A three times is two visits too many; two visits cost capacity twice as well (4 + 4 + 3 = 11 of 10)."""
    assert broken(line(), [1, 2, 1], [3], [1]) == [
        ("customer-repeated", None, "A", 2),
        ("capacity-exceeded", 1, "depot", 1),
    ]


def test_no_routes_at_all():
    assert [code for code, *_ in broken(line())] == ["customer-missing"] * 3


# -- capacity


def test_capacity_of_deliveries():
    """4 + 3 + 2 is 1 more than 8, when leaving the depot."""
    assert broken(line(capacity=8), [1, 2, 3]) == [("capacity-exceeded", 1, "depot", 1)]


def test_capacity_names_the_route():
    assert broken(line(capacity=6), [3], [1, 2]) == [("capacity-exceeded", 2, "depot", 1)]


def test_capacity_of_backhauls_after_linehauls():
    """Pickups of 6 and 5 at B and C are 11 in the end; the delivery of 4 has long left."""
    p = line(delivery=[4, 0, 0], pickup=[0, 6, 5], backhaul="linehauls-first")
    assert broken(p, [1, 2, 3]) == [("capacity-exceeded", 1, "C", 1)]
    assert broken(p, [1, 2], [3]) == []


def test_capacity_peaks_in_the_middle_of_a_mixed_route():
    """5 + 4 on board for A and C, and 7 picked up at B after A: 4 + 7 = 11. With C before B it is 7."""
    p = line(delivery=[5, 0, 4], pickup=[0, 7, 0], backhaul="mixed")
    assert broken(p, [1, 2, 3]) == [("capacity-exceeded", 1, "B", 1)]
    assert broken(p, [1, 3, 2]) == []
    assert broken(p, [2, 1, 3]) == [("capacity-exceeded", 1, "B", 6)]


def test_mixed_rule_is_the_physical_one():
    """A pickup of half a load before deliveries of two halves: the published rule passes it, we do not."""
    p = line(capacity=1, delivery=[0, 0.5, 0.5], pickup=[0.5, 0, 0], backhaul="mixed")
    assert broken(p, [1, 2, 3]) == [("capacity-exceeded", 1, "A", 0.5)]
    assert broken(p, [2, 1, 3]) == []


def test_capacity_forgives_single_precision_only():
    """Quotients in single precision are off by 1e-8 at most; a thousandth of the capacity is real."""
    thirds = [float(np.float32(x) / np.float32(3)) for x in (1, 1, 1)]
    assert broken(line(capacity=1, delivery=thirds), [1, 2, 3]) == []
    assert broken(line(capacity=1, delivery=[0.5, 0.5, 0.001]), [1, 2, 3]) == [
        ("capacity-exceeded", 1, "depot", 0.001)
    ]


def test_whole_numbers_are_judged_exactly_and_told_in_full():
    """Ten million on a vehicle, and eight more; milliseconds since 1970; a limit of 40,000 kilometres in
    millimetres. Fractions have the slack that they are said to have."""
    p = line(capacity=1e7, delivery=[5_000_000, 5_000_008, 0])
    assert broken(p, [1, 2, 3]) == [("capacity-exceeded", 1, "depot", 8)]
    message = check(p, Solution.of(p, [(0, [1, 2, 3])])).violations[0].message
    assert message == "route 1 carries 10000008 when leaving depot, capacity 10000000."
    assert broken(p.replace(delivery=[5e6, 5e6, 0]), [1, 2, 3]) == []
    assert broken(p.replace(capacity=1e7 + 0.5), [1, 2, 3]) == []  # 7.5 too many, of 10 allowed

    now = 1_700_000_000_000
    matrix = 10**10 * (1 - np.eye(4))
    p = Problem(capacity=3, delivery=[1, 1, 1], distance_matrix=matrix, distance_limit=4 * 10**10 - 1)
    assert [(code, amount) for code, *_, amount in broken(p, [1, 2, 3])] == [("limit-exceeded", 1)]
    p = p.replace(distance_limit=None, time_windows=[[now, now + 10**12], *[[now, now + 2 * 10**10 - 1]] * 3])
    assert [v[::3] for v in broken(p, [1, 2], [3])] == [("window-missed", 1)]


# -- linehauls first


def test_linehaul_after_backhaul_names_each_delivery():
    p = line(delivery=[0, 3, 2], pickup=[4, 0, 0], backhaul="linehauls-first")
    assert broken(p, [1, 2, 3]) == [
        ("linehaul-after-backhaul", 1, "B", 3),
        ("linehaul-after-backhaul", 1, "C", 2),
    ]
    assert broken(p, [2, 1, 3]) == [("linehaul-after-backhaul", 1, "C", 2)]
    assert broken(p, [2, 3, 1]) == []
    assert broken(p.replace(backhaul="mixed"), [1, 2, 3]) == []


def test_order_holds_on_each_route_for_itself():
    p = line(delivery=[0, 3, 2], pickup=[4, 0, 0], backhaul="linehauls-first")
    assert broken(p, [1], [2, 3]) == []


# -- time windows


def test_window_missed_with_service_and_waiting():
    """A opens at 12 and takes 5, so B is reached at 27, 2 after it closes; 47 at the depot is in time."""
    p = line(service=[5, 0, 0], time_windows=[(0, 60), (12, 30), (0, 25), (0, 30)])
    assert broken(p, [1, 2], [3]) == [("window-missed", 1, "B", 2)]
    assert broken(p, [2, 1], [3]) == []


def test_lateness_is_told_at_every_stop():
    """Nobody makes up for lost time: late at B and, going on from there, at C."""
    p = line(time_windows=[(0, 99), (18, 30), (0, 25), (0, 36)])
    assert broken(p, [1, 2, 3]) == [("window-missed", 1, "B", 3), ("window-missed", 1, "C", 2)]


def test_the_depots_opening_delays_the_start():
    p = line(time_windows=[(7, 99), (0, 17), (0, 99), (0, 99)])
    assert broken(p, [1], [2, 3]) == []
    assert broken(p, [2, 1], [3]) == [("window-missed", 1, "A", 20)]


def test_service_may_end_after_closing():
    """Only its start must lie inside the window."""
    p = line(service=[50, 0, 0], time_windows=[(0, 99), (0, 10), (0, 99), (0, 99)])
    assert broken(p, [1], [2, 3]) == []


def test_depot_closed():
    """C is left at 30 + 5 and the depot reached at 65 as it closes; another minute at A is one too many."""
    p = line(service=[0, 0, 5], time_windows=[(0, 65), (0, 99), (0, 99), (0, 99)])
    assert broken(p, [1, 2, 3]) == []
    assert broken(p, [1, 3, 2]) == []
    late = p.replace(service=[1, 0, 5])
    assert broken(late, [1, 2, 3]) == [("depot-closed", 1, "depot", 1)]
    assert broken(late.replace(open=True), [1, 2, 3]) == []


def test_windows_use_durations_not_distances():
    twice = 2 * np.abs(np.subtract.outer([0, 10, 20, 30], [0, 10, 20, 30]))
    p = line(duration_matrix=twice, time_windows=[(0, 120), (0, 20), (0, 40), (0, 60)])
    verdict = check(p, Solution.of(p, [(0, [1, 2, 3])]))
    assert (verdict.feasible, verdict.cost) == (True, 60)
    assert broken(p, [2, 1], [3]) == [("window-missed", 1, "A", 40)]


# -- limit


def test_limit_counts_the_way_back_unless_open():
    p = line(distance_limit=60)
    assert broken(p, [1, 2, 3]) == []
    assert broken(p, [2, 1, 3]) == [("limit-exceeded", 1, None, 20)]
    o = line(distance_limit=30, open=True)
    assert broken(o, [1, 2, 3]) == []
    assert broken(o, [2, 1, 3]) == [("limit-exceeded", 1, None, 20)]


def test_limit_counts_service_where_the_problem_says_so():
    p = line(distance_limit=64, service=[1, 2, 3])
    assert broken(p, [1, 2, 3]) == []
    assert broken(p.replace(limit_counts_service=True), [1, 2, 3]) == [("limit-exceeded", 1, None, 2)]


def test_limit_follows_an_asymmetric_matrix():
    """There is 1 a leg, back is 5 a leg: A then B is 1 + 1 + 10, B then A is 2 + 5 + 5."""
    towards, back = np.triu(np.ones((3, 3)), 1), np.tril(np.ones((3, 3)), -1)
    steps = np.abs(np.subtract.outer(range(3), range(3)))
    p = Problem(capacity=9, delivery=[1, 1], distance_matrix=steps * (towards + 5 * back), distance_limit=12)
    assert broken(p, [1, 2]) == broken(p, [2, 1]) == []
    assert check(p, Solution.of(p, [(0, [1, 2])])).cost == 12
    late = p.replace(distance_matrix=steps * (towards + 5 * back) + np.eye(3, k=-1))
    assert broken(late, [2, 1]) == [("limit-exceeded", 1, None, 2)]


# -- fleet and depots


def test_fleet_is_counted_at_each_depot_and_ignores_empty_routes():
    p = line(num_depots=2, delivery=[4, 3], names=["east", "west", "A", "B"], fleet=1)
    each = Solution.of(p, [(0, [2]), (1, [3]), (0, [])])
    assert check(p, each).feasible
    assert broken(p, [2], [3]) == [("fleet-exceeded", None, "east", 1)]
    assert broken(p, [2], [3], depot=1) == [("fleet-exceeded", None, "west", 1)]


def test_a_vehicle_returns_to_the_depot_it_left():
    """Depots at 0 and 10, A at 20 and B at 30: both from the first cost 60, from the second 40."""
    p = line(num_depots=2, delivery=[4, 3], names=["east", "west", "A", "B"])
    assert [check(p, Solution.of(p, [(d, [2, 3])])).cost for d in p.depots] == [60, 40]


def test_each_depot_has_its_own_hours():
    p = line(
        num_depots=2,
        delivery=[4, 3],
        names=["east", "west", "A", "B"],
        time_windows=[(0, 99), (0, 39), (0, 99), (0, 99)],
    )
    assert broken(p, [2, 3], depot=0) == []
    assert broken(p, [2, 3], depot=1) == [("depot-closed", 1, "west", 1)]


# -- every variant


def instance(v):
    """A plan that just keeps every rule of the variant is [A, B], [C]; see `BROKEN` for what breaks it.

    A, B, C at 10, 20, 30; depot at 0 and, with several, another at 60 that serves C. Service takes 5, the
    capacity is that of A + B, and C hands over where there are backhauls.
    """
    backhaul = v.backhaul is not Backhaul.NONE
    far = [(60, 0)] if v.multi_depot else []
    return Problem(
        capacity=8,
        delivery=[4, 4, 0 if backhaul else 2],
        pickup=[0, 0, 2 if backhaul else 0],
        service=[5, 5, 5],
        num_depots=1 + len(far),
        coords=[(0, 0), *far, (10, 0), (20, 0), (30, 0)],
        time_windows=[*[(0, 68)] * (1 + len(far)), (0, 15), (0, 25), (0, 45)] if v.time_windows else None,
        distance_limit=(30 if v.open else 60) if v.limit else None,
        open=v.open,
        backhaul=v.backhaul,
        names=["depot", *(["far"] if far else []), "A", "B", "C"],
    )


# plan, for which variants, and the violation that must be among those found
BROKEN = [
    (["A", "B"], lambda v: True, ("customer-missing", None, "C", 1)),
    (["A", "B"], ["C"], ["A"], lambda v: True, ("customer-repeated", None, "A", 1)),
    (["A", "B", "C"], lambda v: v.backhaul is Backhaul.NONE, ("capacity-exceeded", 1, "depot", 2)),
    (["C", "A", "B"], lambda v: v.backhaul is not Backhaul.NONE, ("capacity-exceeded", 1, "C", 2)),
    (["C", "B"], ["A"], lambda v: v.backhaul == "linehauls-first", ("linehaul-after-backhaul", 1, "B", 4)),
    (["B", "A"], ["C"], lambda v: v.time_windows, ("window-missed", 1, "A", 20)),
    (["A"], ["B", "C"], lambda v: v.time_windows and not v.open, ("depot-closed", 2, "depot", 2)),
    (["B", "A", "C"], lambda v: v.limit, ("limit-exceeded", 1, None, 20)),
]


def plan(problem, routes, depots=None):
    number = {name: i for i, name in enumerate(problem.names)}
    depots = depots or [0] * len(routes)
    return Solution.of(
        problem, [(d, [number[c] for c in route]) for d, route in zip(depots, routes, strict=True)]
    )


@pytest.mark.parametrize("v", VARIANTS, ids=str)
def test_every_variant_keeps_its_rules_and_no_others(v):
    p = instance(v)
    assert p.variant == v
    verdict = check(p, plan(p, [["A", "B"], ["C"]], [0, 1 if v.multi_depot else 0]))
    assert verdict.feasible, str(verdict)
    assert verdict.cost == (50 if v.open else 100)
    for *routes, applies, (code, route, place, amount) in BROKEN:
        found = [x for x in check(p, plan(p, routes)).violations if x.code == code]
        if applies(v):
            assert [(x.route, x.location, x.amount) for x in found] == [(route, place, amount)]
        elif code not in ("capacity-exceeded", "customer-missing", "customer-repeated"):
            assert found == []


# -- how the verdict is told


def test_verdict_as_json_and_text():
    p = line(capacity=8)
    verdict = check(p, Solution.of(p, [(0, [1, 2, 3])]))
    assert verdict.violations == (
        Violation("capacity-exceeded", "route 1 carries 9 when leaving depot, capacity 8.", 1, 1, "depot"),
    )
    assert json.loads(json.dumps(verdict.as_dict())) == {
        "feasible": False,
        "cost": 60,
        "violations": [
            {
                "code": "capacity-exceeded",
                "message": "route 1 carries 9 when leaving depot, capacity 8.",
                "amount": 1,
                "route": 1,
                "location": "depot",
            }
        ],
    }
    assert str(verdict) == (
        "infeasible, cost 60\n  [capacity-exceeded] route 1 carries 9 when leaving depot, capacity 8."
    )


def test_times_of_the_day_are_told_as_such():
    """By B, which lies beyond it, A is reached 20 late; and so C 10."""
    p = line(time_windows=[(28_800, 36_000), (0, 28_810), (0, 36_000), (0, 28_840)], day="any")
    verdict = check(p, Solution.of(p, [(0, [2, 1, 3])]))
    assert [v.message for v in verdict.violations] == [
        "route 1 reaches A at 08:00:30, which closes at 08:00:10.",
        "route 1 reaches C at 08:00:50, which closes at 08:00:40.",
    ]


def test_the_parts_of_a_cost_are_told():
    p = line(fixed_cost=7.0)
    verdict = check(p, Solution.of(p, [(0, [1, 2, 3])]))
    assert str(verdict) == "feasible, cost 67\n  cost = distance 60 + fixed 7"
    assert verdict.as_dict()["parts"] == {"distance": 60, "time": 0, "fixed": 7, "prizes": 0}


def test_judge_reads_the_problem_it_is_given_not_the_solutions_own():
    loose, tight = line(), line(capacity=8)
    assert not check(tight, Solution.of(loose, [(0, [1, 2, 3])])).feasible


def test_cost_is_exact_in_double_precision():
    """Ten legs of 0.1 are 1, not 0.9999999999999999."""
    p = Problem(capacity=9, delivery=[1] * 9, distance_matrix=0.1 * (1 - np.eye(10)))
    verdict = check(p, Solution.of(p, [(0, range(1, 10))]))
    assert verdict.cost == math.fsum([0.1] * 10) == 1.0


def test_judge_imports_no_solver_environment_or_format():
    """It is an independent witness: of the problem, the solution, their clock and how text is shown."""
    source = Path(check.__code__.co_filename).read_text()
    used = {row.split()[1] for row in source.splitlines() if row.startswith("from chainroute")}
    plan = ("plan.solution", "plan.timetable", "runtime.numerals")
    known = ("errors", "problem", "problem.fleet", "problem.variants", *plan)
    assert used == {f"chainroute.{module}" for module in known}


def test_a_thousand_customers_are_judged_in_20_ms():
    """With every rule in force. Processor time, the best of five and twice the aim: machines are busy."""
    n = 1000
    rng = np.random.default_rng(0)
    p = Problem(
        capacity=50,
        delivery=np.where(np.arange(n) % 5, 4, 0),
        pickup=np.where(np.arange(n) % 5, 0, 4),
        service=np.ones(n),
        coords=rng.uniform(0, 100, (n + 1, 2)),
        time_windows=[(0, 10_000)] * (n + 1),
        distance_limit=5_000,
        backhaul="mixed",
        fleet=n,
    )
    solution = Solution.of(p, [(0, range(i, i + 10)) for i in range(1, n + 1, 10)])
    seconds = []
    for _ in range(5):
        begin = time.process_time()
        verdict = check(p, solution)
        seconds.append(time.process_time() - begin)
    assert verdict.feasible
    assert min(seconds) < 0.04


def test_a_solution_of_another_problem_is_a_coded_error_not_a_crash():
    small = Problem(capacity=10, delivery=[1], coords=[(0, 0), (1, 0)])
    with pytest.raises(ChainRouteError) as error:
        check(small, Solution.of(line(), [(0, [1, 2])]))
    assert [f.code for f in error.value.faults] == ["unknown-location"]
