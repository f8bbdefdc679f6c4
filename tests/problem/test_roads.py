"""No road: what stands for it, and that everyone who is asked agrees."""

import itertools
import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from chainroute import ChainRouteError, Problem, Solution, check
from chainroute.formats import read, write
from chainroute.formats.plot import draw
from chainroute.neural.decode import DecodeOptions, decode
from chainroute.neural.env import begin, from_problems, mask
from chainroute.neural.policy import PolicyConfig
from chainroute.neural.policy.store import random_policy
from chainroute.problem.roads import ABSURD_FACTOR, as_numbers, mark_absurd, with_detours
from chainroute.search.own.exact import optimum
from chainroute.search.solvers import milp, ortools, pyvrp, vroom

INF = np.inf
SENTINELS = (1e9, 1e12, 1e15, 1e18, INF)


def city(n=12, seed=0, **fields):
    """Customers within a few kilometres, in whole metres."""
    rng = np.random.default_rng(seed)
    coords = rng.uniform(0, 30_000, (n + 1, 2))
    matrix = np.hypot(*(coords[:, None] - coords).transpose(2, 0, 1)).round()
    demand = rng.integers(1, 10, n)
    return Problem(**{"capacity": 20, "delivery": demand, "distance_matrix": matrix, **fields})


def without(problem, arcs, sentinel=INF):
    matrix = problem.distance_matrix.copy()
    matrix[tuple(np.transpose(arcs))] = sentinel
    return problem.replace(distance_matrix=matrix)


# -- what stands for it


def test_numbers_that_no_plan_could_contain_stand_for_no_road():
    """Roads of at most 30 are needed to reach everyone and come back; 4 locations, so more than 12,000."""
    matrix = np.array([[0, 10, 30, 40], [10, 0, 20, 1e9], [30, 20, 0, 30], [12_000, 12_001, 30, 0]])
    expected = matrix.copy()
    expected[1, 3] = expected[3, 1] = INF
    assert ABSURD_FACTOR == 100
    assert mark_absurd(matrix, 1, open=False).tolist() == expected.tolist()
    p = Problem(capacity=3, delivery=[1, 1, 1], distance_matrix=matrix)
    assert p.distances.tolist() == expected.tolist()
    assert not p.has_all_roads


def test_a_far_customer_is_not_cut_off():
    """However far it is, if no shorter road leads to it, its roads are roads."""
    matrix = np.array([[0, 1, 1e12], [1, 0, 1e12], [1e12, 1e12, 0]])
    assert mark_absurd(matrix, 1, open=False).tolist() == matrix.tolist()
    one_way = np.array([[0, 1, 2], [1, 0, 1], [1e12, 1e12, 0]])  # only the way back is long
    assert mark_absurd(one_way, 1, open=False).tolist() == one_way.tolist()
    assert np.isinf(mark_absurd(one_way, 1, open=True)[2, :2]).all()  # which nobody takes


def test_two_matrices_together_cut_nobody_off():
    """The short way to customer 2 leads by customer 1, the quick way to 1 by 2. Without 0 - 2, which is
    absurdly long, all need 0 - 1, which is not absurdly slow any more."""
    distance = np.array([[0, 1, 1e6], [1, 0, 1], [1e6, 1, 0]])
    duration = np.array([[0, 1e6, 1], [1e6, 0, 1], [1, 1, 0]])
    p = Problem(capacity=2, delivery=[1, 1], distance_matrix=distance, duration_matrix=duration)
    assert p.distances.tolist() == [[0, 1, INF], [1, 0, 1], [INF, 1, 0]]
    assert p.durations.tolist() == [[0, 1e6, INF], [1e6, 0, 1], [INF, 1, 0]]


