"""Whole evaluations: the tasks that are asked for, by all rules, and on the device machine's few packages."""

import subprocess
import sys
from dataclasses import replace

import pytest
from where import ROOT

from chainroute.errors import ChainRouteError
from chainroute.neural.decode import DecodeOptions
from chainroute.neural.env import Rules
from chainroute.neural.policy import PolicyConfig
from chainroute.neural.policy.store import random_policy, save_policy
from chainroute.research.evaluate import classical
from chainroute.research.evaluate import suites as whole
from chainroute.research.evaluate.classical import Classical
from chainroute.research.evaluate.results import read_all
from chainroute.research.evaluate.suites import Evaluation, rules_of, run_classical, run_neural, suites
from chainroute.research.evaluate.tables import tables
from chainroute.runtime.progress import StatusLine

QUIET = StatusLine(silent=True)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A small policy that has learned nothing."""
    path = tmp_path_factory.mktemp("policy") / "tiny"
    save_policy(random_policy(PolicyConfig(dim=8, heads=2, layers=1, hidden=8)), path, {"sizes": [50]})
    return str(path)


def test_tasks_are_chosen_by_suite_size_and_name():
    found = suites(Evaluation(("seen", "zero-shot"), (50, 100), limit=3), every=True)
    assert [(suite, n, len(tasks)) for suite, n, tasks in found] == [
        ("seen", 50, 16), ("seen", 100, 16), ("zero-shot", 50, 32), ("zero-shot", 100, 32)
    ]  # fmt: skip
    ((suite, _, (task,)),) = suites(Evaluation(("seen", "zero-shot"), (50,), ("mdvrptw",)), every=False)
    assert (suite, task.name, task.count) == ("zero-shot", "MDVRPTW", 16)
    assert suites(Evaluation(), every=True)[0][2][0].count == 1000


def test_what_no_commit_makes_again_is_not_stored(weights, tmp_path, monkeypatch):
    """Neither a policy's results nor a solver's; another folder may have them, a clean commit stores them."""
    stored = tmp_path / "docs" / "results" / "apart"
    job = Evaluation(only=("CVRP",), limit=1, out=stored)
    monkeypatch.setattr(whole, "revision", lambda: "0123456789ab-dirty")
    for refused in (
        lambda: run_neural(job, QUIET, weights=weights),
        lambda: run_classical(job, QUIET, Classical("pyvrp", 0.1)),
    ):
        with pytest.raises(ChainRouteError, match="stores results that a commit makes again") as error:
            refused()
        assert [fault.at.field for fault in error.value.faults] == ["out"]
    assert not stored.exists()
    options = DecodeOptions(augmentations=1)
    run_neural(replace(job, out=tmp_path / "out" / "results"), QUIET, weights=weights, options=options)
    monkeypatch.setattr(whole, "revision", lambda: "0123456789ab")
    run_neural(job, QUIET, weights=weights, options=options)
    assert len(read_all([stored])) == 1


def test_the_problems_of_a_task_are_those_of_its_arrays():
    ((_, _, (task,)),) = suites(Evaluation(only=("VRPTW",), limit=2), every=False)
    assert task.problem(1).coords.tolist() == task.arrays()["locs"][1].astype(float).tolist()
    assert task.problem(1).variant.name == "VRPTW"


@pytest.mark.parametrize(
    "job",
    [
        Evaluation(("unseen",)),
        Evaluation(sizes=(60,)),
        Evaluation(only=("CVRB",)),
        Evaluation(limit=1001),
        Evaluation(limit=-1),
    ],
)
def test_what_does_not_exist_is_refused(job):
    with pytest.raises(ChainRouteError, match="bad-option"):
        suites(job, every=True)


def test_zero_shot_is_by_both_rules_and_both_are_files_of_their_own(weights, tmp_path):
    job = Evaluation(("seen", "zero-shot"), (50,), ("CVRP", "MDVRPMB"), 1, out=tmp_path)
    options = DecodeOptions(augmentations=1, starts=2)
    made = run_neural(job, QUIET, weights=weights, device="cpu", options=options)
    assert [r.name for r in made] == [
        "tiny-x1-seen-n50", "tiny-x1-zero-shot-n50", "tiny-x1-zero-shot-n50-published"
    ]  # fmt: skip
    assert {r.name for r in read_all([tmp_path])} == {r.name for r in made}
    assert rules_of("seen", options) == rules_of("real", options) == (Rules.EXACT,)
    assert rules_of("zero-shot", DecodeOptions(recombine=True)) == (Rules.EXACT,)
    with pytest.raises(ChainRouteError, match="published"):
        run_neural(job, QUIET, options=DecodeOptions(rounds=1), rules=[Rules.PUBLISHED])
    assert len(tables(made)) == 4


def test_classical_solvers_take_the_same_tasks(tmp_path):
    (made,) = run_classical(Evaluation(only=("CVRP",), limit=1, out=tmp_path), QUIET, Classical("pyvrp", 2.0))
    assert made.name == "pyvrp-2s-seen-n50"
    assert made.tasks["CVRP"].mean > 5


def test_classical_solvers_are_rows_of_one_table_and_go_on_where_they_were(tmp_path, monkeypatch):
    """On two problems with ten customers: the exact solver's cost is the least, and the first problem, solved
    before, is not solved again."""
    job = Evaluation(sizes=(10,), only=("OVRPTW",), limit=1, out=tmp_path)
    (first,) = run_classical(job, QUIET, Classical("milp", 10.0))
    job = replace(job, limit=2)
    solved = []
    original = classical.solved
    monkeypatch.setattr(
        classical, "solved", lambda task, i, *rest: solved.append(i) or original(task, i, *rest)
    )
    made = [*run_classical(job, QUIET, Classical("milp", 10.0))]
    assert solved == [1]
    assert made[0].tasks["OVRPTW"].costs[0] == pytest.approx(first.tasks["OVRPTW"].costs[0])
    made += [r for name in ("pyvrp", "ortools") for r in run_classical(job, QUIET, Classical(name, 1.5))]
    exact, *others = (r.tasks["OVRPTW"].costs for r in made)
    assert all((costs >= exact - 1e-6).all() for costs in others)
    by_task, _ = tables(made)
    heads = {head.partition(":")[0] for head in by_task.columns[1:]}
    assert heads == {"milp-10s", "pyvrp-1.5s", "ortools-1.5s"}


def test_the_command_runs_where_there_is_only_torch(weights, tmp_path):
    """The process cannot import what the device machine does not have."""
    code = """
import runpy, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"typer", "pydantic", "rich", "matplotlib", "scipy", "pyvrp", "vrplib"}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Absent())
runpy.run_module("chainroute.research.evaluate", run_name="__main__")
"""
    options = ["--weights", weights, "--augment", "1", "--limit", "1", "--out", str(tmp_path)]
    command = [sys.executable, "-c", code, "run", "--task", "CVRP", *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "| CVRP |" in done.stdout
    assert (tmp_path / "tiny-x1-seen-n50.json").exists()
