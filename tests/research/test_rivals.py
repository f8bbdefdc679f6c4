"""The rivals of the paper: their blocks by hand, and each recipe trained a little and decoded."""

import math
import re
import runpy
import sys
import time
from argparse import Namespace
from dataclasses import replace

import pytest
import torch
from problems import invent
from training import TINY
from where import RECIPES

from chainroute.neural.decode import DecodeOptions, attempt
from chainroute.neural.env import begin, from_problems, mask, step
from chainroute.neural.fast.support import obstacle
from chainroute.neural.policy import PolicyConfig
from chainroute.neural.policy.store import load_policy, random_policy
from chainroute.neural.train import ledger, read_recipe, records, train
from chainroute.plan.check import check
from chainroute.problem.variants import VARIANTS, variant
from chainroute.research.evaluate.network_tables import METHODS
from chainroute.research.evaluate.results import read_all
from chainroute.research.rivals.mvmoe import BALANCE, Experts, unevenness
from chainroute.research.rivals.pomo import InstanceNorm, PomoEncoder

RECIPES = RECIPES / "rivals"
NAMES = sorted(path.stem for path in RECIPES.glob("*.toml"))
PLAIN = {"asw-tam": "tsnr"}  # those with a block that the fast engine does not know
SMALL = {"dim": 16, "heads": 2, "layers": 1, "hidden": 16}


def test_every_method_of_the_table_has_a_recipe():
    assert {*NAMES, "ccl-ens"} == set(METHODS)


@pytest.mark.parametrize("name", NAMES)
def test_a_rival_trains_and_its_plans_are_feasible(name, tmp_path):
    """Two updates of a small network of each kind, on the engine that its recipe says, then judged plans."""
    recipe = read_recipe(RECIPES / f"{name}.toml")
    assert recipe.sizes == (50,)  # the base recipe's
    config = replace(TINY, policy=replace(recipe.policy, **SMALL), updates=2)
    train(config, tmp_path, device="cpu", silent=True)
    policy = load_policy(tmp_path)
    assert bool(obstacle(policy)) is (name in PLAIN)
    assert PLAIN.get(name, "") in obstacle(policy)
    problems = [invent(variant(v), 1, 5) for v in ("VRPBLTW", "MDOVRPMB")]
    for problem, found in zip(
        problems, attempt(policy, problems, DecodeOptions(augmentations=1)), strict=True
    ):
        assert check(problem, found).feasible


def test_instance_norm_is_over_the_nodes_that_are_there():
    """Numbers 1 and 3 become -1 and 1, whatever stands in the padding."""
    x = torch.tensor([[[1.0], [3.0], [70.0]]])
    there = torch.tensor([[[1.0], [1.0], [0.0]]])
    normed = InstanceNorm(1)(x, there)
    torch.testing.assert_close(normed[0, :2, 0], torch.tensor([-1.0, 1.0]), atol=1e-4, rtol=0)


@torch.no_grad()
def test_padding_is_never_seen_by_pomo():
    encoder = PomoEncoder(PolicyConfig(**SMALL)).double()
    features, limit, flags = torch.rand(1, 6, 7).double(), torch.ones(1).double(), torch.ones(1, 4).double()
    padding = torch.tensor([[False, True, False, False, False, True]])
    padded = encoder(features, limit, flags, 2, padding)
    alone = encoder(features[:, [0, 2, 3, 4]], limit, flags, 1, None)
    torch.testing.assert_close(padded[:, [0, 2, 3, 4]], alone)


def test_two_experts_are_chosen_and_weighed():
    """Scores 0, 2, 1, -1: the second and third expert, by the softmax of 2 and 1."""
    experts = Experts(1, [torch.nn.Linear(1, 1) for _ in range(4)])
    with torch.no_grad():
        experts.gate.weight.copy_(torch.tensor([[0.0], [2.0], [1.0], [-1.0]]))
        for i, expert in enumerate(experts.experts):
            expert.weight.fill_(0)
            expert.bias.fill_(10.0**i)
    share = 1 / (1 + math.exp(-1))
    assert experts(torch.ones(1, 1, 1)).item() == pytest.approx(10 * share + 100 * (1 - share), rel=1e-5)


def test_unequal_use_of_experts_is_penalised():
    """The gradient is that of the loss with the penalty added; used alike there is none."""
    assert unevenness(torch.tensor([[1.0, 0.0], [0.0, 1.0]])) == 0
    assert unevenness(torch.tensor([[3.0, 1.0]])).item() == pytest.approx(2 / 4)
    experts = Experts(3, [torch.nn.Linear(3, 3) for _ in range(4)])
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(1))
    experts(x).sum().backward()
    found = experts.gate.weight.grad.clone()
    experts.zero_grad()
    scores = experts.gate(x)
    weight = scores.masked_fill(scores < scores.topk(2, -1).values[:, -1:], -torch.inf).softmax(-1)
    made = sum(w * e(x) for w, e in zip(weight.split(1, -1), experts.experts, strict=True))
    (made.sum() + BALANCE * unevenness(weight)).backward()
    torch.testing.assert_close(found, experts.gate.weight.grad)