@given(st.integers(0, 10**6), st.integers(1, 3), st.booleans())
def test_no_two_matrices_of_roads_are_refused(seed, depots, open):
    """Random ones with all orders of magnitude, in which there is a road from everywhere to everywhere."""
    rng = np.random.default_rng(seed)
    n = depots + int(rng.integers(1, 7))
    matrices = 10 ** rng.uniform(0, 12, (2, n, n))
    for matrix in matrices:
        np.fill_diagonal(matrix, 0)
    p = Problem(
        capacity=n,
        delivery=np.ones(n - depots),
        num_depots=depots,
        open=open,
        distance_matrix=matrices[0],
        duration_matrix=matrices[1],
    )
    assert (np.isinf(p.distances) == np.isinf(p.durations)).all()


@given(st.integers(0, 10**6), st.integers(1, 3), st.booleans())
def test_nobody_is_cut_off_and_what_is_written_is_read(seed, depots, open):
    """Random matrices with all orders of magnitude: who could be reached still can."""
    rng = np.random.default_rng(seed)
    n = depots + int(rng.integers(1, 7))
    matrix = 10 ** rng.uniform(0, 12, (n, n))
    matrix[rng.random((n, n)) < 0.2] = INF
    np.fill_diagonal(matrix, 0)

    def reached(roads, depot):
        found = roads[depot] < INF
        for _ in range(n):
            found = found | (roads[found] < INF).any(axis=0)
        return found

    def served(roads):
        """Whom some depot reaches, and has a way back from unless routes are open."""
        each = [reached(roads, d) & (open | reached(roads.T, d)) for d in range(depots)]
        return np.logical_or.reduce(each)[depots:].tolist()

    result = mark_absurd(matrix, depots, open)
    assert served(result) == served(matrix)
    if all(served(result)):
        assert mark_absurd(as_numbers(result, depots, open), depots, open).tolist() == result.tolist()
    assert np.isfinite(with_detours(result, depots)).all()


def test_null_in_lists_and_on_the_diagonal():
    """Databases give it so; from a place to itself no road is needed."""
    p = Problem(capacity=2, delivery=[1, 1], distance_matrix=[[None, 1, 2], [1, 1e9, None], [2, 3, INF]])
    assert p.distances.tolist() == [[0, 1, 2], [1, 0, INF], [2, 3, 0]]


def test_a_road_from_one_depot_and_back_to_another_serves_nobody():
    """A route is back where it began."""
    matrix = [[0, None, 1], [None, 0, None], [None, 1, 0]]
    with pytest.raises(ChainRouteError, match="no depot has both") as error:
        Problem(capacity=2, delivery=[1], num_depots=2, distance_matrix=matrix)
    assert [(fault.code, fault.where) for fault in error.value.faults] == [("no-road", "customer '1'")]


@pytest.mark.parametrize("wrong", ["roads", [[0, 1], [1]], [[0, 1, 1]]], ids=["text", "ragged", "one row"])
def test_a_matrix_that_is_none_is_told_beside_a_sound_one(wrong):
    there = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    for fields in (
        {"distance_matrix": wrong, "duration_matrix": there},
        {"distance_matrix": there, "duration_matrix": wrong},
    ):
        with pytest.raises(ChainRouteError) as error:
            Problem(capacity=2, delivery=[1, 1], **fields)
        assert [fault.where.split("[")[0] for fault in error.value.faults] == [
            field for field in fields if fields[field] is wrong
        ]


def test_one_matrix_without_a_road_is_enough():
    """Durations beside distances, and durations beside coordinates."""
    there, gone = [[0, 1, 1], [1, 0, 1], [1, 1, 0]], [[0, 5, 5], [5, 0, None], [5, 5, 0]]
    fields = {"capacity": 2, "delivery": [1, 1]}
    for first, second in ((there, gone), (gone, there)):
        p = Problem(**fields, distance_matrix=first, duration_matrix=second)
        assert p.distances[1, 2] == p.durations[1, 2] == INF
    p = Problem(**fields, coords=[(0, 0), (1, 0), (2, 0)], duration_matrix=gone)
    assert p.distances.tolist() == [[0, 1, 2], [1, 0, INF], [2, 1, 0]]
    assert p.distance(1, 2) == INF


