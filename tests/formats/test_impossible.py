"""Problems with customers that no vehicle can serve: refused, or on request planned without them."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import codes

from chainroute import ChainRouteError, check, solve
from chainroute.formats import json as our_json
from chainroute.formats import read, read_many
from chainroute.formats.common import dropping_impossible, noted
from chainroute.runtime.numerals import listed

DOCUMENT = {
    "capacity": 5,
    "depots": [{"x": 0, "y": 0, "window": [0, 100]}],
    "customers": [
        {"name": "A", "x": 3, "y": 4, "delivery": 2},
        {"name": "heavy", "x": 1, "y": 1, "delivery": 9},
        {"name": "late", "x": 60, "y": 0, "window": [0, 10]},
        {"name": "B", "x": 6, "y": 8, "delivery": 2},
    ],
}


@pytest.fixture
def file(tmp_path):
    (tmp_path / "p.json").write_text(json.dumps(DOCUMENT))
    return tmp_path / "p.json"


def test_they_are_refused_unless_asked_for(file):
    with pytest.raises(ChainRouteError) as error:
        read(file)
    assert [code for code, _ in codes(error)] == ["demand-above-capacity", "window-unreachable"]


@pytest.mark.parametrize("reader", [read, lambda *args, **named: read_many(*args, **named)[0]])
def test_the_others_are_planned_and_these_listed_with_reasons(file, reader):
    """Depot - A - B - depot is 20 long; that heavy and late are left out costs nothing."""
    with noted() as notes:
        problem = reader(file, drop_impossible=True)
    plan = solve(problem, 1.0).solution
    assert check(problem, plan).feasible
    assert plan.cost == 20
    assert [problem.names[c] for c in plan.left_out] == ["heavy", "late"]
    assert notes == [f"{file}, 2 customers are left out, as no vehicle can serve them: heavy and late."]


def test_optional_customers_keep_their_prizes(file):
    document = json.loads(file.read_text())
    document["customers"][0]["prize"] = 7
    with dropping_impossible(True), noted():
        problem = our_json.to_problem(document, "")
    assert problem.prize.tolist() == [7, 0, 0, np.inf]


def test_other_faults_are_told_as_ever(file):
    file.write_text(json.dumps({**DOCUMENT, "capacity": -5}))
    with pytest.raises(ChainRouteError) as error:
        read(file, drop_impossible=True)
    assert codes(error)[0][0] == "not-positive"


@given(st.lists(st.sampled_from([1, 9]), min_size=1, max_size=6))
def test_whatever_cannot_be_served_the_rest_is(loads):
    customers = [{"x": i + 1, "y": 0, "delivery": load} for i, load in enumerate(loads)]
    document = {"capacity": 5, "depots": [{"x": 0, "y": 0}], "customers": customers}
    with dropping_impossible(True), noted():
        problem = our_json.to_problem(document, "")
    plan = solve(problem, 0.1).solution
    assert check(problem, plan).feasible
    assert {c for c in problem.customers if problem.deliveries[c] > 5} == set(plan.left_out)


def test_of_many_names_the_first_are_listed():
    assert listed(["a"], 5) == "a"
    assert listed(["a", "b"], 5) == "a and b"
    assert listed(list("abcdefgh"), 5) == "a, b, c, d and 4 more"