@torch.no_grad()
def test_asw_tam_gives_every_trajectory_nodes_of_its_own():
    """The logits of a trajectory among others are those that it has alone."""
    policy = random_policy(PolicyConfig(**SMALL, tsnr="chainroute.research.rivals.asw_tam:OwnTSNR")).double()
    batch = from_problems([invent(VARIANTS[i], i, 5) for i in (0, 3)])

    def walk(pick):
        state, out = begin(batch), []
        state = type(state)(
            **{k: v[:, pick] if isinstance(v, torch.Tensor) else v for k, v in vars(state).items()}
        )
        scene, nodes = policy.encode(batch)
        for _ in range(4):
            legal = mask(batch, state)
            logits, nodes = policy.step(batch, scene, nodes, state, legal, True)
            out.append(logits)
            state = step(batch, state, logits.argmax(-1))
        return torch.stack(out)

    together = walk(slice(None))
    for i in range(5):
        torch.testing.assert_close(walk(slice(i, i + 1)), together[:, :, i : i + 1])


def test_the_script_trains_evaluates_and_goes_on(tmp_path, monkeypatch, capsys):
    """They are trained by updates, in two calls of which the second finds everything done; then one by
    seconds."""
    script = RECIPES.parent / "rivals.py"

    def run(*options):
        monkeypatch.setattr(sys, "argv", ["rivals.py", "--out", str(tmp_path), *map(str, options)])
        with pytest.raises(SystemExit) as end:
            runpy.run_path(str(script), run_name="__main__")
        assert end.value.code == 0
        said = capsys.readouterr()
        return said.out + said.err

    small = '{"sizes": [5], "batch": 4, "variants": ["CVRP"], "warmup": 1, "validate_every": 0, "policy": %s}'
    shared = ["--seeds", 1, "--task", "CVRP", "--limit", 1, "--augment", 1, "--validate-every", 0]
    shared += ["--change", small % str(SMALL).replace("'", '"')]
    named = ["--names", "cada", "ccl-reld"]
    out = run("--updates", 2, *named, *shared)
    assert "done after 2 updates" in out
    (chosen,) = re.findall(r"ccl-reld-seed1: P_ts = (\S+) is best", out)
    assert chosen in ("0.75", "1")
    assert "cada-seed1: P_ts" not in out  # it does not re-embed
    (stored,) = (r for r in read_all([tmp_path / "results"]) if r.label == "ccl-reld-seed1")
    assert stored.settings["used_update_rates"] == [float(chosen)]
    assert "left: nothing" in out
    assert {r.label for r in read_all([tmp_path / "results"])} == {
        "cada-seed1",
        "ccl-reld-seed1",
        "ccl-ens-seed1",
    }
    assert ledger.read(tmp_path / "cada-seed1" / "log.csv")[-1]["step"] == "2"
    assert not list(tmp_path.glob("*/*.safetensors"))
    assert "2 updates" not in run("--updates", 2, *named, *shared)
    assert "left: rf-te-seed1" in run("--updates", 2, "--names", "rf-te", "--budget", 1, *shared)
    broken = run(
        "--updates", 2, "--names", "cada", "rf-te", *shared, "--seeds", 3, "--change", '{"seed": -1}'
    )
    assert broken.count("[bad-option]") == 2  # one does not keep the other from being tried
    assert "left: cada-seed3, rf-te-seed3" in broken
    out = run("--seconds", 0.3, "--names", "rf-te", *shared)
    assert "left: nothing" in out
    assert "| RF-TE |" in out
    assert "| CaDA |" in out


def test_a_rival_that_is_cut_goes_on(tmp_path, monkeypatch):
    """Two short calls, then one that is long enough: one fall, at the end of all its seconds, evaluated."""
    script = runpy.run_path(str(RECIPES.parent / "rivals.py"))
    here = script["make"].__globals__
    here.update(ASIDE=0.0, CLOSING=0.0)
    monkeypatch.setattr(records, "CLOSING_SECONDS", 0.1)
    change = {"sizes": [5], "batch": 4, "variants": ["CVRP"], "warmup": 0, "policy": SMALL}
    options = Namespace(
        seconds=2.5, updates=None, change=change, validate_every=0, engine="plain", device="cpu", n=50,
        task=["CVRP"], limit=1, augment=1, keep=False, out=tmp_path,
    )  # fmt: skip
    for budget, done in ((1.0, False), (1.0, False), (60.0, True)):
        here["BEGAN"] = time.monotonic()
        options.budget = budget
        assert script["make"]("cada", 1, options) is done
    rows = ledger.read(tmp_path / "cada-seed1" / "log.csv")
    steps, rates = [int(row["step"]) for row in rows], [float(row["learning_rate"]) for row in rows]
    full = read_recipe(RECIPES / "cada.toml").learning_rate
    assert rates[:2] == [full, full], "a fall is not cut where the next call has all of it"
    assert rates[2] < 0.7 * full  # that of the last half second
    assert len(steps) == 3
    assert steps == sorted(set(steps))
    (stored,) = read_all([tmp_path / "results"])
    assert stored.settings["trained_seconds"] == pytest.approx(2.5, abs=0.4)
    assert stored.settings["instances"] == 4 * steps[-1]
