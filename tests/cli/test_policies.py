"""`chainroute solve --solver neural` and `chainroute info --policy`."""

import json

import pytest
from commands import run

from chainroute import VARIANTS, check, variant
from chainroute.formats import read, read_solution, write
from chainroute.generate import generate
from chainroute.neural.policy import PolicyConfig
from chainroute.neural.policy.store import random_policy, save_policy


@pytest.fixture
def problem(tmp_path):
    write(generate(variant("VRPTW"), 6, 1, seed=0)[0], tmp_path / "a.json")
    return tmp_path / "a.json"


def test_random_weights_give_judged_routes_for_every_variant(tmp_path):
    for p in generate(VARIANTS, 5, 1, seed=2):
        write(p, tmp_path / f"{p.variant}.json")
    files = sorted(tmp_path.glob("*.json"))
    options = ["--solver", "neural", "--weights", "random", "--starts", 2, "--augment", 1]
    code, out, err = run("solve", *files, *options, "-o", tmp_path / "{name}.sol", "--json")
    assert (code, err) == (0, "")
    answers = [json.loads(line) for line in out.splitlines()]
    assert {a["variant"] for a in answers} == {v.name for v in VARIANTS}
    by_name = {answer["problem"]: answer for answer in answers}
    for p in map(read, files):
        answer = by_name[p.name]
        verdict = check(p, read_solution(tmp_path / f"{p.name}.sol", p))
        assert verdict.feasible
        assert verdict.cost == pytest.approx(answer["cost"])


def test_saved_weights_sample_with_the_seed(problem, tmp_path):
    save_policy(random_policy(PolicyConfig(dim=16, heads=2, layers=1, hidden=16)), tmp_path / "tiny", {})
    options = ["--solver", "neural", "--weights", tmp_path / "tiny", "--samples", 1, "--augment", 1, "--json"]
    costs = [json.loads(run("solve", problem, *options, "--seed", s)[1])["cost"] for s in (1, 1, 2, 3)]
    assert costs[0] == costs[1]
    assert len(set(costs)) > 1


def test_the_shipped_policy_is_the_default(tmp_path):
    """It knows better than a random one."""
    problem = tmp_path / "b.json"
    write(generate(variant("VRPTW"), 25, 1, seed=0)[0], problem)
    options = ["--solver", "neural", "--starts", 3, "--augment", 1, "--json"]
    shipped, random = (
        json.loads(run("solve", problem, *options, *weights)[1]) for weights in ([], ["--weights", "random"])
    )
    assert shipped["feasible"]
    assert shipped["cost"] < random["cost"]


def test_what_other_solvers_have_no_use_for(problem):
    code, _, err = run(
        "solve", problem, "--solver", "pyvrp", "--weights", "random", "--starts", 3, "--no-polish"
    )
    assert code == 2
    assert {line.split(":")[0] for line in err.splitlines()} == {
        f"[bad-option] --{option}" for option in ("polish", "weights", "starts")
    }


def test_wrong_options_and_weights_are_told_before_any_work(problem):
    neural = ["--solver", "neural", "--weights", "random"]
    bad = run("solve", problem, *neural, "--starts", 0, "--augment", 9, "--samples", -1, "-o", "a.xyz")
    assert bad[0] == 2
    assert [line.split(":")[0] for line in bad[2].splitlines()] == [
        "[bad-option] --starts",
        "[bad-option] --augment",
        "[bad-option] --samples",
        "[bad-option] --output",
    ]
    assert run("solve", problem, *neural, "--device", "abacus")[2].startswith("[bad-option] --device")
    for solver in ("neural", "auto"):
        assert "[weights-missing]" in run("solve", problem, "--solver", solver, "--weights", "nowhere")[2]


def test_no_polish_is_the_policy_alone_and_keeps_a_time_limit(problem):
    options = ["--weights", "random", "--starts", 2, "--augment", 1, "--json"]
    alone = json.loads(run("solve", problem, "--no-polish", *options, "--time-limit", 20)[1])
    neural = json.loads(run("solve", problem, "--solver", "neural", *options)[1])
    assert alone["source"] == neural["source"] == "policy"
    assert alone["routes"] == neural["routes"]
    assert alone["seconds"] < 15


def test_info_counts_the_parameters_of_a_policy(tmp_path):
    """As in the paper within 3 %: 3.39 M and 0.66 M."""
    code, out, _ = run("info", "--policy")
    *lines, way = out.splitlines()
    counts = dict(line.split() for line in lines[1:])
    assert way == "decoding: folded, float32"
    assert code == 0
    assert int(counts["encoder"]) == pytest.approx(3.39e6, rel=0.03)
    assert int(counts["decoder"]) == pytest.approx(0.66e6, rel=0.03)
    policy = random_policy(PolicyConfig(dim=16, heads=2, layers=1, hidden=16))
    save_policy(policy, tmp_path / "tiny", {})
    answer = json.loads(run("info", tmp_path / "tiny", "--policy", "--json")[1])
    assert answer["parameters"]["total"] == sum(p.numel() for p in policy.parameters())
    assert answer["config"]["dim"] == 16
    assert run("info")[2].startswith("[bad-option] FILE")
