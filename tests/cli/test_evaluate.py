"""`chainroute evaluate`: run, show, compare, report, pack, reference."""

import json

import numpy as np
import pytest
from commands import run
from evaluations import small
from where import ROOT

from chainroute.neural.policy import PolicyConfig
from chainroute.neural.policy.store import random_policy, save_policy
from chainroute.research.evaluate.gaps import best_of
from chainroute.research.evaluate.results import Results, TaskResult, read_references


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty folder to work in, with a small policy that has learned nothing."""
    monkeypatch.chdir(tmp_path)
    save_policy(random_policy(PolicyConfig(dim=8, heads=2, layers=1, hidden=8)), "tiny", {"sizes": [50]})
    return tmp_path


QUICK = ("--weights", "tiny", "--augment", 1, "--limit", 2, "--task", "CVRP")


def test_a_policy_is_evaluated_kept_and_shown_again(place):
    code, out, _ = run("evaluate", "run", *QUICK, "--json")
    assert code == 0
    first, methods = map(json.loads, out.splitlines())
    assert first["rows"][0]["task"] == "CVRP"
    assert {row["method"] for row in methods["rows"]} >= {"tiny-x1", "CCL+ReLD"}
    code, again, _ = run("evaluate", "run", *QUICK, "--json")
    seconds = [json.loads(text.splitlines()[0])["rows"][0]["tiny-x1: s"] for text in (out, again)]
    assert (code, seconds[0]) == (0, seconds[1])  # nothing was solved again
    code, shown, _ = run("evaluate", "show", "--plot", "p.svg", "--table", "t.md")
    assert code == 0
    assert run("evaluate", "show", "out/results/tiny-x1-seen-n50.json", "--table", "t.csv")[0] == 0
    assert "CVRP,50,tiny-x1,exact,2," in (place / "t.csv").read_text()
    for name in ("big.CSV", "big.JSON"):
        assert run("evaluate", "show", "out/results", "--table", name)[0] == 0
    assert (place / "big.CSV").read_text() == (place / "t.csv").read_text()
    assert json.loads((place / "big.JSON").read_text())
    assert "tiny-x1: cost" in shown
    assert "| CVRP |" in (place / "t.md").read_text()
    assert "<svg" in (place / "p.svg").read_text()


@pytest.mark.parametrize("picture", ["bars", "trade-off"])
def test_the_stored_results_are_shown_and_drawn(place, picture):
    """Two suites and sizes at once; docs/evaluating.md has all of the project's own drawn."""
    names = ("paper-n50-seen-n50.json", "all-zero-shot-n100.json")
    stored = [ROOT / "docs" / "results" / name for name in names]
    code, out, err = run("evaluate", "show", *stored, "--plot", "gaps.svg", "--picture", picture)
    assert (code, err) == (0, "")
    assert "CCL+ReLD" in out
    assert "<svg" in (place / "gaps.svg").read_text()


def test_references_give_gaps_to_part_of_a_test_set(place):
    """The shipped ones at once; costs of 1 a problem as reference: the gap is what the mean cost says."""
    code, out, _ = run("evaluate", "run", *QUICK, "--json")
    row = json.loads(out.splitlines()[0])["rows"][0]
    shipped = best_of(read_references(), "seen", 50, "CVRP")[:2].mean()
    assert code == 0
    assert row["tiny-x1: gap %"] == pytest.approx(100 * row["tiny-x1: cost"] / shipped - 100)
    own = Results("pyvrp-1s", "seen", 50, "exact", {}, {"CVRP": TaskResult("CVRP", np.ones(2))})
    (place / "own").mkdir()
    own.save(place / "own")
    code, out, _ = run("evaluate", "run", *QUICK, "--references", "own", "--json")
    row = json.loads(out.splitlines()[0])["rows"][0]
    assert code == 0
    assert row["tiny-x1: gap %"] == pytest.approx(100 * row["tiny-x1: cost"] - 100)


def test_reference_keeps_its_costs(place):
    code, out, _ = run("evaluate", "reference", "--task", "CVRP", "--limit", 1, "--time-limit", 1)
    assert code == 0
    assert out.splitlines()[2].split()[:3] == ["CVRP", "50", "1"]
    code, out, _ = run("evaluate", "reference", "--task", "CVRP", "--limit", 1, "--time-limit", 1, "--json")
    assert json.loads(out)["tasks"][0]["count"] == 1
    assert (place / "out" / "reference" / "pyvrp-1s-seen-n50.json").exists()


def test_two_results_are_compared(place):
    for label, costs in (("a", [10.0, 11.0, 12.0]), ("b", [10.5, 11.2, 12.6])):
        Results(label, "seen", 50, "exact", {}, {"CVRP": TaskResult("CVRP", np.array(costs))}).save(place)
    code, out, _ = run("evaluate", "compare", "a-seen-n50.json", "b-seen-n50.json")
    assert code == 0
    assert out.splitlines()[2].split()[:5] == ["CVRP", "3", "11.000", "11.433", "-3.790"]


def test_real_sets_are_packed_solved_and_alarms_are_loud(place):
    """The made-up sets have best known costs far above what there is: costs below them are no success."""
    small(place / "sets")
    assert run("evaluate", "pack", "sets", "real.zip")[0] == 0
    options = ("--suite", "real", "--data", "real.zip", "--weights", "tiny", "--augment", 1, "--limit", 2)
    code, out, err = run("evaluate", "run", *options, "--task", "cmt")
    assert code in (0, 70)
    (place / "sets" / "cmt" / "bks.csv").write_text("instance,customers,bks\nbig,9,1e6\n")
    code, out, err = run(
        "evaluate", "run", *options[:3], "sets", *options[4:], "--task", "cmt", "-o", "other"
    )
    assert code == 70
    assert "BELOW THE BEST KNOWN: big" in err
    assert "big" in out


