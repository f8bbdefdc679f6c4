"""Paired tests: as SciPy computes them, on the instances that both results have."""

import math

import numpy as np
import pytest
from scipy import stats

from chainroute.errors import ChainRouteError
from chainroute.generate.references import references
from chainroute.research.evaluate.results import Results, Summary, TaskResult
from chainroute.research.evaluate.statistics import compare, comparison_table, paired


def results(label="a", suite="seen", n=50, rules="exact", **tasks):
    return Results(label, suite, n, rules, {}, tasks)


@pytest.mark.parametrize("shift", [0.0, 0.01, 0.5])
def test_t_p_and_interval_are_scipys(shift):
    rng = np.random.default_rng(1)
    b = rng.normal(10, 1, 200)
    a = b + rng.normal(shift, 0.2, 200)
    found, expected = paired("t", a, b), stats.ttest_rel(a, b)
    assert (found.t, found.p) == (pytest.approx(expected.statistic), pytest.approx(expected.pvalue, rel=1e-9))
    interval = expected.confidence_interval(0.95)
    scale = 100 / b.mean()
    assert (found.low, found.high) == (
        pytest.approx(scale * interval.low),
        pytest.approx(scale * interval.high),
    )


def test_by_hand():
    """Differences 1 and 3 to costs of 10: the mean is 2, its error 1, so t = 2 and, with one degree of
    freedom, p = 1 - 2 atan(2) / pi."""
    found = paired("t", np.array([11.0, 13.0]), np.array([10.0, 10.0]))
    assert (found.difference, found.t) == (pytest.approx(20), pytest.approx(2))
    assert found.p == pytest.approx(1 - 2 * math.atan(2) / math.pi)


def test_without_spread_there_is_nothing_to_test():
    same = np.array([1.0, 2.0])
    assert math.isnan(paired("t", same, same).p)
    assert paired("t", same + 1, same).p == 0
    assert math.isnan(paired("t", same[:1], same[:1]).t)


def test_only_shared_and_solved_instances_count():
    a = results(
        CVRP=TaskResult("CVRP", np.array([1.0, 2.0, np.nan, 4.0])), OVRP=TaskResult("OVRP", np.ones(2))
    )
    b = results(CVRP=TaskResult("CVRP", np.array([1.0, 3.0, 3.0])))
    (found,) = compare(a, b)
    assert (found.task, found.count, found.mean_b) == ("CVRP", 2, 2)


def test_named_instances_are_paired_by_name():
    a = results(suite="real", n=None, X=TaskResult("X", np.array([5.0, 7.0]), names=("p", "q"), best=(1, 1)))
    b = results(suite="real", n=None, X=TaskResult("X", np.array([6.0, 9.0]), names=("q", "r"), best=(1, 1)))
    (found,) = compare(a, b)
    assert (found.count, found.mean_a, found.mean_b) == (1, 7, 6)


def test_what_cannot_be_compared_is_refused():
    one = results(CVRP=TaskResult("CVRP", np.ones(2)))
    for other in (results(n=100), results(OVRP=TaskResult("OVRP", np.ones(2)))):
        with pytest.raises(ChainRouteError, match="bad-option"):
            compare(one, other)


def test_means_alone_are_not_compared():
    """Without the cost of every instance there is nothing to pair."""
    whole = results(CVRP=TaskResult("CVRP", np.ones(2)))
    means = results("b", CVRP=TaskResult("CVRP", summary=Summary(2, 2, 1.0, 0.0)))
    for pair in ((whole, means), (means, whole)):
        with pytest.raises(ChainRouteError, match="were not kept"):
            compare(*pair)


def test_the_table_has_the_gaps_too():
    """Over a whole test set: 1 and 3 % above the reference."""
    known = references()["CVRP", 50]
    spread = np.tile([0.9, 1.1], 500) * known
    a, b = (results(name, CVRP=TaskResult("CVRP", spread * f)) for name, f in (("a", 1.01), ("b", 1.03)))
    (row,) = comparison_table(a, b).rows
    assert row[-2:] == [pytest.approx(1), pytest.approx(3)]


def test_gaps_are_of_the_instances_whose_costs_stand_beside_them():
    """They are the first ones where a result has more, and by name those that both have solved."""
    known = [results("pyvrp", CVRP=TaskResult("CVRP", np.array([10.0, 10.0, 1.0])))]
    a = results(CVRP=TaskResult("CVRP", np.array([11.0, 11.0])))
    b = results("b", CVRP=TaskResult("CVRP", np.array([12.0, 12.0, 1.0])))
    (row,) = comparison_table(a, b, known).rows
    assert row[1:5] == [2, 11, 12, pytest.approx(-100 / 12)]
    assert row[-2:] == [pytest.approx(10), pytest.approx(20)]

    names, best = ("p", "q", "r"), (10.0, 10.0, 10.0)
    a = results(suite="real", n=None, X=TaskResult("X", np.array([11.0, 30.0, 12.0]), names=names, best=best))
    b = results(
        suite="real", n=None, X=TaskResult("X", np.array([13.0, np.nan]), names=names[:2], best=best[:2])
    )
    (row,) = comparison_table(a, b).rows
    assert (row[1], *row[-2:]) == (1, pytest.approx(10), pytest.approx(30))


def test_different_rules_are_named_in_the_table():
    a = results(CVRP=TaskResult("CVRP", np.array([1.0, 2.0])))
    b = results("b", rules="published", CVRP=TaskResult("CVRP", np.array([1.0, 3.0])))
    assert any("published rules" in note for note in comparison_table(a, b).notes)
