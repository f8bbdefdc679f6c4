"""The shipped weights: what their cards say, which is chosen, and that they solve as they did."""

import json
from importlib.resources import files

import numpy as np
import pytest

from chainroute.arrays import problems_from_arrays
from chainroute.check import check
from chainroute.decode import DecodeOptions, decode
from chainroute.generate import benchmark
from chainroute.policy.store import load_policy, shipped_policy
from chainroute.variants import SEEN

WEIGHTS = files("chainroute") / "weights"
CARDS = sorted(path.name.removesuffix(".json") for path in WEIGHTS.iterdir() if path.name.endswith(".json"))

# Greedy, every start, one map, on the first validation problem of each seen variant with 50 customers.
GOLDEN = {
    "n50": 13.28795,
}


@pytest.mark.parametrize("name", CARDS)
def test_cards_say_where_weights_come_from(name):
    """Sizes, licence, command, what was seen, and a gap for each seen task; files are small."""
    card = json.loads((WEIGHTS / f"{name}.json").read_text())
    assert card["sizes"]
    assert card["licence"] == "MIT"
    assert card["command"].startswith("python recipes/device.py")
    assert card["instances"] > 0
    assert card["gpu_seconds"] > 0
    gaps = card["gap_percent_of_test_tasks"]
    assert set(gaps) == {v.name for v in SEEN}
    assert card["mean_gap_percent"] == pytest.approx(np.mean(list(gaps.values())), abs=1e-3)
    assert len((WEIGHTS / f"{name}.safetensors").read_bytes()) < 10_000_000


def test_the_nearest_size_is_chosen():
    """In the logarithm of the number of customers; with one policy it is that one for all."""
    assert shipped_policy(5).config == shipped_policy(500).config


@pytest.mark.parametrize("name", CARDS)
def test_golden_costs(name):
    """The mean cost over 16 problems, one of each seen variant, stays within 0.2 %; all are judged."""
    policy = load_policy(WEIGHTS / name)
    (size,) = json.loads((WEIGHTS / f"{name}.json").read_text())["sizes"]
    problems = [
        problem for v in SEEN for problem in problems_from_arrays(benchmark(v, size, "val", 1), v.name)
    ]
    solutions = decode(policy, problems, DecodeOptions(augmentations=1))
    assert all(check(p, s).feasible for p, s in zip(problems, solutions, strict=True))
    mean = np.mean([s.cost for s in solutions])
    assert mean == pytest.approx(GOLDEN[name], rel=2e-3)