def test_networks_are_shown_from_their_results(place):
    """One row for each, with its switches."""
    code, _, err = run("evaluate", "show", "networks", "--networks")
    assert (code, "[file-not-found] networks" in err) == (2, True)
    task = TaskResult("CVRP", np.full(1000, 10.5), 2.0)
    (place / "networks").mkdir()
    Results("x", "seen", 50, "exact", {"switches": "reld=false"}, {"CVRP": task}).save(place / "networks")
    code, out, _ = run("evaluate", "show", "networks", "--networks")
    assert code == 0
    assert "reld=false" in out


def test_rows_of_a_subsample_are_of_the_same_instances(place):
    """A policy on 200 instances and a solver on the first two: of both the first two are shown."""
    (place / "tiny.json").unlink()  # a card, not a result
    Results("a", "seen", 50, "exact", {}, {"CVRP": TaskResult("CVRP", np.arange(200.0))}).save(place)
    Results("b", "seen", 50, "exact", {}, {"CVRP": TaskResult("CVRP", np.ones(2))}).save(place)
    code, out, _ = run("evaluate", "show", ".", "--limit", 2, "--json")
    row = json.loads(out.splitlines()[0])["rows"][0]
    assert (code, row["a: cost"], row["b: cost"]) == (0, 0.5, 1.0)
    (place / "a-seen-n50.npz").unlink()
    code, _, err = run("evaluate", "show", ".", "--limit", 2)
    assert (code, "[bad-result] a-seen-n50" in err) == (2, True)


def test_a_page_is_renewed(place):
    (place / "docs").mkdir()
    (place / "docs" / "results").mkdir()
    task = TaskResult("CVRP", np.full(1000, 10.5), 2.0)
    Results("x", "seen", 50, "exact", {}, {"CVRP": task}).save(place / "docs" / "results")
    assert run("evaluate", "report", "docs/results.md")[0] == 0
    assert "| CVRP | 10.500 |" in (place / "docs" / "results.md").read_text()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--suite", "unseen"], "[bad-option] --suite"),
        (["--n", 60], "[bad-option] --n"),
        (["--limit", 0], "[bad-option] --limit"),
        (["--task", "CVRB"], "[bad-option] --task"),
        (["--augment", 9], "[bad-option] --augment"),
        (["--device", "warp"], "[bad-option] --device"),
        (["--rules", "lax"], "[bad-option] --rules"),
        (["--solver", "gurobi"], "[bad-option] --solver"),
        (["--solver", "pyvrp", "--augment", 1], "[bad-option] --augment: is for --solver neural"),
        (["--time-limit", 1], "[bad-option] --time-limit"),
        (["--suite", "real"], "[data-missing] --data"),
        (["--solver", "milp"], "[bad-option] --solver: milp takes at most 20 customers; --n 10 has so few"),
        (["--solver", "pyvrp", "--runs", 0], "[bad-option] --runs"),
        (["--runs", 2], "[bad-option] --runs: is for --solver"),
    ],
)
def test_what_is_wrong_with_a_run_is_told_before_any_work(place, options, words):
    code, out, err = run("evaluate", "run", *options)
    assert (code, out) == (2, "")
    assert words in err
    assert not (place / "out").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["show", "nothing.json"], "[file-not-found]"),
        (["show"], "[file-not-found] out/results"),
        (["run", "--label", "../mine"], "[bad-option] --label"),
        (["show", ".", "--table", "t.xls"], "[bad-option] --table"),
        (["show", ".", "--limit", 0, "--plot", "folder/p.png"], "[file-unwritable] --plot"),
        (["show", ".", "--plot", "p.png", "--picture", "cake"], "[bad-option] --picture"),
        (["report", "page.md"], "[file-not-found]"),
        (["pack", ".", "real.zip"], "[data-missing]"),
        (["compare", "a", "b"], "[file-not-found]"),
    ],
)
def test_what_is_wrong_with_other_commands_is_told(place, options, words):
    (place / "tiny.json").unlink()  # a card, not a result
    code, out, err = run("evaluate", *options)
    assert (code, out) == (2, "")
    assert words in err
    assert not (place / "out").exists()


def test_results_policies_and_instances_are_not_written_over(place):
    """By tables, which may be JSON like results and cards, nor by a pack; nothing is in a folder of results
    that a later result of that name would be lost to."""
    Results("x", "seen", 50, "exact", {}, {"CVRP": TaskResult("CVRP", np.ones(2))}).save(place)
    sets = small(place / "sets")
    instance = next((sets / "X").glob("*.vrp"))
    files = [place / "x-seen-n50.json", place / "tiny.json", instance]
    before = [file.read_bytes() for file in files]
    for options in (
        ["show", "x-seen-n50.json", "--table", "x-seen-n50.json"],
        ["show", ".", "--table", "later.json"],
        ["compare", "x-seen-n50", "x-seen-n50.json", "--table", "./x-seen-n50.json"],
        ["pack", sets, instance],
    ):
        code, out, err = run("evaluate", *options)
        assert (code, out) == (2, ""), options
        assert "[bad-option]" in err, options
        assert [file.read_bytes() for file in files] == before, options
    assert not (place / "later.json").exists()
