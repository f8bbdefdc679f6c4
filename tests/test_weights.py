"""The shipped weights: what their cards say, which is chosen, and that they solve as they did."""

import importlib.util
import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import torch

from chainroute.errors import ChainRouteError
from chainroute.evaluate.gaps import gap
from chainroute.evaluate.results import read_results
from chainroute.policy.store import load_policy, shipped_path
from chainroute.variants import SEEN, VARIANTS

RECIPE = importlib.util.spec_from_file_location(
    "release", Path(__file__).parents[1] / "recipes" / "release.py"
)
release = importlib.util.module_from_spec(RECIPE)
RECIPE.loader.exec_module(release)

WEIGHTS = files("chainroute") / "weights"
CARDS = sorted(path.name for path in WEIGHTS.iterdir())


@pytest.mark.parametrize("name", CARDS)
def test_cards_say_where_weights_come_from(name):
    """Sizes, licence, command, what was seen, and a gap for each seen task; files are small."""
    card = json.loads((WEIGHTS / name / "config.json").read_text())
    assert card["sizes"]
    assert card["licence"] == "MIT"
    assert card["command"].startswith("python recipes/device.py")
    assert card["instances"] > 0
    assert card["gpu_seconds"] > 0
    gaps = card["gap_percent_of_test_tasks"]
    assert set(gaps) == {v.name for v in SEEN}
    assert card["mean_gap_percent"] == pytest.approx(np.mean(list(gaps.values())), abs=1e-3)
    assert len((WEIGHTS / name / "model.safetensors").read_bytes()) < 10_000_000


@pytest.mark.parametrize("name", CARDS)
def test_cards_have_the_gaps_of_the_stored_results(name):
    """Those that the pages show as well."""
    card = json.loads((WEIGHTS / name / "config.json").read_text())
    results = read_results(release.ROOT / "docs" / "results" / f"{name}-seen-{name}.json")
    gaps = {task.task: round(gap(results, task).percent, 3) for task in results.tasks.values()}
    assert card["gap_percent_of_test_tasks"] == gaps


def test_cards_say_what_training_began_with():
    """Those for 100 customers began with those for 50, whose seconds count as well."""
    card, origin = (json.loads((WEIGHTS / name / "config.json").read_text()) for name in ("n100", "n50"))
    assert card["begun_with"]["name"] == "n50"
    assert card["begun_with"]["instances"] <= origin["instances"]  # later ones may have seen more


def test_the_nearest_size_is_chosen():
    """In the logarithm of the number of customers: those for 50 and for 100 meet at 70.7."""
    chosen = {n: shipped_path(n).name for n in (1, 50, 70, 71, 100, 1000)}
    assert chosen == {1: "n50", 50: "n50", 70: "n50", 71: "n100", 100: "n100", 1000: "n100"}
    one, other = load_policy(71).state_dict(), load_policy(WEIGHTS / "n100").state_dict()
    assert all(torch.equal(value, other[name]) for name, value in one.items())
    assert any(not torch.equal(value, one[name]) for name, value in load_policy().state_dict().items())


def test_no_policy_is_for_no_customers():
    with pytest.raises(ChainRouteError) as caught:
        load_policy(0)
    assert [(f.code, f.where) for f in caught.value.faults] == [("bad-option", "customers")]


SPANNING = ("CVRP", "VRPTW", "OVRPBL")  # every attribute is there, and is missing
GOLDEN = [
    pytest.param(name, v, marks=() if v.name in SPANNING else pytest.mark.slow, id=f"{name}-{v.name}")
    for name in CARDS
    for v in VARIANTS
]


@pytest.mark.parametrize(("name", "variant"), GOLDEN)
def test_golden_costs(name, variant):
    """The mean cost on 32 fixed problems stays within 0.2 % of the card's; the judge saw them."""
    card = json.loads((WEIGHTS / name / "config.json").read_text())
    costs = release.golden_costs(load_policy(WEIGHTS / name), [variant])
    assert costs[variant.name] == pytest.approx(card["golden_costs"][variant.name], rel=2e-3)
