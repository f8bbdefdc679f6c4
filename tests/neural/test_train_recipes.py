"""The device recipe, on a CPU: one command that continues a run and leaves little files."""

import json
import runpy
from dataclasses import replace

import pytest
from training import tiny
from where import RECIPES

from chainroute.neural.policy.store import load_policy, random_policy, save_policy
from chainroute.neural.train import ledger, read_recipe, snapshot, train
from chainroute.neural.train.learner import Learner
from chainroute.neural.train.streams import choices

SCRIPT = RECIPES / "device.py"


@pytest.fixture
def device(tmp_path, monkeypatch):
    """Runs the recipe with options, and returns its exit code."""

    def run(*options):
        monkeypatch.setattr(
            "sys.argv", [str(SCRIPT), "--run", "a", "--runs", str(tmp_path), *map(str, options)]
        )
        with pytest.raises(SystemExit) as end:
            runpy.run_path(str(SCRIPT), run_name="__main__")
        return end.value.code

    return run


def test_device_recipe(tmp_path, device, capsys):
    """A new run by a recipe, then a stretch that is cooled down and put elsewhere."""
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps(tiny(variants=("CVRP",)).as_dict()))
    assert device("--recipe", recipe, "--seconds", 2.5) == 0
    first = snapshot.read_header(tmp_path / "a" / snapshot.SMALL)
    assert first.step > 0

    out = tmp_path / "out"
    assert device("--seconds", 2.5, "--out", out, "--cooldown") == 0
    log = ledger.read(out / "log.csv")
    assert [row["end"] for row in log] == ["out of time", "out of time (cooled down)"]
    assert int(log[1]["step"]) > int(log[0]["step"]) == first.step
    assert snapshot.read_header(out / snapshot.SMALL).step == int(log[1]["step"])
    load_policy(out / "weights")
    assert "out of time" in capsys.readouterr().out
    assert not (out / snapshot.FULL).exists()
    assert len(list(out.iterdir())) <= 8


def test_device_recipe_answers_errors_with_2(tmp_path, device, capsys):
    assert device("--recipe", tmp_path / "none.toml") == 2
    assert "[file-not-found]" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "starts"), [("all", 0), ("all-fall", 3)])
def test_the_recipe_for_everything_trains_in_small_form(tmp_path, name, starts):
    """All 48 variants by the wide law, two sizes with batches of their own, a wide network: it learns, from
    every customer or from the depot, and begins with a paper network's weights."""
    recipe = read_recipe(SCRIPT.parent / f"{name}.toml")
    small = replace(recipe.policy, dim=8, heads=2, layers=1, hidden=8)
    config = replace(
        recipe, policy=small, sizes=(4, 6), batch=(6, 3), warmup=2, validate_every=0, updates=4, starts=starts
    )
    save_policy(random_policy(replace(small, features="paper", spacing=False)), tmp_path / "paper", {})
    report = train(config, tmp_path / "run", weights=tmp_path / "paper", device="cpu", silent=True)
    assert (report.end, report.step) == ("done", 4)
    sizes = [choices(config, step)[0] for step in range(4)]
    assert report.instances == sum(config.instances(n) for n in sizes)
    learner = Learner.fresh(config)
    snapshot.load(snapshot.newest(tmp_path / "run"), learner)
    assert learner.policy.rgcr.more.weight.abs().sum() > 0  # began as zeros
