"""The table of update rates, by hand."""

import numpy as np

from benchmarks.rates import rows, table


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
