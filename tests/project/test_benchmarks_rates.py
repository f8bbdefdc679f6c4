"""The tables of update rates and of weights, by hand."""

import numpy as np

from benchmarks.rates import rows, table
from benchmarks.weights import compared, row
from chainroute.neural.policy import PolicyConfig
from chainroute.neural.policy.store import random_policy


def test_maps_take_the_rates_of_a_mix_in_turn():
    made = rows([0.5, 1.0])
    assert list(made) == ["1", "0.5", "0.5 1", "all (CCL-Ens)"]
    assert made["0.5 1"] == [0, 1] * 4
    assert made["1"] == [1] * 8
    assert list(rows([0.5, 0.5])) == ["0.5", "0.5'", "0.5 0.5'", "all (CCL-Ens)"]


def test_costs_are_against_the_highest_rate_on_all_maps():
    """Of one problem with windows and one without: by rate 0.5 the first map finds 9 of either, by rate 1 the
    second finds 9.5 of the first; 10 all the others."""
    costs = np.full((2, 8, 1), 10.0)
    costs[0, 0] = 9.0
    windows = costs.copy()
    windows[1, 1] = 9.5
    lines = table({"CVRP": costs, "VRPTW": windows}, [0.5, 1.0]).splitlines()
    assert lines[2] == "| 1 | +0.000 | 0.000 | +0.000 | +0.000 |"
    assert lines[3] == "| 0.5 | -7.632 | 0.000 | -10.000 | -5.263 |"
    assert lines[4] == "| 0.5 1 | -7.632 | 0.000 | -10.000 | -5.263 |"
    assert lines[5] == "| all (CCL-Ens) | -7.632 | 0.000 | -10.000 | -5.263 |"


def test_the_mean_of_variants_has_the_standard_error_of_their_problems():
    """Two problems of either, 1 and 3 % worse without windows, 1 % better with: variances 1 and 0."""
    more = {"CVRP": np.array([1.0, 3.0]), "VRPTW": np.array([-1.0, -1.0])}
    assert row(50, more) == "| 50 | +0.500 | 0.354 | +2.000 | -1.000 |"


def test_weights_are_as_good_as_themselves():
    policy = random_policy(PolicyConfig(dim=32, heads=2, layers=1, hidden=48))
    more = compared(policy, policy, 5, 1)
    assert len(more) == 48
    assert all((m == 0).all() for m in more.values())