# -- files


@pytest.mark.parametrize("ending", [".json", ".vrp"])
def test_files_keep_it(tmp_path, ending):
    problem = without(city(), [(3, 4), (0, 5), (6, 0)])
    write(problem, tmp_path / f"a{ending}")
    again = read(tmp_path / f"a{ending}")
    assert again.distances.tolist() == problem.distances.tolist()
    text = (tmp_path / f"a{ending}").read_text()
    assert ("null" in text) == (ending == ".json")
    assert "nf" not in text.replace("INFO", "")  # neither inf nor Infinity: others have to read it


def test_json_takes_null_and_infinity_and_keeps_what_only_durations_say(tmp_path):
    document = {
        "capacity": 9,
        "depots": [{"x": 0, "y": 0}],
        "customers": [{"x": 1, "y": 0}, {"x": 2, "y": 0}],
        "durations": [[0, 1, 2], [1, 0, "?"], [2, 1, 0]],
    }
    for word in ("null", "Infinity", "1e30"):
        path = tmp_path / "a.json"
        path.write_text(json.dumps(document).replace('"?"', word))
        problem = read(path)
        assert problem.distances[1, 2] == INF
        write(problem, path)
        assert read(path) == problem
    path.write_text(json.dumps(document).replace('"?"', "NaN"))
    with pytest.raises(ChainRouteError, match="not-finite"):
        read(path)


# -- judge, mask and network


def test_the_judge_names_the_road_that_is_missing_and_counts_the_others():
    p = Problem(
        capacity=2,
        delivery=[1, 1],
        distance_matrix=[[0, 1, 2], [1, 0, INF], [2, 3, 0]],
        names=["d", "A", "B"],
    )
    verdict = check(p, Solution.of(p, [(0, [1, 2])]))
    (violation,) = verdict.violations
    assert (violation.code, violation.route, violation.location) == ("no-road", 1, "B")
    assert violation.message == "route 1 goes from A to B, where there is no road."
    assert verdict.cost == Solution.of(p, [(0, [1, 2])]).cost == 1 + 2
    assert check(p, Solution.of(p, [(0, [2, 1])])).feasible
    opened = p.replace(open=True, distance_matrix=[[0, 1, 2], [None, 0, None], [2, 3, 0]])
    assert check(opened, Solution.of(opened, [(0, [2, 1])])).feasible  # nobody comes back


def test_the_network_sees_bounded_numbers_and_the_mask_knows(tmp_path):
    """One policy, roads missing everywhere: no decision leads where there is none, and the judge agrees."""
    arcs = [
        (a, b)
        for a, b in itertools.product(range(13), repeat=2)
        if a and b and (a + 2 * b) % 5 == 0 and a != b
    ]
    problems = [without(city(seed=s), arcs) for s in range(3)] + [city(seed=3)]
    batch = from_problems(problems)
    for name in ("coords", "distance", "duration"):
        tensor = getattr(batch, name)
        assert tensor.isfinite().all()
        assert tensor.abs().max() < 10
    legal = mask(batch, begin(batch))
    here = begin(batch).current
    for b, problem in enumerate(problems):
        for s in range(12):
            roads = torch.from_numpy(np.isfinite(problem.distances[int(here[b, s])]))
            assert not (legal[b, s] & ~roads).any()
    policy = random_policy(PolicyConfig(dim=16, heads=2, layers=1, hidden=16))
    options = DecodeOptions(augmentations=2, recombine=True, rounds=2)
    for solution in decode(policy, problems, options):
        assert check(solution.problem, solution).feasible


def test_pictures_are_drawn(tmp_path):
    problem = without(city(), [(1, 2), (2, 1), (0, 3)])
    draw(problem, tmp_path / "a.png", Solution.of(problem, [(0, [v]) for v in problem.customers]))
    assert (tmp_path / "a.png").stat().st_size > 1000


