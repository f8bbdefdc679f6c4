"""The policy as a solver of tasks: its best plans, judged, by both rules."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from chainroute import variant
from chainroute.errors import ChainRouteError
from chainroute.generate import generate, generate_arrays
from chainroute.neural.assembly.routes import tours, with_depots
from chainroute.neural.decode import DecodeOptions, best_costs, memory
from chainroute.neural.env import Rules
from chainroute.neural.env.stacked import from_arrays
from chainroute.neural.policy import PolicyConfig
from chainroute.neural.policy.store import random_policy
from chainroute.problem.arrays import problems_from_arrays
from chainroute.research.evaluate import policy_solver
from chainroute.research.evaluate.policy_solver import (
    Neural,
    best_plans,
    fingerprint,
    weights_file,
    weights_name,
)
from chainroute.research.evaluate.tasks import Task

POLICY = random_policy(PolicyConfig(dim=8, heads=2, layers=1, hidden=8), seed=3)
TWO_MAPS = DecodeOptions(augmentations=2)


def stacked(name, n=8, count=5):
    arrays = generate_arrays(variant(name), n, count, seed=4)
    return Task(name, count, lambda i: problems_from_arrays(arrays, name)[i], arrays=lambda: arrays)


@pytest.mark.parametrize("name", ["CVRP", "VRPBLTW", "OVRPMBTW"])
def test_with_one_depot_plans_cost_what_best_costs_says(name):
    """And the judge finds that cost in the routes, whichever way the batch is cut into parts."""
    arrays = generate_arrays(variant(name), 8, 5, seed=4)
    batch = from_arrays(arrays)
    three = 3 * memory.per_copy(POLICY.config, 9, 8, 16)  # so that the maps of a problem are in two parts
    for limit in (None, three):
        options = replace(TWO_MAPS, memory=limit)
        costs, plans = best_plans(POLICY, batch, options)
        assert torch.allclose(costs, best_costs(POLICY, batch, options), rtol=1e-12)
        for problem, cost, plan in zip(problems_from_arrays(arrays, name), costs, plans.numpy(), strict=True):
            _, verdict = with_depots(problem, tours(problem, plan))
            assert verdict.feasible
            assert verdict.cost == pytest.approx(cost.item(), rel=1e-9)


def test_exchanged_depots_make_plans_cheaper():
    """There are several depots: plans are judged at the stated cost, never above that of the trajectory,
    often below."""
    arrays = generate_arrays(variant("MDVRPLTW"), 8, 6, seed=4)
    batch = from_arrays(arrays)
    costs, plans = best_plans(POLICY, batch, TWO_MAPS)
    plain = best_costs(POLICY, batch, TWO_MAPS)
    assert (costs <= plain + 1e-9).all()
    assert (costs < plain - 1e-6).any()
    for problem, cost, plan in zip(problems_from_arrays(arrays, "p"), costs, plans.numpy(), strict=True):
        _, verdict = with_depots(problem, tours(problem, plan))
        assert verdict.feasible
        assert verdict.cost == pytest.approx(cost.item(), rel=1e-9)


def test_published_rules_are_weaker_and_kept_apart():
    """Mixed backhauls: some plans by the published rules overload the vehicle, none by the exact ones."""
    task = stacked("VRPMB", n=20, count=12)
    exact, published = (
        next(Neural(POLICY, DecodeOptions(augmentations=1), rules)(task, 0)) for rules in Rules
    )
    assert (exact.judged, exact.refused) == (12, 0)
    assert published.refused > 0


def test_published_rates_are_the_papers():
    solver = Neural(POLICY, DecodeOptions(), Rules.PUBLISHED)
    assert [solver._options(n).update_rates for n in (50, 100)] == [(0.15,), (0.02,)]
    assert Neural(POLICY, DecodeOptions(), Rules.EXACT)._options(50).update_rates is None


def test_a_plan_that_the_judge_refuses_is_our_fault(monkeypatch):
    """A cost that is not that of the routes ends in an error, not in a table."""

    def wrong(policy, batch, options):
        costs, plans = best_plans(policy, batch, options)
        return costs * 0.99, plans

    monkeypatch.setattr(policy_solver, "best_plans", wrong)
    with pytest.raises(ChainRouteError, match="internal-error"):
        next(Neural(POLICY, TWO_MAPS)(stacked("CVRP"), 0))


def test_named_instances_are_solved_one_by_one_from_the_first_on():
    problems = generate(variant("VRPTW"), 6, 3, seed=1)
    task = Task("set", 3, problems.__getitem__, names=("a", "b", "c"), best_known=(1.0, 2.0, 3.0))
    pieces = list(Neural(POLICY, TWO_MAPS)(task, 1))
    assert [(p.names, p.best, p.judged) for p in pieces] == [(("b",), (2.0,), 1), (("c",), (3.0,), 1)]
    assert all(math.isfinite(p.costs[0]) and p.seconds > 0 for p in pieces)


def test_what_goes_beyond_decoding_is_never_worse():
    """Recombined routes of the same trajectories, judged one by one."""
    task = stacked("VRPL", count=3)
    (plain,) = Neural(POLICY, TWO_MAPS)(task, 0)
    more = list(Neural(POLICY, replace(TWO_MAPS, recombine=True))(task, 0))
    assert [piece.judged for piece in more] == [1, 1, 1]
    assert all(piece.costs[0] <= cost + 1e-9 for piece, cost in zip(more, plain.costs, strict=True))


def test_instances_go_on_where_the_last_piece_ended():
    """The second half of a task alone has the costs that it has in the whole."""
    task, solver = stacked("OVRPB"), Neural(POLICY, TWO_MAPS)
    (whole,), (rest,) = solver(task, 0), solver(task, 3)
    np.testing.assert_allclose(whole.costs[3:], rest.costs, rtol=1e-9)
    assert (whole.judged, rest.judged) == (5, 2)


def test_weights_are_found_named_and_told_apart(tmp_path):
    assert weights_name(weights_file(None)) == "all"
    assert weights_name(weights_file("runs/mine/weights")) == "mine"
    other = random_policy(POLICY.config, seed=4)
    assert fingerprint(POLICY) != fingerprint(other)
    assert fingerprint(POLICY) == fingerprint(random_policy(POLICY.config, seed=3))


def test_settings_say_which_share_of_the_steps_re_embeds_and_how_products_are_computed():
    """The policy's own number of re-embeddings counts, and by the published rules the paper's rates."""
    exact, published = Neural(POLICY, TWO_MAPS), Neural(POLICY, TWO_MAPS, Rules.PUBLISHED)
    assert exact.settings(50)["used_update_rates"] == (min(1.0, POLICY.reembeddings[0] / 50),)
    assert published.settings(100)["used_update_rates"] == (0.02,)
    assert exact.settings()["used_update_rates"] is None  # instances of several sizes
    assert exact.settings()["engine"] == "folded, float32"
