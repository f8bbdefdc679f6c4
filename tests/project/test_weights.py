"""The shipped network and those trained as in the paper: their cards, and that they solve as before."""

import importlib.util
import json
import re
from functools import cache

import numpy as np
import pytest
import torch
from where import RECIPES

from chainroute.neural.policy.store import DEFAULT, load_policy, read_card
from chainroute.problem.variants import SEEN, VARIANTS

RECIPE = importlib.util.spec_from_file_location("release", RECIPES / "release.py")
release = importlib.util.module_from_spec(RECIPE)
RECIPE.loader.exec_module(release)

NETWORKS = {path.name: path for path in (DEFAULT, *sorted((release.ROOT / "weights").glob("paper-n*")))}


@pytest.mark.parametrize("name", NETWORKS)
def test_cards_say_where_weights_come_from(name):
    """Sizes, licence, command, what was seen, and a gap for each seen task; files are small."""
    card = read_card(NETWORKS[name])
    assert card["sizes"]
    assert card["licence"] == "MIT"
    assert card["command"].startswith("python recipes/device.py")
    assert card["instances"] > 0
    assert card["gpu_seconds"] > 0
    seen = [one for one in card["results"] if one["suite"] == "seen"]
    assert seen
    for results in seen:
        assert set(results["gap_percent"]) == {v.name for v in SEEN}
        mean = np.mean(list(results["gap_percent"].values()))
        assert results["mean_gap_percent"] == pytest.approx(mean, abs=1e-3)
    assert len((NETWORKS[name] / "model.safetensors").read_bytes()) < 10_000_000


@pytest.mark.parametrize("name", NETWORKS)
def test_cards_have_the_gaps_of_the_stored_results(name):
    """Those that the pages show as well."""
    assert read_card(NETWORKS[name])["results"] == release.results_of(name)


@pytest.mark.parametrize("name", NETWORKS)
def test_cards_have_the_means_of_the_pages(name):
    """They agree to the last digit: both are means of gaps as they are, not of rounded ones."""
    page = (release.ROOT / "docs" / "results.md").read_text()
    shown = dict(re.findall(r"<!--=([^>]+?)-->(.*?)<!--/-->", page))
    for one in read_card(NETWORKS[name])["results"]:
        if one["suite"] != "real":
            rules = " (exact)" if one["suite"] == "zero-shot" else ""
            suite = "trained-others" if rules and name == "all" else one["suite"]  # it has seen them all
            mean = shown[f"{suite}-n{one['customers']} {name}{rules}"]
            assert f"{one['mean_gap_percent']:.3f}" == mean


def test_pages_say_what_networks_have_seen():
    """How many problems, and by which update rates maps are decoded in turn."""
    results, paper = ((release.ROOT / "docs" / page).read_text() for page in ("results.md", "paper.md"))
    for name, path in NETWORKS.items():
        millions = f"{read_card(path)['instances'] / 1e6:.1f}"
        assert re.search(rf"`{name}`( saw)? {millions} million", results)
        assert name == "all" or f"{millions} M problems" in paper
    *rates, last = (f"{count / 50:g}" for count in read_card(NETWORKS["paper-n50"])["reembeddings"])
    assert f"P_ts {', '.join(rates)} and {last} in turn" in paper


def test_cards_say_what_training_began_with():
    """The paper's network for 100 customers began with that for 50, whose seconds count as well."""
    card, origin = (read_card(NETWORKS[name]) for name in ("paper-n100", "paper-n50"))
    assert card["begun_with"]["name"] == "paper-n50"
    assert card["begun_with"]["instances"] <= origin["instances"]  # later ones may have seen more


def test_one_network_is_shipped_and_knows_all_variants():
    """It is loaded where none is named, and by its name."""
    assert [path.parent.name for path in DEFAULT.parent.glob("*/config.json")] == ["all"]
    assert set(read_card(DEFAULT)["training"]["variants"]) == {v.name for v in VARIANTS}
    one, other = load_policy().state_dict(), load_policy("all").state_dict()
    assert all(torch.equal(value, other[name]) for name, value in one.items())


SPANNING = ("CVRP", "VRPTW", "OVRPBL", "MDVRPMBLTW")  # every attribute is there, and is missing
GOLDEN = [
    pytest.param(name, v, marks=() if v.name in SPANNING else pytest.mark.slow, id=f"{name}-{v.name}")
    for name in NETWORKS
    for v in VARIANTS
]


@cache
def loaded(name):
    return load_policy(NETWORKS[name])


@pytest.mark.parametrize(("name", "variant"), GOLDEN)
def test_golden_costs(name, variant):
    """The mean cost on 8 fixed problems stays within 0.2 % of the card's; the judge saw them."""
    card = json.loads((NETWORKS[name] / "config.json").read_text())
    costs = release.golden_costs(loaded(name), [variant])
    assert costs[variant.name] == pytest.approx(card["golden_costs"][variant.name], rel=2e-3)