# -- solvers


@pytest.mark.parametrize("sentinel", SENTINELS)
@pytest.mark.parametrize("arc", [(0, 3), (3, 0), (2, 4)])
def test_one_missing_road_costs_no_precision(sentinel, arc):
    """Whatever stands for it, also at the depot, the plan is the best of all plans without that road."""
    problem = city(4)
    best = optimum(without(problem, [arc]))
    for solver, options in ((pyvrp, {"max_iterations": 300}), (vroom, {}), (milp, {})):
        found = solver.solve(without(problem, [arc], sentinel), 60, **options)
        assert check(problem, found.solution).feasible
        assert found.solution.cost == pytest.approx(best.cost, rel=1e-9)


@pytest.mark.parametrize("solver", [pyvrp, ortools, vroom, milp], ids=["pyvrp", "ortools", "vroom", "milp"])
def test_ways_that_are_the_only_ones_are_found(solver):
    """A ring of one-way streets: one order alone can be driven."""
    matrix = np.full((5, 5), INF)
    for i in range(5):
        matrix[i, (i + 1) % 5] = 7
    problem = Problem(capacity=4, delivery=[1] * 4, distance_matrix=matrix)
    options = {"max_iterations": 300} if solver is pyvrp else {}
    found = solver.solve(problem, 6 if solver is ortools else 60, **options)
    assert check(problem, found.solution).feasible
    assert [route.visits for route in found.solution.routes] == [(1, 2, 3, 4)]


@pytest.mark.parametrize("far", [1e5, 1e9, 1e12])
def test_a_far_customer_does_not_spoil_the_plan_of_the_others(far):
    """The others' part of the cost is what it is with the far one at a modest distance, to 0.1 %."""
    rng = np.random.default_rng(1)
    coords = np.r_[rng.uniform(0, 30, (26, 2)), [[far, 0]]]
    problem = Problem(capacity=30, delivery=np.r_[rng.integers(1, 10, 25), 1], coords=coords)
    plan = pyvrp.solve(problem, 60, max_iterations=1500).solution
    near = coords.copy()
    near[-1] = [1e4, 0]
    there = pyvrp.solve(problem.replace(coords=near), 60, max_iterations=1500).solution
    assert plan.cost - 2 * far == pytest.approx(there.cost - 2e4, rel=2e-3)


@pytest.mark.parametrize("open", [False, True])
def test_the_exact_program_sees_near_customers_beside_a_far_one(open):
    problem = Problem(
        capacity=3, delivery=[1] * 4, coords=[(0, 0), (1, 0), (2, 0), (0, 1.5), (1e11, 0)], open=open
    )
    found = milp.solve(problem, 30)
    assert found.solution.cost == pytest.approx(optimum(problem).cost, rel=1e-15)
    assert found.bound == pytest.approx(found.solution.cost, rel=1e-9)


@pytest.mark.parametrize("far", [1e9, 1e12])
def test_a_far_customer_does_not_spoil_the_hours_of_the_others(far):
    """Near ones close at 150, which eight digits of the far one's time do not see: not a route each."""
    rng = np.random.default_rng(1)
    coords = np.r_[rng.uniform(0, 30, (21, 2)), [[far, 0]]]
    windows = [[0, 3 * far], *[[0, 150]] * 20, [0, 2 * far]]
    problem = Problem(capacity=60, delivery=[4] * 21, coords=coords, time_windows=windows, service=[1.0] * 21)
    for solver, options in ((pyvrp, {"max_iterations": 500}), (ortools, {})):
        plan = solver.solve(problem, 60 if solver is pyvrp else 2, **options).solution
        assert check(problem, plan).feasible
        assert len(plan.routes) <= 3
        assert plan.cost - 2 * far < 150
