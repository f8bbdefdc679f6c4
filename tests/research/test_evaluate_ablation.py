"""The recipe for ablations: networks by name, trained, evaluated, and not made twice."""

import runpy
import sys

import pytest
from where import RECIPES

from chainroute.research.evaluate.results import read_all

RECIPE = RECIPES / "ablation.py"
SMALL = "dim=8,heads=2,layers=1,hidden=8"


def run(monkeypatch, *options):
    monkeypatch.setattr(sys, "argv", ["ablation.py", *map(str, options)])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(RECIPE), run_name="__main__")
    return end.value.code


def test_networks_are_trained_evaluated_and_put_in_one_table(tmp_path, monkeypatch, capsys):
    recipe = tmp_path / "tiny.toml"
    recipe.write_text('sizes = [5]\nbatch = 4\nvariants = ["CVRP"]\nwarmup = 1\n')
    options = ["--switches", SMALL, f"{SMALL},reembedding=off", "--seconds", 1.5, "--recipe", recipe]
    options += [
        "--task",
        "CVRP",
        "--limit",
        1,
        "--augment",
        1,
        "--test-rate",
        0.5,
        1,
        "--out",
        tmp_path / "out",
    ]
    assert run(monkeypatch, *options) == 0
    results = read_all([tmp_path / "out" / "results"])
    rates = [(r.settings["switches"], r.settings["update_rates"]) for r in results]
    assert sorted(rates) == [(s, [p]) for s in (SMALL, f"{SMALL},reembedding=off") for p in (0.5, 1.0)]
    assert capsys.readouterr().out.count(f"| {SMALL}") == 4
    assert run(monkeypatch, *options) == 0
    assert "updates" not in capsys.readouterr().out


def test_equal_updates_and_a_rate_that_validation_chooses(tmp_path, monkeypatch, capsys):
    """Each network makes as many updates as it was told to, and only one that re-embeds has a rate."""
    recipe = tmp_path / "tiny.toml"
    recipe.write_text('sizes = [5]\nbatch = 4\nvariants = ["CVRP"]\nwarmup = 1\nupdate_rate = 0.5\n')
    options = ["--switches", SMALL, f"{SMALL},reembedding=off", "--updates", 3, "--recipe", recipe]
    options += ["--task", "CVRP", "--limit", 1, "--augment", 1, "--out", tmp_path / "out"]
    assert run(monkeypatch, *options) == 0
    assert capsys.readouterr().out.count("after 3 updates, 12 instances") == 2
    chain, without = sorted(read_all([tmp_path / "out" / "results"]), key=lambda r: len(r.label))
    assert chain.settings["update_rates"] in ([0.5], [1.0])
    assert without.settings["update_rates"] is None
    assert chain.settings["instances"] == without.settings["instances"] == 12


def test_the_network_of_the_recipe_is_what_switches_change(tmp_path, monkeypatch):
    recipe = tmp_path / "tiny.toml"
    policy = "[policy]\n" + SMALL.replace(",", "\n")
    recipe.write_text(f'sizes = [5]\nbatch = 4\nvariants = ["CVRP"]\nwarmup = 1\n{policy}\n')
    options = ["--switches", "", "reld=false", "--updates", 1, "--recipe", recipe, "--test-rate", 1]
    options += ["--task", "CVRP", "--limit", 1, "--augment", 1, "--out", tmp_path / "out"]
    assert run(monkeypatch, *options) == 0
    results = read_all([tmp_path / "out" / "results"])
    assert sorted(r.settings["switches"] for r in results) == [SMALL, f"{SMALL},reld=false"]


def test_an_unknown_switch_is_told_before_any_training(tmp_path, monkeypatch, capsys):
    assert run(monkeypatch, "--switches", "width=3", "--seconds", 1, "--out", tmp_path / "out") == 2
    assert "[unknown-field] config.width" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
