"""What PyVRP's search pays for breaking a bound at the beginning: by hand, and on the way to better plans."""

import math

import fleets
import numpy as np
import pytest
from problems import invent

from chainroute import VARIANTS, Problem, Solution, check
from chainroute.generate import generate
from chainroute.problem.variants import variant
from chainroute.runtime.deadline import Deadline
from chainroute.search.library import SearchTask
from chainroute.search.solvers import pyvrp_fleet, pyvrp_search
from chainroute.search.solvers.pyvrp_penalties import (
    LEAST_UPDATE_ITERATIONS,
    NEIGHBOUR_LEGS,
    UPDATE_ITERATIONS,
    NeighbourPenalties,
)

LARGEST = 1e6
EVERY_LEG = 6  # units: between any two of the places below


def equilateral(**fields):
    """Three customers and the depot, all legs of the same length and time, demands of 2, 4 and 0."""
    legs = np.full((4, 4), float(EVERY_LEG))
    np.fill_diagonal(legs, 0.0)
    return Problem(capacity=5.0, delivery=[2.0, 4.0, 0.0], distance_matrix=legs, **fields)


def first_penalties(data):
    return NeighbourPenalties(LARGEST, iterations=1_000).midpoint_penalties(data)


def test_an_excess_of_a_typical_demand_costs_some_legs_to_a_neighbour():
    """PyVRP's data count in units of their own, which the prices follow."""
    data = pyvrp_search.build(equilateral()).data
    leg = data.distance_matrix(0)[0, 1] / math.sqrt(3)
    demand = (data.client(0).delivery[0] + data.client(1).delivery[0]) / 2
    (load,), _, length = first_penalties(data)
    assert load * demand == pytest.approx(NEIGHBOUR_LEGS * leg)
    assert length * leg == pytest.approx(NEIGHBOUR_LEGS * leg)


def test_time_costs_as_many_legs_as_take_it():
    windows = [(0, 100), (0, 50), (0, 50), (0, 50)]
    data = pyvrp_search.build(equilateral(time_windows=windows)).data
    length, duration = (m[0, 1] / math.sqrt(3) for m in (data.distance_matrix(0), data.duration_matrix(0)))
    assert first_penalties(data)[1] * duration == pytest.approx(NEIGHBOUR_LEGS * length)


def test_forbidden_legs_are_not_what_a_leg_costs():
    """Linehauls first: ways from backhauls to linehauls are forbidden by their length."""
    free = Problem(capacity=9, delivery=[1] * 40, coords=np.random.default_rng(0).random((41, 2)))
    back = np.arange(40) % 2
    split = free.replace(delivery=1 - back, pickup=back, backhaul="linehauls-first")
    (load,), *_ = first_penalties(pyvrp_search.build(free).data)
    (split_load,), *_ = first_penalties(pyvrp_search.build(split).data)
    assert split_load == pytest.approx(load, rel=0.5)


def test_where_legs_cost_nothing_the_beginning_is_pyvrps_own():
    data = pyvrp_search.build(Problem(capacity=5.0, delivery=[2.0], distance_matrix=np.zeros((2, 2)))).data
    assert first_penalties(data) == ([pytest.approx(LARGEST / 2)], *[pytest.approx(LARGEST / 2)] * 2)


def test_a_search_with_more_iterations_looks_less_often():
    """A hundredth of them; never more often than what says something, nor less often than PyVRP does."""
    some = [NeighbourPenalties(LARGEST, iterations) for iterations in (100, 5_000, 20_000, math.inf)]
    between = [penalties.solutions_between_updates for penalties in some]
    assert between == [LEAST_UPDATE_ITERATIONS, 50, 200, UPDATE_ITERATIONS]


@pytest.mark.parametrize("name", ["CVRP", "OVRPBLTW", "MDVRPMBLTW"])
def test_a_hurried_search_passes_through_plans_that_break_a_bound(name, monkeypatch):
    """From the first iterations on, and what it reports is valid. PyVRP's own beginning lets none through."""
    (problem,) = generate(variant(name), 60, 1, seed=3)
    broken = {share: _watched(problem, share, monkeypatch).count(False) for share in (None, 1 / 400)}
    assert broken[None] == 0 < broken[1 / 400]


def _watched(problem, share, monkeypatch):
    """Whether each candidate of 200 iterations was valid; what was reported is."""
    seen = []
    reporter = pyvrp_search._Reporter

    class Watching(reporter):
        def on_iteration(self, current, candidate, best, cost_evaluator):
            seen.append(candidate.is_feasible())
            super().on_iteration(current, candidate, best, cost_evaluator)

    def judged(found):
        verdict = check(problem, Solution.of(problem, found.routes))
        assert verdict.feasible, verdict

    with monkeypatch.context() as patched:
        patched.setattr(pyvrp_search, "_Reporter", Watching)
        task = SearchTask(problem, Deadline.after(60), max_iterations=200, history_share=share)
        pyvrp_search.search(task, judged)
    return seen


def test_every_problem_has_first_penalties():
    """Whatever its variant, its fleet, its prizes: finite and positive ones."""
    data = [pyvrp_search.build(invent(v, seed, 6)).data for v in VARIANTS for seed in range(2)]
    data += [pyvrp_fleet.build(fleets.invent(seed)).data for seed in range(60)]
    for some in data:
        loads, time, length = first_penalties(some)
        assert len(loads) == some.num_load_dimensions
        assert np.isfinite([*loads, time, length]).all()
        assert min(*loads, time, length) > 0
