"""PyVRP beyond the 48 variants: its plans pass the judge, at the cost that it sees itself."""

import pytest
from fleets import FEATURES, invent
from pyvrp import CostEvaluator

from chainroute import Solution, check
from chainroute.classical import pyvrp_fleet, pyvrp_search
from chainroute.formats.json import read, write
from chainroute.runtime.deadline import Deadline


def best(problem, iterations=60, seed=0, initial=None):
    """What a short search finds, here and now."""
    reports = []
    pyvrp_search.search(problem, initial, seed, Deadline.after(20), iterations, None, reports.append)
    assert reports, f"no plan for {problem.kind}"
    return Solution.of(problem, reports[-1][1])


@pytest.mark.parametrize("feature", FEATURES)
def test_each_feature_for_itself(feature):
    """Three problems of each; the plan keeps all rules."""
    for seed in range(3):
        problem = invent(seed, [feature])
        verdict = check(problem, best(problem))
        assert verdict.feasible, f"{problem.kind}: {verdict}"


@pytest.mark.parametrize("seed", range(40))
def test_any_mix_of_features(seed):
    """The plan keeps all rules; it comes back from PyVRP's terms as it went; both see the same cost."""
    problem = invent(100 + seed)
    solution = best(problem)
    verdict = check(problem, solution)
    assert verdict.feasible, f"{problem.kind}: {verdict}"
    assert verdict.cost == pytest.approx(solution.cost)
    if problem.extras:
        model = pyvrp_fleet.build(problem)
        encoded = model.encode(solution.pairs())
        assert encoded.is_feasible()
        assert Solution.of(problem, model.decode(encoded)).cost == pytest.approx(solution.cost)
        _same_cost(problem, model, encoded, solution)


def _same_cost(problem, model, encoded, solution):
    """PyVRP's whole numbers, scaled back, without those prizes of a second window."""
    seen = CostEvaluator([0.0], 0.0, 0.0).penalised_cost(encoded)
    twice = sum(
        (len(group.clients) - 1) * model.data.client(group.clients[0]).prize for group in model.data.groups()
    )
    scale = pyvrp_fleet._Money(problem).scale
    if not (problem.variant.limit and problem.limit_counts_service):
        assert (seen - twice) / scale == pytest.approx(solution.cost, rel=2e-3, abs=1e-3)


@pytest.mark.parametrize("seed", range(40))
def test_every_problem_survives_its_file(seed):
    """Written and read again, a problem is the same."""
    problem = invent(100 + seed)
    assert read(write(problem).decode(), "problem", None) == problem


def test_a_start_is_kept_and_improved():
    """A second search from the first one's plan is no worse."""
    problem = invent(7, ["types", "costs", "windows", "optional"])
    first = best(problem, iterations=2)
    second = best(problem, iterations=60, initial=first.pairs())
    assert check(problem, second).feasible
    assert second.cost <= first.cost
